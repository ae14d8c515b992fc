package main

import (
	"context"
	"errors"
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
	filter, flow string
	hosts        []string
	length       time.Duration
	remove       string
	top          int
	pcapng       string
}

func (a *app) debugCommand() *cobra.Command {
	var f debugFlags
	cmd := &cobra.Command{
		Use:   "debug [FILE]",
		Short: "Mark packets at their senders, so that every switch mirrors them",
		Long: `Mark packets at their senders. Every switch on the path mirrors a marked packet,
regardless of sampling, so that each of them is traced completely. Hosts mark packets
that match --filter (header fields, see docs/filters.md), that belong to --flow, or
that --host sends, for a limited time. With --filter and --host only these hosts mark
matching packets. A host marks at most 1 Gb/s.

It lists the marks; weft trace shows the traces of marked packets.

With FILE it runs that scenario in the simulator, marks packets for all of its run,
and also lists the traces of marked packets. Otherwise a controller (--server) sets
the marks.

--pcapng writes the traces of marked packets to a file: of a scenario all of them, of
a controller the newest of the last hour (--top).

With FILE the exit code is 3 if packets were dropped at a known location, or looped.`,
		Example: `  weft debug --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --for 100ms --server http://127.0.0.1:8080
  weft debug --pcapng marked.pcapng --server http://127.0.0.1:8080
  weft debug examples/trace.yaml --host h0,h1 --filter 'ip.dst == h7' --pcapng marked.pcapng
  weft debug examples/trace.yaml --filter tcp.flags.syn -o json`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.filter, "filter", "", "mark packets that match")
	fl.StringVar(&f.flow, "flow", "", "mark packets of this flow, e.g. 'udp 10.0.0.2:10000 > 10.2.0.2:4791'")
	fl.StringSliceVar(&f.hosts, "host", nil,
		"mark all packets that these hosts send, e.g. h0,h1; with --filter only those that match")
	fl.DurationVar(&f.length, "for", time.Second, "how long to mark, by the fabric's clock")
	fl.StringVar(&f.remove, "remove", "", "remove the mark with this ID")
	fl.IntVar(&f.top, "top", 20, "maximum number of traces to list")
	fl.StringVar(&f.pcapng, "pcapng", "", "write the traces of marked packets to this file, with a comment on each hop")
	return cmd
}

// maxMark is also the API's limit.
const maxMark = time.Hour

func (f *debugFlags) run(a *app, cmd *cobra.Command, file string) error {
	if f.length < time.Millisecond || f.length > maxMark {
		return usagef("--for %v, want 1ms to %v", f.length, maxMark)
	}
	if err := errors.Join(checkTop(f.top), checkWritable("pcapng", f.pcapng)); err != nil {
		return err
	}
	requests, err := f.requests()
	if err != nil {
		return err
	}
	t, err := f.open(cmd, file, live.StartOptions{Need: "mirror"})
	if err != nil {
		return err
	}
	defer t.close()
	if t.isScenario() && len(requests) == 0 {
		return usagef("nothing to mark, want --filter, --flow or --host")
	}
	ctx := cmd.Context()
	if f.remove != "" {
		if err := t.RemoveMark(ctx, f.remove); err != nil {
			return t.explain(err)
		}
	}
	for _, r := range requests {
		if t.isScenario() && !cmd.Flags().Changed("for") { // for all of its run
			r.DurationMs = int(min(max(f.length, t.live.Duration()), maxMark).Milliseconds())
		}
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

// requests returns the marks that the flags ask for.
func (f *debugFlags) requests() (list []api.MarkRequest, err error) {
	r := api.MarkRequest{Filter: f.filter, DurationMs: int(f.length.Milliseconds())}
	switch {
	case f.flow != "" && len(f.hosts) > 0, f.flow != "" && f.filter != "":
		return nil, usagef("--flow with --host or --filter: want --flow alone, or --host and --filter")
	case f.flow != "":
		if r.Flow, err = model.ParseFlowKey(f.flow); err != nil {
			return nil, usagef("--flow: %w", err)
		}
		return []api.MarkRequest{r}, nil
	case f.filter != "":
		r.Hosts = f.hosts
		return []api.MarkRequest{r}, nil
	}
	for _, name := range f.hosts {
		r.Host = name
		list = append(list, r)
	}
	return list, nil
}

// markList is marks and the traces of marked packets; of a scenario also the
// packets that hosts marked, and the incidents of its run.
type markList struct {
	api.Page[api.Mark]
	Packets   *markedPackets     `json:"packets,omitempty"`
	Traces    []api.TraceSummary `json:"traces,omitempty"`
	Incidents []api.Incident     `json:"incidents,omitempty"`
}

// markedPackets counts packets of hosts that mark.
type markedPackets struct {
	Sent        uint64 `json:"sent"`
	Marked      uint64 `json:"marked"`
	RateLimited uint64 `json:"rate_limited"` // matching, but beyond the host's 1 Gb/s
}

// addTraces adds the traces of marked packets, and writes them to --pcapng.
func (f *debugFlags) addTraces(ctx context.Context, t *target, list *markList) (err error) {
	if !t.isScenario() && f.pcapng == "" {
		return nil
	}
	r, err := (&rangeFlags{}).parse(t)
	if err != nil {
		return err
	}
	q := api.TracesQuery{Range: r, Filter: "trace.debug", Paging: api.Paging{Limit: f.top}}
	page, err := t.matchingTraces(ctx, q)
	if err != nil {
		return t.explain(err)
	}
	list.Traces = page.Items
	if f.pcapng != "" {
		if err := t.writePcapng(ctx, f.pcapng, q, page); err != nil {
			return err
		}
	}
	if !t.isScenario() {
		return nil
	}
	s := t.live.MarkStats()
	list.Packets = &markedPackets{Sent: s.Seen, Marked: s.Marked, RateLimited: s.RateLimited}
	list.Incidents, err = t.runIncidents(ctx)
	return err
}

func (l *markList) print(w io.Writer, t *target) error {
	if len(l.Items) == 0 {
		fmt.Fprintln(w, "no marks; --flow, --host or --filter sets one")
	} else if err := l.printMarks(w, t); err != nil {
		return err
	}
	if p := l.Packets; p != nil {
		fmt.Fprintf(w, "\n%d of %d packets marked, %d matching packets not marked: over 1 Gb/s of their host\n",
			p.Marked, p.Sent, p.RateLimited)
	}
	if len(l.Traces) > 0 {
		fmt.Fprintln(w, "\ntraces of marked packets")
		if err := printTraceRows(w, t, l.Traces); err != nil {
			return err
		}
	}
	return t.printRunIncidents(w, l.Incidents)
}

func (l *markList) printMarks(w io.Writer, t *target) error {
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
		case len(m.Request.Hosts) > 0:
			what += " of " + strings.Join(m.Request.Hosts, ", ")
		}
		rows.row(m.ID, m.State, t.clock(m.Begin), t.clock(m.End), what, m.Traces, dash(m.Incident))
	}
	return rows.print(w)
}
