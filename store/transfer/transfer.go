// Package transfer copies all records of one store into another, of any engine.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Source is a store to read.
type Source interface {
	Flows(ctx context.Context, q record.Query) (record.Page[record.FlowSlot], error)
	Losses(ctx context.Context, q record.Query) (record.Page[record.Loss], error)
	Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error)
	Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error)
	Counters(ctx context.Context, q record.Query) (record.Page[record.Counter], error)
	Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error)
	Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error)
	IncidentActions(ctx context.Context, incident string, limit int) ([]record.IncidentAction, error)
}

// Target is a store to write.
type Target interface {
	Source
	Append(ctx context.Context, b *record.Batch) error
	AppendIncidentAction(ctx context.Context, a record.IncidentAction) error
}

// ErrNotEmpty is returned if the target has records: those of the source could be there
// already.
var ErrNotEmpty = errors.New("the target has records, want an empty one")

// Counts are the copied records by kind.
type Counts map[store.Kind]uint64

// maxActions is how many actions of operators are copied: more than a controller holds.
const maxActions = 1 << 20

// batchSize is how many records are appended at once.
const batchSize = 20_000

// Copy copies all records. Steps of rollups that are older than the records they were
// made of are copied as one record each; the target's retention removes those, and keeps
// the steps.
func Copy(ctx context.Context, from Source, to Target) (Counts, error) {
	done := Counts{}
	if err := checkEmpty(ctx, to); err != nil {
		return done, err
	}
	var first firstError
	copyKind(ctx, &first, done, store.Flows, to, from.Flows, record.Query{},
		func(r *record.FlowSlot) time.Time { return r.Time }, func(b *record.Batch) *[]record.FlowSlot { return &b.Flows })
	copyKind(ctx, &first, done, store.Losses, to, from.Losses, record.Query{},
		func(r *record.Loss) time.Time { return r.Time }, func(b *record.Batch) *[]record.Loss { return &b.Losses })
	copyKind(ctx, &first, done, store.Traces, to, from.Traces, record.Query{},
		func(r *record.Trace) time.Time { return r.Time }, func(b *record.Batch) *[]record.Trace { return &b.Traces })
	copyKind(ctx, &first, done, store.Diagnoses, to, from.Diagnoses, record.Query{},
		func(r *record.Diagnosis) time.Time { return r.Time }, func(b *record.Batch) *[]record.Diagnosis { return &b.Diagnoses })
	copyKind(ctx, &first, done, store.Incidents, to, from.Incidents, record.Query{},
		func(r *record.Incident) time.Time { return r.Begin }, func(b *record.Batch) *[]record.Incident { return &b.Incidents })
	copySeries(ctx, &first, done, [3]store.Kind{store.Ports, store.PortSeconds, store.PortMinutes}, to, from.Ports,
		func(r *record.PortSample) time.Time { return r.Time }, func(b *record.Batch) *[]record.PortSample { return &b.Ports })
	copySeries(ctx, &first, done, [3]store.Kind{store.Counters, store.CounterSeconds, store.CounterMinutes}, to, from.Counters,
		func(r *record.Counter) time.Time { return r.Time }, func(b *record.Batch) *[]record.Counter { return &b.Counters })
	if first.err != nil {
		return done, first.err
	}
	actions, err := from.IncidentActions(ctx, "", maxActions)
	for i := 0; i < len(actions) && err == nil; i++ {
		err = to.AppendIncidentAction(ctx, actions[i])
	}
	return done, err
}

type firstError struct{ err error }

// queryFunc is one query method of a store.
type queryFunc[T any] func(ctx context.Context, q record.Query) (record.Page[T], error)

// copyKind copies the records that a query returns and returns the oldest time, or the
// end of the query's range.
func copyKind[T any](ctx context.Context, first *firstError, done Counts, kind store.Kind, to Target, query queryFunc[T], q record.Query,
	at func(*T) time.Time, list func(*record.Batch) *[]T,
) (oldest time.Time) {
	oldest = q.To
	// A store returns the newest first, and of equal times the last that arrived. Those of
	// one time are appended in the order in which they arrived; the order of different
	// times does not matter.
	var b record.Batch
	var same []T
	end := func() {
		slices.Reverse(same)
		*list(&b) = append(*list(&b), same...)
		same = same[:0]
	}
	flush := func() {
		if first.err == nil && b.Len() > 0 {
			if err := to.Append(ctx, &b); err != nil {
				first.err = fmt.Errorf("copy %s: %w", kind, err)
				return
			}
			done[kind] += uint64(b.Len())
			b = record.Batch{}
		}
	}
	for first.err == nil {
		page, err := query(ctx, q)
		if err != nil {
			first.err = fmt.Errorf("copy %s: %w", kind, err)
			return oldest
		}
		for i := range page.Items {
			r := &page.Items[i]
			if len(same) > 0 && !at(&same[0]).Equal(at(r)) {
				end()
				if b.Len() >= batchSize {
					flush()
				}
			}
			same, oldest = append(same, *r), at(r)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	end()
	flush()
	return oldest
}

// copySeries copies records, then the seconds before the first of them, then the minutes
// before those.
func copySeries[T any](ctx context.Context, first *firstError, done Counts, kinds [3]store.Kind, to Target, query queryFunc[T],
	at func(*T) time.Time, list func(*record.Batch) *[]T,
) {
	oldest := copyKind(ctx, first, done, kinds[0], to, query, record.Query{}, at, list)
	for i, step := range []time.Duration{store.Second, store.Minute} {
		before := time.Time{}
		if !oldest.IsZero() {
			before = time.Unix(0, store.FloorStep(store.Nanos(oldest), step))
		}
		oldest = copyKind(ctx, first, done, kinds[i+1], to, query, record.Query{To: before, Step: step}, at, list)
	}
}

// checkEmpty returns ErrNotEmpty for a store with records.
func checkEmpty(ctx context.Context, s Source) error {
	n := 0
	one := record.Query{Limit: 1}
	errs := errors.Join(
		count(ctx, s.Flows, one, &n), count(ctx, s.Losses, one, &n), count(ctx, s.Ports, one, &n), count(ctx, s.Traces, one, &n),
		count(ctx, s.Counters, one, &n), count(ctx, s.Diagnoses, one, &n), count(ctx, s.Incidents, one, &n),
		count(ctx, s.Ports, record.Query{Limit: 1, Step: store.Minute}, &n), count(ctx, s.Counters, record.Query{Limit: 1, Step: store.Minute}, &n),
	)
	if errs == nil && n > 0 {
		return ErrNotEmpty
	}
	return errs
}

func count[T any](ctx context.Context, query queryFunc[T], q record.Query, n *int) error {
	page, err := query(ctx, q)
	*n += len(page.Items)
	return err
}
