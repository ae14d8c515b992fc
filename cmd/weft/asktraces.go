package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
)

// tracesAsked is what weft trace asks a controller.
type tracesAsked struct {
	serverFlags
	id string
	q  api.TracesQuery
}

func (f *tracesAsked) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.id, "id", "", "of a controller: show the hops of this trace")
	fl.StringVar(&f.q.Flow, "flow", "", "of a controller: traces of this flow, as in 'udp 10.0.0.2:10000 > 10.2.0.2:4791'")
	fl.StringVar(&f.q.Node, "node", "", "of a controller: packets that passed a node")
	fl.StringVar(&f.q.End, "end", "", "of a controller: what became of them: arrived, short, looped, unsettled or unknown")
	fl.StringVar(&f.q.After, "after", "", "of a controller: go on behind an earlier answer")
}

// own are the flags that scenarios do not know.
func (f *tracesAsked) own() []string { return []string{"id", "flow", "node", "end", "after", "last"} }

// ask is weft trace of a controller.
func (f *traceFlags) ask(a *app, cmd *cobra.Command) (err error) {
	q := &f.asked
	c, err := q.client()
	if err := errors.Join(err, checkTop(f.top)); err != nil {
		return err
	}
	if q.q.Range, err = f.span.ofRecords(); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if q.id == "" {
		q.q.Filter, q.q.Limit = f.filter, f.top
		page, err := c.Traces(cmd.Context(), q.q)
		if err != nil {
			return q.advice(err)
		}
		if f.show == 0 {
			if f.pcapng != "" {
				return usagef("--pcapng is of one trace here, want --id or --show with it")
			}
			if a.format == "json" {
				return printJSON(out, page)
			}
			return printTracePage(out, &page)
		}
		if f.show > len(page.Items) {
			return usagef("--show %d, want at most %d, as many as there are", f.show, len(page.Items))
		}
		q.id = page.Items[f.show-1].ID
	}
	t, err := c.Trace(cmd.Context(), q.id)
	if err != nil {
		return q.advice(err)
	}
	if f.pcapng != "" {
		b, err := c.TracePcapng(cmd.Context(), q.id)
		if err != nil {
			return q.advice(err)
		}
		if err := os.WriteFile(f.pcapng, b, 0o666); err != nil {
			return err
		}
	}
	if a.format == "json" {
		return printJSON(out, t)
	}
	return printTrace(out, &t)
}

func printTracePage(w io.Writer, p *api.Page[api.TraceSummary]) error {
	if len(p.Items) == 0 {
		fmt.Fprintln(w, "no traces")
	} else if err := printTraceRows(w, summaryRows(p.Items)); err != nil {
		return err
	}
	more(w, p.Next)
	return nil
}

func summaryRows(list []api.TraceSummary) (rows []traceRow) {
	for i := range list {
		t := &list[i]
		latency := "-"
		if len(t.Path) > 1 {
			latency = time.Duration(t.LatencyNs).String()
		}
		rows = append(rows, traceRow{t.ID, clock(t.Time), t.Flow.Flow, t.Why, t.End, latency, wayText(t.Path)})
	}
	return rows
}

// printTrace shows a trace of a controller, hop below hop.
func printTrace(w io.Writer, t *api.Trace) error {
	fmt.Fprintf(w, "trace %s: %v, mirrored for %s at %s: %s\n", t.ID, t.Flow.Flow, t.Why, clock(t.Time), t.End)
	if t.LostMirrors > 0 {
		fmt.Fprintf(w, "mirrors: %d missing for certain\n", t.LostMirrors)
	}
	var rungs []rung
	for i := range t.Hops {
		h := &t.Hops[i]
		r := rung{
			node: h.Switch, in: h.In, out: port(h.Out), to: t.Flow.Flow.Dst.String(), ttl: h.TTL, dscp: h.DSCP, ecn: h.ECN,
			at: h.Time.Sub(t.Hops[0].Time), after: "-",
		}
		if i+1 < len(t.Hops) {
			r.out += " (" + t.Hops[i+1].Switch + ")"
			r.after = time.Duration(t.Hops[i+1].SinceNs).String()
		} else if t.End == "short" {
			r.about = unseen
		}
		if h.Depth > 1 {
			r.about = fmt.Sprintf("%d headers", h.Depth)
		}
		rungs = append(rungs, r)
	}
	return printRungs(w, rungs)
}
