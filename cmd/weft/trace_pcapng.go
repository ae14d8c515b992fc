package main

import (
	"context"
	"io"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/tracepcap"
	"github.com/weft-telemetry/weft/model/record"
)

// writePcapng writes the traces of a page of a query to a file, in the order of the
// list; of a scenario also those of all pages after it.
func (t *target) writePcapng(ctx context.Context, path string, q api.TracesQuery,
	page api.Page[api.TraceSummary],
) error {
	return writeFile(path, func(file io.Writer) error {
		w := tracepcap.NewWriter(file, "traces: "+q.Filter)
		for {
			for i := range page.Items {
				one, err := t.Trace(ctx, page.Items[i].ID)
				if err != nil {
					return t.explain(err)
				}
				r := traceRecord(&one)
				if err := w.Write(&r); err != nil {
					return err
				}
			}
			if page.Next == "" || !t.isScenario() {
				return w.Flush()
			}
			q.After, q.Limit = page.Next, maxTop
			var err error
			if page, err = t.Traces(ctx, q); err != nil {
				return t.explain(err)
			}
		}
	})
}

// traceRecord returns what a pcapng file holds of a trace.
func traceRecord(t *api.Trace) record.Trace {
	r := record.Trace{Flow: t.Flow.Flow, Why: t.Why, End: t.End, Frame: t.Frame}
	for i := range t.Hops {
		h := &t.Hops[i]
		r.Hops = append(r.Hops, record.TraceHop{
			Time: h.Time, Switch: h.Switch, In: h.In, Out: h.Out, TTL: h.TTL, DSCP: h.DSCP, ECN: h.ECN, Depth: h.Depth,
		})
	}
	return r
}
