package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// portsFlags are the flags of weft ports.
type portsFlags struct {
	targetFlags
	timeRange  rangeFlags
	port, node string
	step       time.Duration
	heat       bool
	metric     string
	steps, top int
	svg        string
	congested  string
	silent     time.Duration
	adaptive   bool
	probeIdle  bool
	now        bool
	window     time.Duration
}

func (a *app) portsCommand() *cobra.Command {
	var f portsFlags
	cmd := &cobra.Command{
		Use:   "ports [FILE]",
		Short: "Show queue depth, latency, load and pauses of every port",
		Long: `Show queue depth, switch latency, load, PFC pauses and losses of every port, from
the labels that switches write into packets (telemetry of kind label) and from port
counters.

--now prints the newest state that switches wrote of their ports instead, read
straight from the collector's memory: queues, load, pauses, discards.

--port shows one port over time. --congested lists the ports whose queue reached a
depth. --heat draws a heat map of all ports over time. --silent lists ports that carry
traffic, but that labels have not reported for a time (exit code 3 if there are any).

With FILE it runs that scenario in the simulator, and also prints how many ports
labels reported, and the label overhead: the bandwidth of labels on the links and of
their reports to the collector. Otherwise it queries a controller (--server).`,
		Example: `  weft ports --server http://127.0.0.1:8080
  weft ports --now
  weft ports --port leaf0:Ethernet8 --last 10s
  weft ports --heat --metric load_bps --last 1m --svg heat.svg
  weft ports examples/labels.yaml
  weft ports examples/labels.yaml --congested 100KB --from 1ms --to 2ms
  weft ports examples/labels.yaml --heat --svg heat.svg
  weft ports examples/labels.yaml --silent 500us
  weft ports examples/labels.yaml --adaptive --window 200us
  weft ports examples/labels.yaml --probe-idle`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.now, "now", false, "the newest state that switches wrote, from the collector's memory")
	fl.StringVar(&f.port, "port", "", "show one port over time, e.g. leaf0:Ethernet8, leaf0:3 or 'leaf0>spine1'")
	fl.StringVar(&f.node, "node", "", "only ports of this node")
	fl.DurationVar(&f.step, "step", 0, "with --port: minimum time between samples; 0 chooses it by the range")
	fl.BoolVar(&f.heat, "heat", false, "draw a heat map of ports over time")
	fl.StringVar(&f.metric, "metric", "queue_bytes", "with --heat: queue_bytes, latency_ns, load_bps or paused_share")
	knownValues(cmd, "metric", "queue_bytes", "latency_ns", "load_bps", "paused_share")
	fl.IntVar(&f.steps, "steps", 60, "with --heat: number of columns")
	fl.IntVar(&f.top, "top", 200, "with --heat: show the N ports with the highest values")
	fl.StringVar(&f.svg, "svg", "", "with --heat: write the heat map to this file")
	fl.StringVar(&f.congested, "congested", "", "list ports whose queue reached this depth, e.g. 100KB")
	fl.BoolVar(&f.adaptive, "adaptive", false, "in a scenario: silent ports write labels more often")
	fl.BoolVar(&f.probeIdle, "probe-idle", false, "in a scenario: hosts send packets over ports without traffic, to be labelled")
	fl.DurationVar(&f.window, "window", 0,
		"in a scenario: window of label coverage (default: twice the labelling interval)")
	fl.DurationVar(&f.silent, "silent", 0,
		"list ports that carry traffic but were not reported by labels for this long, e.g. 100ms")
	return cmd
}

