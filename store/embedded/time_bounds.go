package embedded

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// timeBounds are the oldest and the newest time of all rows of a kind: to query
// DuckDB for them costs a scan of a long table. Removal changes only those of flows,
// which answers name.
type timeBounds struct{ oldest, newest int64 }

// emptyBounds is the extent of an empty table.
var emptyBounds = timeBounds{math.MaxInt64, math.MinInt64}

func (e timeBounds) union(o timeBounds) timeBounds {
	return timeBounds{min(e.oldest, o.oldest), max(e.newest, o.newest)}
}

// loadTimeBounds queries them once, when a file is opened.
func (s *Store) loadTimeBounds(ctx context.Context) error {
	all := map[store.Kind]timeBounds{}
	for _, kind := range store.Kinds() {
		var oldest, newest *int64
		err := s.writer.QueryRowContext(ctx, fmt.Sprintf(`SELECT epoch_ns(min(time)), epoch_ns(max(time)) FROM %s`, tableOf(kind))).Scan(&oldest, &newest)
		if err != nil {
			return err
		}
		if all[kind] = emptyBounds; oldest != nil {
			all[kind] = timeBounds{*oldest, *newest}
		}
	}
	s.extents.Store(&all)
	return nil
}

// boundFlows queries the bounds of flows again, after a removal.
func (s *Store) boundFlows(ctx context.Context) error {
	var oldest, newest *int64
	err := s.writer.QueryRowContext(ctx, `SELECT epoch_ns(min(time)), epoch_ns(max(time)) FROM flow_rows`).Scan(&oldest, &newest)
	if err != nil {
		return err
	}
	all := maps.Clone(*s.extents.Load())
	if all[store.Flows] = emptyBounds; oldest != nil {
		all[store.Flows] = timeBounds{*oldest, *newest}
	}
	s.extents.Store(&all)
	return nil
}

// flowBounds are the times of the first and the last row of flows; zero without any.
func (s *Store) flowBounds() (from, to time.Time) {
	b := s.boundsOfKind(store.Flows)
	if b == emptyBounds {
		return from, to
	}
	return time.Unix(0, b.oldest).UTC(), time.Unix(0, b.newest).UTC()
}

func (s *Store) boundsOfKind(kind store.Kind) timeBounds { return (*s.extents.Load())[kind] }

// extendBounds includes the rows of a batch.
func (s *Store) extendBounds(b *record.Batch) {
	all := maps.Clone(*s.extents.Load())
	for kind, e := range map[store.Kind]timeBounds{
		store.Flows:     boundsOf(b.Flows, func(r *record.FlowSlot) time.Time { return r.Time }),
		store.Losses:    boundsOf(b.Losses, func(r *record.Loss) time.Time { return r.Time }),
		store.Ports:     boundsOf(b.Ports, func(r *record.PortSample) time.Time { return r.Time }),
		store.Traces:    boundsOf(b.Traces, func(r *record.Trace) time.Time { return r.Time }),
		store.Counters:  boundsOf(b.Counters, func(r *record.Counter) time.Time { return r.Time }),
		store.Diagnoses: boundsOf(b.Diagnoses, func(r *record.Diagnosis) time.Time { return r.Time }),
	} {
		all[kind] = all[kind].union(e)
		if e == emptyBounds {
			continue
		}
		for k, r := range rollups {
			if r.of == kind {
				all[k] = all[k].union(timeBounds{store.FloorStep(e.oldest, r.step), store.FloorStep(e.newest, r.step)})
			}
		}
	}
	s.extents.Store(&all)
}

// includeBounds includes rows of a kind.
func (s *Store) includeBounds(kind store.Kind, e timeBounds) {
	if e == (timeBounds{}) || e == emptyBounds {
		return
	}
	all := maps.Clone(*s.extents.Load())
	all[kind] = all[kind].union(e)
	s.extents.Store(&all)
}

func boundsOf[T any](records []T, at func(*T) time.Time) timeBounds {
	e := emptyBounds
	for i := range records {
		ns := at(&records[i]).UnixNano()
		e = e.union(timeBounds{ns, ns})
	}
	return e
}
