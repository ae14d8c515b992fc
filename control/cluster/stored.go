package cluster

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/model/record"
)

// dropStored removes the kinds of records from a batch that the store already has: those
// that a leader wrote before it died, and did not mark. A store keeps the records of one
// kind and batch together or not at all, so that the last one stands for all. Incidents
// replace their former state.
func dropStored(ctx context.Context, s core.Store, b *record.Batch) (err error) {
	drop(ctx, &err, &b.Flows, s.Flows, func(r *record.FlowSlot) time.Time { return r.Time },
		func(x, y *record.FlowSlot) bool { return x.Flow == y.Flow && x.Packets == y.Packets })
	drop(ctx, &err, &b.Losses, s.Losses, func(r *record.Loss) time.Time { return r.Time },
		func(x, y *record.Loss) bool { return x.Flow == y.Flow && x.From == y.From && x.Packets == y.Packets })
	drop(ctx, &err, &b.Ports, s.Ports, func(r *record.PortSample) time.Time { return r.Time },
		func(x, y *record.PortSample) bool { return x.Node == y.Node && x.Port == y.Port })
	drop(ctx, &err, &b.Counters, s.Counters, func(r *record.Counter) time.Time { return r.Time },
		func(x, y *record.Counter) bool { return x.Name == y.Name && x.Packets == y.Packets })
	drop(ctx, &err, &b.Traces, s.Traces, func(r *record.Trace) time.Time { return r.Time },
		func(x, y *record.Trace) bool { return x.ID == y.ID })
	drop(ctx, &err, &b.Diagnoses, s.Diagnoses, func(r *record.Diagnosis) time.Time { return r.Time },
		func(x, y *record.Diagnosis) bool { return x.ID == y.ID })
	return err
}

// drop empties a list whose last record is stored.
func drop[T any](ctx context.Context, err *error, list *[]T, query func(context.Context, record.Query) (record.Page[T], error),
	at func(*T) time.Time, same func(x, y *T) bool,
) {
	if *err != nil || len(*list) == 0 {
		return
	}
	last := &(*list)[len(*list)-1]
	q := record.Query{From: at(last).Truncate(time.Millisecond), To: at(last).Add(time.Millisecond)}
	for {
		page, e := query(ctx, q)
		if e != nil {
			*err = e
			return
		}
		for i := range page.Items {
			if at(&page.Items[i]).Equal(at(last)) && same(&page.Items[i], last) {
				*list = nil
				return
			}
		}
		if q.After = page.Next; q.After == "" {
			return
		}
	}
}
