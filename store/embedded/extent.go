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

// extent is two instants between which all rows of a kind lie: to ask DuckDB for
// them costs a look at all of a long table. Removal does not move them.
type extent struct{ oldest, newest int64 }

// nowhere is the extent of an empty table.
var nowhere = extent{math.MaxInt64, math.MinInt64}

func (e extent) join(o extent) extent {
	return extent{min(e.oldest, o.oldest), max(e.newest, o.newest)}
}

// readExtents asks once, when a file is opened.
func (s *Store) readExtents(ctx context.Context) error {
	all := map[store.Kind]extent{}
	for _, kind := range store.Kinds() {
		var oldest, newest *int64
		err := s.writer.QueryRowContext(ctx, fmt.Sprintf(`SELECT epoch_ns(min(time)), epoch_ns(max(time)) FROM %s`, kind)).Scan(&oldest, &newest)
		if err != nil {
			return err
		}
		if all[kind] = nowhere; oldest != nil {
			all[kind] = extent{*oldest, *newest}
		}
	}
	s.extents.Store(&all)
	return nil
}

func (s *Store) extent(kind store.Kind) extent { return (*s.extents.Load())[kind] }

// extend takes the rows of a batch in.
func (s *Store) extend(b *record.Batch) {
	all := maps.Clone(*s.extents.Load())
	for kind, e := range map[store.Kind]extent{
		store.Flows:     extentOf(b.Flows, func(r *record.FlowSlot) time.Time { return r.Time }),
		store.Losses:    extentOf(b.Losses, func(r *record.Loss) time.Time { return r.Time }),
		store.Ports:     extentOf(b.Ports, func(r *record.PortSample) time.Time { return r.Time }),
		store.Traces:    extentOf(b.Traces, func(r *record.Trace) time.Time { return r.Time }),
		store.Counters:  extentOf(b.Counters, func(r *record.Counter) time.Time { return r.Time }),
		store.Diagnoses: extentOf(b.Diagnoses, func(r *record.Diagnosis) time.Time { return r.Time }),
	} {
		all[kind] = all[kind].join(e)
		if e == nowhere {
			continue
		}
		for k, r := range rollups {
			if r.of == kind {
				all[k] = all[k].join(extent{store.Floor(e.oldest, r.step), store.Floor(e.newest, r.step)})
			}
		}
	}
	s.extents.Store(&all)
}

func extentOf[T any](records []T, at func(*T) time.Time) extent {
	e := nowhere
	for i := range records {
		ns := at(&records[i]).UnixNano()
		e = e.join(extent{ns, ns})
	}
	return e
}
