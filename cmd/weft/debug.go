package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// debugFlags are the flags of weft debug.
type debugFlags struct {
	targetFlags
	filter, flow, host string
	length             time.Duration
	remove             string
	top                int
}

func (a *app) debugCommand() *cobra.Command {
	var f debugFlags
	cmd := &cobra.Command{
		Use:   "debug [FILE]",
		Short: "Mark packets at their senders, so that every switch mirrors them",
		Long: `Mark packets at their senders. Every switch on the path mirrors a marked packet,
regardless of sampling, so that each of them is traced completely. Hosts mark packets
that match --filter (header fields, see docs/filters.md), that belong to --flow, or
that --host sends, for a limited time. A host marks at most 1 Gb/s.

It lists the marks; weft trace shows the traces of marked packets.

With FILE it runs that scenario in the simulator, marks packets for all of its run,
and also lists the traces of marked packets. Otherwise a controller (--server) sets
the marks.

With FILE the exit code is 3 if packets were dropped at a known location, or looped.`,
		Example: `  weft debug --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --for 100ms --server http://127.0.0.1:8080
  weft debug examples/trace.yaml --filter 'ip.src == h0 && ip.dst == h7'
  weft debug examples/trace.yaml --filter tcp.flags.syn -o json`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.filter, "filter", "", "mark packets that match")
	fl.StringVar(&f.flow, "flow", "", "mark packets of this flow, e.g. 'udp 10.0.0.2:10000 > 10.2.0.2:4791'")
	fl.StringVar(&f.host, "host", "", "mark all packets that this host sends")
	fl.DurationVar(&f.length, "for", time.Second, "how long to mark, by the fabric's clock")
	fl.StringVar(&f.remove, "remove", "", "remove the mark with this ID")
	fl.IntVar(&f.top, "top", 20, "in a scenario: maximum number of traces to list")
	return cmd
}

// maxMark is also the API's limit.
const maxMark = time.Hour

func (f *debugFlags) run(a *app, cmd *cobra.Command, file string) error {
	if f.length < time.Millisecond || f.length > maxMark {
		return usagef("--for %v, want 1ms to %v", f.length, maxMark)
	}
	if err := checkTop(f.top); err != nil {
		return err
	}
	r := api.MarkRequest{Host: f.host, Filter: f.filter, DurationMs: int(f.length.Milliseconds())}
	if f.flow != "" {
		var err error
		if r.Flow, err = model.ParseFlowKey(f.flow); err != nil {
			return usagef("--flow: %w", err)
		}
	}
	sets := f.filter != "" || f.flow != "" || f.host != ""
	t, err := f.open(cmd, file, live.StartOptions{Need: "mirror"})
	if err != nil {
		return err
	}
	defer t.close()
	if t.isScenario() && !sets {
		return usagef("nothing to mark, want --filter, --flow or --host")
	}
	ctx := cmd.Context()
	if f.remove != "" {
		if err := t.RemoveMark(ctx, f.remove); err != nil {
			return t.explain(err)
		}
	}
	if sets {
		if _, err := t.SetMark(ctx, r); err != nil {
			return t.explainFilter(ctx, err, "packets", f.filter)
		}
	}
	if err := t.finish(ctx); err != nil {
		return err
	}
	list := markList{}
	if list.Items, err = t.Marks(ctx); err != nil {
		return t.explain(err)
	}
	if err := f.addTraces(ctx, t, &list); err != nil {
		return err
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), list)
	} else {
		err = list.print(cmd.OutOrStdout(), t)
	}
	if err != nil {
		return err
	}
	return faultIf(list.Incidents, "loop", "blackhole", "loss")
}

// markList is marks and, of a scenario, the traces of marked packets and the
// incidents of its run.
type markList struct {
	api.Page[api.Mark]
	Traces    []api.TraceSummary `json:"traces,omitempty"`
	Incidents []api.Incident     `json:"incidents,omitempty"`
}

// addTraces adds the traces of a scenario's marked packets.
func (f *debugFlags) addTraces(ctx context.Context, t *target, list *markList) (err error) {
	if !t.isScenario() {
		return nil
	}
	r, err := (&rangeFlags{}).parse(t)
	if err != nil {
		return err
	}
	page, err := t.matchingTraces(ctx, api.TracesQuery{
		Range: r, Filter: "trace.debug",
		Paging: api.Paging{Limit: f.top},
	})
	if err != nil {
		return t.explain(err)
	}
	list.Traces = page.Items
	list.Incidents, err = t.runIncidents(ctx)
	return err
}

func (l *markList) print(w io.Writer, t *target) error {
	if len(l.Items) == 0 {
		_, err := fmt.Fprintln(w, "no marks; --flow, --host or --filter sets one")
		return err
	}
	var rows table
	rows.row("ID", "STATE", "START", "END", "MARKS", "TRACES", "INCIDENT")
	for i := range l.Items {
		m := &l.Items[i]
		what := m.Request.Filter
		switch {
		case m.Request.Host != "":
			what = "all packets of " + m.Request.Host
		case !m.Request.Flow.IsZero():
			what = m.Request.Flow.String()
		}
		rows.row(m.ID, m.State, t.clock(m.Begin), t.clock(m.End), what, m.Traces, dash(m.Incident))
	}
	if err := rows.print(w); err != nil {
		return err
	}
	if len(l.Traces) > 0 {
		fmt.Fprintln(w, "\ntraces of marked packets")
		if err := printTraceRows(w, t, l.Traces); err != nil {
			return err
		}
	}
	return t.printRunIncidents(w, l.Incidents)
}