func (f *portsFlags) run(a *app, cmd *cobra.Command, file string) error {
	switch {
	case f.step < 0:
		return usagef("--step %v, want 0 or more", f.step)
	case f.steps < 1 || f.steps > maxHeatSteps:
		return usagef("--steps %d, want 1 to %d", f.steps, maxHeatSteps)
	case cmd.Flags().Changed("silent") && f.silent <= 0:
		return usagef("--silent %v, want more than 0", f.silent)
	case f.window < 0:
		return usagef("--window %v, want 0 or more", f.window)
	case f.svg != "" && !f.heat:
		return usagef("--svg needs --heat")
	}
	selected := 0
	for _, set := range []bool{f.now, f.heat, f.port != "", f.congested != "", f.silent > 0} {
		if set {
			selected++
		}
	}
	if selected > 1 {
		return usagef("--now, --port, --congested, --heat and --silent: want one of them")
	}
	var depth model.Bytes
	var err error
	if f.congested != "" {
		if depth, err = model.ParseBytes(f.congested); err != nil {
			return usagef("--congested: %w", err)
		} else if depth < 0 {
			return usagef("--congested %s, want 0 or more", f.congested)
		}
	}
	if err := errors.Join(checkTop(f.top), checkWritable("svg", f.svg)); err != nil {
		return err
	}
	need := "label"
	if f.now {
		need = ""
	}
	t, err := f.open(cmd, file, live.StartOptions{Need: need, PortStates: f.now, AdaptiveLabels: f.adaptive, ProbeIdlePorts: f.probeIdle, LabelWindow: f.window})
	if err != nil {
		return err
	}
	defer t.close()
	for _, name := range []string{"adaptive", "probe-idle", "window"} {
		if cmd.Flags().Changed(name) && !t.isScenario() {
			return usagef("--%s needs a scenario", name)
		}
	}
	r, err := f.timeRange.parse(t)
	if err != nil {
		return err
	}
	if selected == 0 || f.silent > 0 || f.now {
		if f.timeRange != (rangeFlags{}) {
			return usagef("--last, --from and --to need --port, --congested or --heat; the list of ports is the current state")
		}
	}
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	switch {
	case f.now:
		return f.printNow(a, cmd, t)
	case f.heat:
		err = f.printHeatmap(a, cmd, t, r)
	case f.congested != "":
		err = f.printCongested(a, cmd, t, r, depth)
	case f.port != "":
		return f.printPort(a, cmd, t, r)
	default:
		err = f.printState(a, cmd, t)
	}
	if a.format != "json" && (err == nil || errors.Is(err, errFault)) {
		t.printLabelStats(cmd.OutOrStdout())
	}
	return err
}

// maxHeatSteps is also the API's limit.
const maxHeatSteps = 600

// isSilent reports whether a port carries traffic that no label reported for a time.
func isSilent(p *api.PortState, after time.Duration) bool {
	return p.LoadBps > 0 && (p.AgeMs < 0 || p.AgeMs > float64(after)/float64(time.Millisecond))
}

// portList is the state of ports and, of a scenario, the coverage and overhead of
// labels.
type portList struct {
	api.State
	Labels *live.LabelStats `json:"labels,omitempty"`
}

// printState prints the current state of all ports, or the silent ones.
func (f *portsFlags) printState(a *app, cmd *cobra.Command, t *target) error {
	topology, err := t.Topology(cmd.Context())
	if err != nil {
		return t.explain(err)
	}
	state, err := t.State(cmd.Context(), time.Time{})
	if err != nil {
		return t.explain(err)
	}
	names := portNames(&topology)
	known := f.node == ""
	shown := portList{State: api.State{
		Time: state.Time, Nodes: state.Nodes, Ports: []api.PortState{},
		LabelCoverage: state.LabelCoverage,
	}, Labels: t.labelStats()}
	var rows table
	rows.row("PORT", "QUEUE", "LATENCY", "LOAD", "PAUSED", "LOST", "AGE")
	unreported := 0
	for i := range state.Ports {
		p := &state.Ports[i]
		if f.node != "" && p.Node != f.node || f.silent > 0 && !isSilent(p, f.silent) {
			known = known || p.Node == f.node
			continue
		}
		known = true
		shown.Ports = append(shown.Ports, *p)
		name := names[api.PortRef{Node: p.Node, Port: p.Port}]
		if p.AgeMs < 0 {
			unreported++
			if f.silent > 0 {
				rows.row(name, "-", "-", model.FormatShare(p.LoadShare), model.FormatShare(p.PausedShare),
					p.LostPackets, "never reported")
			}
			continue
		}
		rows.row(name, model.FormatBytes(model.Bytes(p.QueueBytes)), model.FormatDuration(time.Duration(p.LatencyNs)),
			model.FormatShare(p.LoadShare), model.FormatShare(p.PausedShare), p.LostPackets,
			model.FormatDuration(time.Duration(p.AgeMs*float64(time.Millisecond))))
	}
	if !known {
		return usagef("--node %q: no such node; weft ports lists them", f.node)
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), shown)
	} else {
		err = f.printPortTable(cmd.OutOrStdout(), t, &rows, &shown.State, unreported)
		if unreported == len(shown.Ports) {
			t.explainEmpty(cmd.Context(), cmd.OutOrStdout())
		}
	}
	if err == nil && f.silent > 0 && len(shown.Ports) > 0 {
		err = errFault
	}
	return err
}

