package embedded

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Append stores all of the batch or none of it. When it returns nil the batch is
// on disk: it survives a crash of the process. It keeps no reference to b.
func (s *Store) Append(ctx context.Context, b *record.Batch) error {
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	leave, err := s.beginWork()
	if err != nil {
		return err
	}
	defer leave()
	s.write.Lock()
	defer s.write.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.Len() == 0 {
		return nil
	}
	seq, before := s.seq, int64(0)
	sums, changed := newBatchSums(b), map[int64]*record.Incident{}
	err = inTransaction(ctx, s.writer, func() error {
		incidents, err := s.replaceIncidents(ctx, b.Incidents, &seq, changed)
		if err != nil {
			return err
		}
		before = seq
		if err := s.appendFlows(ctx, b.Flows, &seq); err != nil {
			return err
		}
		return s.appendRaw(func(a *batchAppender) {
			a.appendBatch(b)
			a.appendRows(tableOf(store.Incidents), slices.Values(incidents))
			a.appendRollups(sums)
		}, &seq)
	})
	if err != nil {
		s.flowIDs.abandonBatch()
		if damagedInUse(err) || invalidated(err) {
			s.damaged.Store(&err) // for the next Maintain
		}
		if unavailable(err) {
			err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		return fmt.Errorf("append %d records to store %s: %w", b.Len(), s.path, err)
	}
	s.seq = seq
	s.extendBounds(b)
	hot := s.hot.Load()
	hot.addBatch(b, before, sums)
	hot.seconds.addBatch(b, s.flowBatch.pathOf, before)
	s.ledger.update(changed)
	s.committedSeq.Store(seq) // after the cache: readers of the number find the record
	s.noteSteps(sums)
	s.mergeLongRollups(ctx)
	return nil
}

// replaceIncidents removes the incidents that a later state replaces and returns
// the rows to append, and sets what changed by sequence number. An incident keeps
// its first number, so that an update neither moves it in a walk nor hides it from
// one.
func (s *Store) replaceIncidents(ctx context.Context, incidents []record.Incident, seq *int64,
	changed map[int64]*record.Incident,
) ([][]driver.Value, error) {
	if len(incidents) == 0 {
		return nil, nil
	}
	newest := map[string]*record.Incident{}
	var ids []string
	for i := range incidents {
		r := &incidents[i]
		if newest[r.ID] == nil {
			ids = append(ids, r.ID)
		}
		newest[r.ID] = r
	}
	rows, err := s.writer.QueryContext(ctx, `DELETE FROM incidents WHERE list_contains(?::VARCHAR[], id) RETURNING id, seq`, ids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	numbers := map[string]int64{}
	for rows.Next() {
		var id string
		var n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		numbers[id] = n
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	out := make([][]driver.Value, len(ids))
	for i, id := range ids {
		n, known := numbers[id]
		if !known {
			*seq++
			n = *seq
		}
		out[i], changed[n] = incidentTable.row(newest[id], n), newest[id]
	}
	return out, nil
}

// batchAppender appends to tables within a transaction; the first error sticks.
type batchAppender struct {
	conn driver.Conn
	seq  *int64
	err  error
}

// appendRaw runs do with an appender of the writer's connection, within its
// transaction.
func (s *Store) appendRaw(do func(*batchAppender), seq *int64) error {
	return s.writer.Raw(func(conn any) error {
		a := batchAppender{conn: conn.(driver.Conn), seq: seq}
		do(&a)
		return a.err
	})
}

// appendBatch appends all records but flows, see appendFlows, and incidents, which
// replace others.
func (a *batchAppender) appendBatch(b *record.Batch) {
	appendRecords(a, &lossTable, b.Losses)
	appendRecords(a, &portTable, b.Ports)
	appendRecords(a, &traceTable, b.Traces)
	appendRecords(a, &counterTable, b.Counters)
	appendRecords(a, &diagnosisTable, b.Diagnoses)
}

func appendRecords[T any](a *batchAppender, t *table[T], records []T) {
	a.appendRows(tableOf(t.kind), func(yield func([]driver.Value) bool) {
		for i := range records {
			*a.seq++
			if !yield(t.row(&records[i], *a.seq)) {
				return
			}
		}
	})
}

// yieldEvery is the number of rows after which an append yields its core: clients
// wait for queries, but not for appends.
const yieldEvery = 64

func (a *batchAppender) appendRows(table string, rows func(yield func([]driver.Value) bool)) {
	if a.err != nil {
		return
	}
	var to *duckdb.Appender
	n := 0
	for row := range rows {
		if n++; n%yieldEvery == 0 {
			runtime.Gosched()
		}
		if to == nil {
			if to, a.err = duckdb.NewAppenderFromConn(a.conn, "", table); a.err != nil {
				return
			}
		}
		if a.err = to.AppendRow(row...); a.err != nil {
			break
		}
	}
	if to != nil {
		// Close flushes. After an error the flushed rows are rolled back.
		a.err = errors.Join(a.err, to.Close())
	}
	if a.err != nil {
		a.err = fmt.Errorf("%s: %w", table, a.err)
	}
}
