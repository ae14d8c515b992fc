package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/scenario/live"
)

// flowsFlags are the flags of weft flows.
type flowsFlags struct {
	targetFlags
	timeRange rangeFlags
	query     api.FlowsQuery
	flow      string
	groupBy   string
	followed  bool
}

func (a *app) flowsCommand() *cobra.Command {
	var f flowsFlags
	cmd := &cobra.Command{
		Use:   "flows [FILE]",
		Short: "List flows with paths, rates and losses; show one hop by hop",
		Long: `List the flows that the switches counted (telemetry of kind flowset) in a time
range: path, rate and losses, in the order of --sort over the whole range. The first
lines say what of the range is stored. Below the flows it lists what the flow analyses found in
that range: forwarding faults, losses by link, ECMP imbalance, bursts and periodic
senders. --flow shows one flow hop by hop, and its path in every slot. --group-by adds
flows up by sender (host, rack), receiver (dst_host, dst_rack), job, egress port, path or
class (RoCEv2, tcp, udp, other).

With FILE it runs that scenario in the simulator and lists its flows, and the
incidents that Weft found from the reports of the switches alone. Otherwise it
queries a controller (--server).

With FILE the exit code is 3 if a forwarding loop, a black hole or a wrong route is
confirmed.`,
		Example: `  weft flows --last 1h --sort lost --top 5
  weft flows --follow --filter 'flow.lost > 0'
  weft flows --last 10m --group-by rack --filter 'flow.lost > 0'
  weft flows --last 1m --filter 'ip.src == 10.0.0.0/24' --sort lost
  weft flows --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --server https://weft.example:8443
  weft flows examples/flow-faults.yaml
  weft flows examples/flow-faults.yaml --flow 'udp 10.0.0.2:10000 > 10.0.1.2:9'
  weft flows examples/flowset.yaml -o json --top 20`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.query.Limit, "top", 10, "maximum number of flows to list")
	fl.StringVar(&f.flow, "flow", "",
		"show this flow: a 5-tuple 'udp 10.0.0.2:10000 > 10.2.0.2:4791', or two hosts 'h0>h9'")
	fl.StringVar(&f.query.Filter, "filter", "", "only flows that match, e.g. 'ip.src == 10.0.0.0/24' (docs/filters.md)")
	fl.StringVar(&f.query.Node, "node", "", "only flows through this node")
	fl.StringVar(&f.query.Sort, "sort", "bytes", "sort by bytes, packets, lost, lost_share, rate, duration or newest")
	knownValues(cmd, "sort", "bytes", "packets", "lost", "lost_share", "rate", "duration", "newest")
	fl.StringVar(&f.groupBy, "group-by", "", "add up flows by host, dst_host, rack, dst_rack, job, port, path or class")
	knownValues(cmd, "group-by", "host", "dst_host", "rack", "dst_rack", "job", "port", "path", "class")
	fl.StringVar(&f.query.After, "after", "", afterHelp)
	fl.BoolVarP(&f.followed, "follow", "f", false, followHelp)
	return cmd
}

func (f *flowsFlags) run(a *app, cmd *cobra.Command, file string) error {
	if err := checkFlowsTop(f.query.Limit, f.groupBy); err != nil {
		return err
	}
	t, err := f.open(cmd, file, live.StartOptions{Need: "flowset"})
	if err != nil {
		return err
	}
	defer t.close()
	if f.query.Range, err = f.timeRange.parse(t); err != nil {
		return err
	}
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	switch {
	case f.flow != "" && f.groupBy != "":
		return usagef("--flow and --group-by: want one of them")
	case f.followed && (f.flow != "" || f.groupBy != "" || f.query.After != "" || f.timeRange != (rangeFlags{})):
		return usagef("--follow is about now: want --filter, --node and no range, --flow or --group-by")
	case f.followed:
		return f.follow(a, cmd, t)
	case f.flow != "":
		return f.showFlows(a, cmd, t)
	case f.groupBy != "":
		return f.showGroups(a, cmd, t)
	}
	page, err := t.matchingFlows(cmd.Context(), f.query)
	if err != nil {
		return t.explainFilter(cmd.Context(), err, "flows", f.query.Filter)
	}
	out := flowList{FlowPage: page}
	r := f.query.Range
	if f.query.After != "" { // the range is that of the page
		r = api.Range{From: page.CoveredFrom, To: page.CoveredTo}
	}
	if out.Findings, err = t.flowFindings(cmd.Context(), r); err != nil {
		return t.explain(err)
	}
	if out.Incidents, err = t.runIncidents(cmd.Context()); err != nil {
		return err
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), out)
	} else {
		err = out.print(cmd.OutOrStdout(), t)
	}
	if t.isScenario() && out.Findings != nil && hasForwardingFault(out.Findings) {
		return errors.Join(err, errFault)
	}
	return errors.Join(err, faultIf(out.Incidents, "loop", "blackhole", "wrong-route"))
}