func (f *portsFlags) printPortTable(w io.Writer, t *target, rows *table, shown *api.State, unreported int) error {
	if f.silent > 0 && len(shown.Ports) == 0 {
		_, err := fmt.Fprintf(w, "labels reported every port that carries traffic in the last %v before %s\n",
			f.silent, t.clock(shown.Time))
		return err
	}
	if err := rows.print(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s at %s; labels never reported %d of them\n", plural.Count(len(shown.Ports), "port"),
		t.clock(shown.Time), unreported)
	if shown.LabelCoverage != nil && !t.isScenario() {
		fmt.Fprintf(w, "label coverage %s\n", model.FormatShare(*shown.LabelCoverage))
	}
	return nil
}

// printCongested lists the ports whose queue reached a depth in the range.
func (f *portsFlags) printCongested(a *app, cmd *cobra.Command, t *target, r api.Range, depth model.Bytes) error {
	m, err := t.Heatmap(cmd.Context(), api.HeatmapQuery{
		Range: r, Metric: "queue_bytes", Steps: maxHeatSteps,
		Top: maxTop, Node: f.node,
	})
	if err != nil {
		return t.explain(err)
	}
	type congestedPort struct {
		Port       string    `json:"port"`
		QueueBytes int64     `json:"queue_bytes"` // maximum in the range
		Time       time.Time `json:"time"`        // of the maximum
	}
	list := []congestedPort{}
	for i := range m.Ports {
		one := congestedPort{Port: portName(&m.Ports[i]), QueueBytes: -1}
		for step, v := range m.Values[i] {
			if v != nil && int64(*v) > one.QueueBytes {
				one.QueueBytes, one.Time = int64(*v), m.From.Add(time.Duration(step)*time.Duration(m.StepNs))
			}
		}
		if one.QueueBytes >= int64(depth) {
			list = append(list, one)
		}
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), map[string]any{"congested": list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "no queue reached %s\n", f.congested)
		return err
	}
	var rows table
	rows.row("PORT", "MAX QUEUE", "TIME")
	for _, p := range list {
		rows.row(p.Port, model.FormatBytes(model.Bytes(p.QueueBytes)), t.clock(p.Time))
	}
	return rows.print(cmd.OutOrStdout())
}

// printHeatmap draws a metric of all ports over time.
func (f *portsFlags) printHeatmap(a *app, cmd *cobra.Command, t *target, r api.Range) error {
	m, err := t.Heatmap(cmd.Context(), api.HeatmapQuery{
		Range: r, Metric: f.metric, Steps: f.steps, Top: f.top,
		Node: f.node,
	})
	if err != nil {
		return t.explain(err)
	}
	h := plot.Heat{
		Title: m.Metric + " of ports", XTitle: "seconds from " + t.clock(m.From),
		Label: func(v float64) string { return formatMetric(m.Metric, v) },
	}
	step := time.Duration(m.StepNs)
	for i := range m.Steps + 1 {
		h.X = append(h.X, (time.Duration(i) * step).Seconds())
	}
	for i := range m.Ports {
		h.Rows = append(h.Rows, portName(&m.Ports[i]))
		row := make([]float64, m.Steps)
		for j, v := range m.Values[i] {
			if row[j] = -1; v != nil {
				row[j] = *v
			}
		}
		h.Values = append(h.Values, row)
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(h.SVG()), 0o666); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, m)
	}
	fmt.Fprintf(out, "%s from %s, %s per column, maximum %s (@); blank: not reported\n", m.Metric, t.clock(m.From),
		model.FormatDuration(step), formatMetric(m.Metric, m.Max))
	var rows table
	for i, line := range h.Text() {
		rows.row(h.Rows[i], "|"+line+"|")
	}
	if err := rows.print(out); err != nil {
		return err
	}
	if !m.Complete {
		fmt.Fprintf(out, "samples from %s on; not shown: %s with lower values\n", t.clock(m.CoveredFrom),
			plural.Count(m.OmittedPorts, "port"))
	}
	return nil
}
