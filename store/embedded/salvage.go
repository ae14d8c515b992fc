package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// verdictTime limits how long opening waits for the verdicts of a damaged file:
// the numbers of new ones continue after theirs.
const verdictTime = 20 * time.Second

// salvageOrder is the order in which kinds are salvaged: what is most useful per
// row first.
var salvageOrder = []store.Kind{
	store.Incidents, store.Diagnoses, store.PortMinutes, store.CounterMinutes, store.Losses,
	store.PortSeconds, store.CounterSeconds, store.Traces, store.Flows, store.Counters, store.Ports,
}

// verdicts is the number of kinds at the start of salvageOrder that opening waits
// for.
const verdicts = 2

// resumeSalvage continues to bring over what can be read of files that were set
// aside: it returns with the verdicts, and the rest follows in the background.
func (s *Store) resumeSalvage(ctx context.Context) error {
	pending := s.pendingRepairs()
	if len(pending) == 0 {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	for _, r := range pending {
		s.salvage(soon, r, salvageOrder[:verdicts], func() (func(), error) { return func() {}, nil })
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	s.repairsLock.Lock()
	s.salvaging, s.salvaged = stop, done
	s.repairsLock.Unlock()
	go func() {
		defer close(done)
		for _, r := range pending {
			s.salvage(background, r, salvageOrder, s.beginWrite)
		}
	}()
	return nil
}

// beginWrite registers work that writes.
func (s *Store) beginWrite() (leave func(), err error) {
	done, err := s.beginWork()
	if err != nil {
		return nil, err
	}
	s.write.Lock()
	return func() { s.write.Unlock(); done() }, nil
}

// stopSalvage ends what resumeSalvage started, and waits for it. The next start
// continues where it ended.
func (s *Store) stopSalvage() {
	s.repairsLock.Lock()
	stop, done := s.salvaging, s.salvaged
	s.repairsLock.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// salvage brings over the rows of some kinds, and logs the result of the last. begin
// takes what a writer of the store has to hold.
func (s *Store) salvage(ctx context.Context, r *Repair, kinds []store.Kind, begin func() (func(), error)) {
	err := s.salvageKinds(ctx, r, kinds, begin)
	if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
		return
	}
	s.updateRepair(r, func(r *Repair) {
		if r.Problem = ""; err != nil {
			r.Problem = "no more can be read: " + err.Error()
		}
		r.Running = r.Running && err == nil && len(kinds) < len(salvageOrder)
	})
	if err != nil {
		s.log.Error("salvage of a damaged store ended", "file", r.File, "error", err)
	} else if len(kinds) == len(salvageOrder) {
		s.log.Warn("salvage of a damaged store is complete", "file", r.File, "salvaged", r.Salvaged, "lost_at_most", r.Lost)
	}
}

func (s *Store) salvageKinds(ctx context.Context, r *Repair, kinds []store.Kind, begin func() (func(), error)) error {
	if _, err := os.Stat(r.File); errors.Is(err, fs.ErrNotExist) {
		return nil // removed by its owner, who does not want it
	}
	from, err := openDamaged(ctx, r.File, r.Time)
	if err != nil {
		return err
	}
	defer from.close()
	if err := s.salvageActions(ctx, from, begin); err != nil {
		return err
	}
	for _, kind := range kinds {
		v := &tableSalvage{s: s, r: r, from: from, kind: kind, begin: begin}
		if err := v.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tableSalvage brings over one table.
type tableSalvage struct {
	s        *Store
	r        *Repair
	from     *damagedFile
	kind     store.Kind
	begin    func() (func(), error)
	failures int // rows in a row that the new file did not take
}

const (
	// rangeRows is the number of rows that are read and written at once. Other
	// appends wait for one range at most.
	rangeRows = 8192
	// leastRange is the number of rows that DuckDB decompresses at once: less does
	// not avoid damage.
	leastRange = 2048
	// maxFailures is how many rows in a row the new file may refuse.
	maxFailures = 100
)

func (v *tableSalvage) run(ctx context.Context) error {
	next, done, err := v.progress(ctx)
	if err != nil || done {
		return err
	}
	end, err := v.from.rows(ctx, v.from.table(v.kind))
	if err != nil {
		return err
	}
	for ; next < end; next = min(next+rangeRows, end) {
		if err := v.copyRange(ctx, next, min(next+rangeRows, end)); err != nil {
			return err
		}
	}
	return v.put(ctx, &chunk{kind: v.kind, next: end, done: true})
}

// progress reads where the salvage of the table ended.
func (v *tableSalvage) progress(ctx context.Context) (next int64, done bool, err error) {
	leave, err := v.begin()
	if err != nil {
		return 0, false, err
	}
	defer leave()
	err = v.s.writer.QueryRowContext(ctx, `SELECT next, done FROM weft_salvage WHERE file = ? AND kind = ?`,
		filepath.Base(v.r.File), string(v.kind)).Scan(&next, &done)
	return next, done, err
}

// copyRange copies the rows of a range, and of its halves if that fails, down to
// the rows around the damage.
func (v *tableSalvage) copyRange(ctx context.Context, from, to int64) error {
	c, err := v.from.read(ctx, v.kind, from, to)
	least := int64(leastRange)
	if err == nil {
		if err = v.put(ctx, c); err == nil {
			v.failures = 0
			return nil
		}
		if v.failures++; v.failures > maxFailures {
			return err
		}
		least = 1
	} else if errors.Is(err, errTooLarge) || outOfMemory(err) {
		least = 1
	}
	if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
		return err
	}
	if to-from <= least {
		return v.put(ctx, &chunk{kind: v.kind, next: to, lost: uint64(to - from)})
	}
	middle := from + (to-from)/2
	if err := v.copyRange(ctx, from, middle); err != nil {
		return err
	}
	return v.copyRange(ctx, middle, to)
}

// put appends rows and their progress. A full disk only delays it.
func (v *tableSalvage) put(ctx context.Context, c *chunk) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		leave, err := v.begin()
		if err != nil {
			return err
		}
		err = v.s.appendSalvaged(ctx, v.r, c)
		leave()
		if err == nil || !diskFull(err) {
			return err
		}
		v.s.updateRepair(v.r, func(r *Repair) { r.Problem = "waits for space on the disk" })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func diskFull(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, syscall.EDQUOT.Error())
}

// appendSalvaged appends the rows of a chunk, without rollups, which are salvaged
// themselves. The progress is part of the transaction: a row is salvaged once. The
// caller holds the write lock.
func (s *Store) appendSalvaged(ctx context.Context, r *Repair, c *chunk) error {
	seq, before := s.seq, int64(0)
	added := uint64(0)
	changed := map[int64]*record.Incident{}
	if err := s.dropKnownIncidents(ctx, &c.batch); err != nil {
		return err
	}
	err := inTransaction(ctx, s.writer, func() error {
		rows, err := s.replaceIncidents(ctx, c.batch.Incidents, &seq, changed)
		if err != nil {
			return err
		}
		before, added = seq, uint64(c.batch.Len()+len(c.rollups))
		if err := s.appendFlows(ctx, c.batch.Flows, &seq); err != nil {
			return err
		}
		if err := s.appendRaw(func(a *batchAppender) {
			a.appendBatch(&c.batch)
			a.appendRows(tableOf(store.Incidents), slices.Values(rows))
			a.appendRows(tableOf(c.kind), slices.Values(c.rollups))
		}, &seq); err != nil {
			return err
		}
		_, err = s.writer.ExecContext(ctx, `UPDATE weft_salvage SET next = ?, salvaged = salvaged + ?, lost = lost + ?, done = ? WHERE file = ? AND kind = ?`,
			c.next, added, c.lost, c.done, filepath.Base(r.File), string(c.kind))
		return err
	})
	if err != nil {
		s.flowIDs.abandonBatch()
		return fmt.Errorf("salvage rows of %s: %w", c.kind, err)
	}
	s.seq = seq
	s.extendBounds(&c.batch)
	s.includeBounds(c.kind, c.bounds)
	if len(c.rollups) > 0 {
		s.unmergedOf(c.kind).all = true
	}
	s.hot.Load().addBatch(&c.batch, before, batchSums{})
	s.ledger.update(changed)
	s.committedSeq.Store(seq)
	s.updateRepair(r, func(r *Repair) { r.Salvaged, r.Lost, r.Problem = r.Salvaged+added, r.Lost+c.lost, "" })
	return nil
}

// dropKnownIncidents removes incidents that the new file has: it has a later state
// of them.
func (s *Store) dropKnownIncidents(ctx context.Context, b *record.Batch) error {
	if len(b.Incidents) == 0 {
		return nil
	}
	ids := make([]string, len(b.Incidents))
	for i := range b.Incidents {
		ids[i] = b.Incidents[i].ID
	}
	rows, err := s.writer.QueryContext(ctx, `SELECT id FROM incidents WHERE list_contains(?::VARCHAR[], id)`, ids)
	if err != nil {
		return err
	}
	defer rows.Close()
	known := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		known[id] = true
	}
	b.Incidents = slices.DeleteFunc(b.Incidents, func(r record.Incident) bool { return known[r.ID] })
	return rows.Err()
}