// checkFlowsTop: flows are read in pages, groups at once.
func checkFlowsTop(n int, groupBy string) error {
	if groupBy != "" {
		return checkTop(n)
	}
	return checkPagedTop(n)
}

// matchingFlows reads pages until there are as many flows as the query wants.
func (t *target) matchingFlows(ctx context.Context, q api.FlowsQuery) (all api.FlowPage, err error) {
	want := q.Limit
	q.Limit = min(want, maxTop)
	for range maxPages {
		page, err := t.Flows(ctx, q)
		if err != nil {
			return all, err
		}
		page.Items = append(all.Items, page.Items...)
		all = page
		if q.After, q.Limit = page.Next, min(want-len(all.Items), maxTop); page.Next == "" || q.Limit <= 0 {
			break
		}
	}
	return all, nil
}

// flowList is a page of flows, the findings of the flow analyses and, of a scenario,
// the incidents of its run.
type flowList struct {
	api.FlowPage
	Findings  *api.FlowFindings `json:"findings,omitempty"` // nil: the controller does not analyse flows
	Incidents []api.Incident    `json:"incidents,omitempty"`
}

func (l *flowList) print(w io.Writer, t *target) error {
	fmt.Fprintf(w, "flows from %s to %s\n", t.clock(l.CoveredFrom), t.clock(l.CoveredTo))
	printCoverage(w, t, &l.Coverage)
	if len(l.Items) == 0 {
		fmt.Fprintln(w, "no flows")
	} else if err := printFlowRows(w, l.Items); err != nil {
		return err
	}
	printFlowTotals(w, len(l.Items), &l.Totals)
	printNext(w, l.Next)
	if l.Findings == nil {
		fmt.Fprintln(w, "\nfindings: this controller does not analyse flows")
	} else if err := printFlowFindings(w, t, l.Findings); err != nil {
		return err
	}
	return t.printRunIncidents(w, l.Incidents)
}

func printFlowRows(w io.Writer, list []api.Flow) error {
	var t table
	t.row("FLOW", "HOSTS", "PACKETS", "BYTES", "RATE", "LOST", "PATH", "COUNTS")
	for i := range list {
		f := &list[i]
		t.row(f.Flow, dash(endpoints(f.FlowRef)), f.Packets, model.FormatBytes(model.Bytes(f.Bytes)),
			model.FormatRate(model.Rate(f.RateBps)), f.LostPackets, pathText(f.Path), exactness(f.Exact, f.Samples))
	}
	return t.print(w)
}

// exactness formats whether counts were decoded to the last packet, or else their error at
// 95 % confidence, where they are from packet samples.
func exactness(exact bool, samples uint64) string {
	switch {
	case exact:
		return "exact"
	case samples > 0:
		return fmt.Sprintf("±%.0f %%", 100*record.SampledError(samples))
	}
	return "estimated"
}

// maxPathHops is how many switches of a path are listed in a table.
const maxPathHops = 8

// pathText formats the switches of a path in one line.
func pathText(names []string) string {
	if more := len(names) - maxPathHops; more > 1 {
		return strings.Join(names[:maxPathHops], " > ") + fmt.Sprintf(" > … %d more", more)
	}
	return strings.Join(names, " > ")
}

