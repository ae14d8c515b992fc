package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// attempts to insert a block, and the pause between them.
const (
	attempts     = 3
	attemptPause = 200 * time.Millisecond
)

// Append stores a batch. ClickHouse has no transactions over several tables: if a table
// fails for good, those rows of the batch that are stored already are deleted as far as
// the server can be reached. A block whose answer was lost is inserted again with the same
// token, or looked for before where the server knows no tokens, so that no row is stored twice.
func (s *Store) Append(ctx context.Context, b *record.Batch) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	if b.Len() == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	w := &batchWrite{Store: s, next: s.allocate(b.Len())}
	defer s.done()
	insert(ctx, w, &flowTable, b.Flows)
	insert(ctx, w, &lossTable, b.Losses)
	insert(ctx, w, &portTable, b.Ports)
	insert(ctx, w, &traceTable, b.Traces)
	insert(ctx, w, &counterTable, b.Counters)
	insert(ctx, w, &diagnosisTable, b.Diagnoses)
	insert(ctx, w, &incidentTable, b.Incidents)
	if w.err != nil {
		w.undo(context.WithoutCancel(ctx))
		return fmt.Errorf("clickhouse: %w: %w", store.ErrUnavailable, w.err)
	}
	return nil
}

// batchWrite writes one batch.
type batchWrite struct {
	*Store
	next int64 // tick of the next record
	done []insertedBlock
	err  error
}

// insertedBlock are rows of one table.
type insertedBlock struct {
	kind        store.Kind
	first, last int64 // ticks
}

// where selects the block's rows, or those of its rollup.
func (b *insertedBlock) where(s *Store, kind store.Kind) string {
	_, seq := orderOf(kind)
	return fmt.Sprintf("%[1]s >= %[2]d AND %[1]s <= %[3]d AND %[1]s %% %[4]d = %[5]d", seq, s.seq(b.first), s.seq(b.last), 1<<handleBits, s.handle)
}

// maxBlock is how many rows are inserted at once. The server stores a block of one day as
// a whole or not at all, if it has no more than a million rows.
const maxBlock = 100_000

// insert inserts the records of one table, unless an earlier one failed.
func insert[T any](ctx context.Context, w *batchWrite, t *table[T], records []T) {
	for len(records) > 0 && w.err == nil {
		n := min(len(records), maxBlock)
		block := insertedBlock{t.kind, w.next, w.next + int64(n) - 1}
		w.next += int64(n)
		for attempt := 1; ; attempt++ {
			err := insertBlock(ctx, w.Store, t, records[:n], block.first)
			if err == nil {
				break
			}
			var stored uint64
			var lookErr error
			if !w.current {
				stored, lookErr = w.stored(ctx, &block)
			}
			if lookErr == nil && stored == uint64(n) {
				break
			}
			if attempt == attempts || ctx.Err() != nil || lookErr == nil && stored > 0 {
				w.err = fmt.Errorf("insert %d rows into %s: %w", n, t.kind, err)
				break
			}
			time.Sleep(attemptPause)
		}
		w.done = append(w.done, block)
		records = records[n:]
	}
}

// stored counts the rows of a block that the server has.
func (w *batchWrite) stored(ctx context.Context, b *insertedBlock) (n uint64, err error) {
	err = w.conn.QueryRow(ctx, fmt.Sprintf(`SELECT count() FROM %s WHERE %s`, b.kind, b.where(w.Store, b.kind))).Scan(&n)
	return n, err
}

func insertBlock[T any](ctx context.Context, s *Store, t *table[T], records []T, first int64) (err error) {
	names := "seq"
	for i := range t.columns {
		names += ", " + t.columns[i].name
	}
	batch, err := s.conn.PrepareBatch(s.once(ctx, t.kind, first), fmt.Sprintf("INSERT INTO %s (%s)", t.kind, names))
	if err != nil {
		return err
	}
	seqs := make([]int64, len(records))
	for i := range seqs {
		seqs[i] = s.seq(first + int64(i))
	}
	errs := batch.Column(0).Append(seqs)
	for i := range t.columns {
		errs = errors.Join(errs, t.columns[i].append(batch.Column(i+1), records))
	}
	if errs != nil {
		return errors.Join(errs, batch.Abort())
	}
	return batch.Send()
}

// undo deletes the rows of a batch that failed.
func (w *batchWrite) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	for i := range w.done {
		b := &w.done[i]
		for _, kind := range append([]store.Kind{b.kind}, rollups[b.kind]...) {
			if err := w.conn.Exec(ctx, w.alter(w.local(string(kind)))+` DELETE WHERE `+b.where(w.Store, kind)); err != nil {
				w.err = errors.Join(w.err, fmt.Errorf("rows of %s stay: %w", kind, err))
				continue
			}
			// A caller that repeats the batch may look for its rows first.
			if err := w.waitForMutations(ctx, string(kind)); err != nil {
				w.err = errors.Join(w.err, fmt.Errorf("rows of %s are being deleted: %w", kind, err))
			}
		}
	}
}

// rollups are the tables that views fill.
var rollups = map[store.Kind][]store.Kind{
	store.Ports:    {store.PortSeconds, store.PortMinutes},
	store.Counters: {store.CounterSeconds, store.CounterMinutes},
}