// showFlows prints the flows that --flow names.
func (f *flowsFlags) showFlows(a *app, cmd *cobra.Command, t *target) error {
	keys, err := t.flowsNamed(cmd.Context(), f.flow, f.query.Range)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	for i, key := range keys {
		d, err := t.Flow(cmd.Context(), key, f.query.Range)
		if err != nil {
			return t.explain(err)
		}
		if a.format == "json" {
			err = printJSON(out, d)
		} else {
			if i > 0 {
				fmt.Fprintln(out)
			}
			err = printFlow(out, t, &d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printFlow prints one flow: hops, slots, losses, traces and diagnoses.
func printFlow(w io.Writer, t *target, d *api.FlowDetail) error {
	fmt.Fprintf(w, "%v  %s\n", d.Flow.Flow, endpoints(d.FlowRef))
	if d.Slots == 0 {
		fmt.Fprintln(w, "no switch counted this flow")
	} else {
		fmt.Fprintf(w, "%s to %s: %s, %s, %s; %d lost\n", t.clock(d.First), t.clock(d.Last), plural.Count(d.Packets, "packet"),
			model.FormatBytes(model.Bytes(d.Bytes)), model.FormatRate(model.Rate(d.RateBps)), d.LostPackets)
	}
	if !d.Complete {
		fmt.Fprintln(w, "the result is truncated; use a shorter range")
	}
	for _, section := range []struct {
		title string
		empty bool
		print func() error
	}{
		{"hops", len(d.Hops) == 0, func() error { return printFlowHops(w, d.Hops) }},
		{"path by slot", len(d.Series) == 0, func() error { return printFlowSlots(w, t, d.Series) }},
		{"losses", len(d.Losses) == 0, func() error { return printFlowLosses(w, t, d.Losses) }},
		{"traces", len(d.Traces) == 0, func() error { return printTraceRows(w, t, d.Traces) }},
		{"diagnoses", len(d.Diagnoses) == 0, func() error { return printDiagnosisRows(w, t, d.Diagnoses) }},
	} {
		if section.empty {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", section.title)
		if err := section.print(); err != nil {
			return err
		}
	}
	return nil
}

func printFlowHops(w io.Writer, list []api.FlowHop) error {
	var t table
	t.row("HOP", "SWITCH", "EGRESS PORT", "PACKETS", "LOST AFTER", "LATENCY", "QUEUE", "PAUSED")
	for i := range list {
		h := &list[i]
		out, latency, queue, paused := "-", "-", "-", "-"
		if h.Out != nil {
			out = portNumber(*h.Out)
		}
		if h.LatencyNs != nil {
			latency = model.FormatDuration(time.Duration(*h.LatencyNs))
		}
		if h.QueueBytes != nil {
			queue = model.FormatBytes(model.Bytes(*h.QueueBytes))
		}
		if h.PausedShare != nil {
			paused = model.FormatShare(*h.PausedShare)
		}
		t.row(i+1, h.Switch, out, h.Packets, h.LostPackets, latency, queue, paused)
	}
	return t.print(w)
}

// printFlowSlots prints the path and the packets at every switch, slot by slot.
func printFlowSlots(w io.Writer, t *target, list []api.FlowPoint) error {
	var rows table
	rows.row("SLOT", "PACKETS", "BYTES", "COUNTS", "SWITCH(PACKETS)")
	for i := range list {
		p := &list[i]
		var hops []string
		for _, h := range p.Path {
			hops = append(hops, fmt.Sprintf("%s(%d)", h.Switch, h.Packets))
		}
		rows.row(t.clock(p.Time), p.Packets, model.FormatBytes(model.Bytes(p.Bytes)), exactness(p.Exact, p.Samples),
			pathText(hops))
	}
	return rows.print(w)
}

func printFlowLosses(w io.Writer, t *target, list []api.FlowLoss) error {
	var rows table
	rows.row("TIME", "FROM", "TO", "LOST", "SENT", "PATTERN")
	for _, l := range list {
		rows.row(t.clock(l.Time), l.From, dash(l.To), l.Packets, l.Sent, l.Pattern)
	}
	return rows.print(w)
}

// portNumber formats a port; 0 is unknown.
func portNumber(p model.PortID) string {
	if p == 0 {
		return "-"
	}
	return fmt.Sprint(p)
}

// faultIf returns errFault if one of the incidents has one of the causes.
func faultIf(list []api.Incident, causes ...string) error {
	if slices.ContainsFunc(list, func(in api.Incident) bool { return slices.Contains(causes, in.Cause) }) {
		return errFault
	}
	return nil
}
