package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// labelStats returns the coverage and overhead of a scenario's labels; nil of a
// controller, which does not know what labels add on links.
func (t *target) labelStats() *live.LabelStats {
	if !t.isScenario() {
		return nil
	}
	s, ok := t.live.LabelStats()
	if !ok {
		return nil
	}
	return &s
}

// printLabelStats prints the coverage of a scenario's labels, and their bandwidth on
// links and to the collector.
func (t *target) printLabelStats(w io.Writer) {
	s := t.labelStats()
	if s == nil {
		return
	}
	fmt.Fprintf(w, "label coverage %s in %s of %s\n", model.FormatShare(s.Coverage),
		plural.Count(int(s.Windows), "window"), model.FormatDuration(s.Window))
	fmt.Fprintf(w, "label overhead %s of the bytes that switches sent, %s on all links; %s to the collector\n",
		model.FormatShare(s.LinkShare), model.FormatRate(s.LinkRate), model.FormatRate(s.ExportRate))
	fmt.Fprintf(w, "%d labels in %d exported packets; %d labels or reports rejected\n", s.Labels, s.Exports, s.Rejected)
}

// printPort prints one port over time.
func (f *portsFlags) printPort(a *app, cmd *cobra.Command, t *target, r api.Range) error {
	ref, err := t.findPort(cmd.Context(), f.port)
	if err != nil {
		return err
	}
	s, err := t.Port(cmd.Context(), ref.Node, ref.Port, r, f.step)
	if err != nil {
		return t.explain(err)
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, s)
	}
	fmt.Fprintf(out, "%s (%s:%d), %s, from %s to %s\n", portName(&ref), ref.Node, ref.Port,
		model.FormatRate(model.Rate(s.RateBps)),
		t.clock(s.From), t.clock(s.To))
	if !s.Complete {
		fmt.Fprintln(out, "the result is truncated: the oldest samples are missing; use a shorter range")
	}
	if len(s.Samples) == 0 {
		_, err := fmt.Fprintln(out, "no samples in this range")
		return err
	}
	var rows table
	rows.row("TIME", "QUEUE", "LATENCY", "LOAD", "PAUSED", "SAMPLES")
	for _, p := range s.Samples {
		load := 0.0
		if s.RateBps > 0 {
			load = float64(p.LoadBps) / float64(s.RateBps)
		}
		rows.row(t.clock(p.Time), model.FormatBytes(model.Bytes(p.QueueBytes)),
			model.FormatDuration(time.Duration(p.LatencyNs)),
			model.FormatShare(load), model.FormatShare(p.PausedShare), p.Samples)
	}
	return rows.print(out)
}

// portNames returns the names of all ports: "tor6 Ethernet8 → leaf6".
func portNames(t *api.Topology) map[api.PortRef]string {
	names := map[api.PortRef]string{}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		for _, p := range n.Ports {
			names[api.PortRef{Node: n.Name, Port: p.Port}] = portName(&api.PortRef{
				Node: n.Name, Port: p.Port,
				Interface: p.Interface, Peer: p.Peer,
			})
		}
	}
	return names
}

// portName formats a port for people: "tor6 Ethernet8 → leaf6".
func portName(p *api.PortRef) string {
	if p == nil {
		return "-"
	}
	return p.String()
}

// formatMetric formats a value of a heatmap with its unit.
func formatMetric(metric string, v float64) string {
	switch metric {
	case "latency_ns":
		return model.FormatDuration(time.Duration(v))
	case "load_bps":
		return model.FormatRate(model.Rate(v))
	case "paused_share":
		return model.FormatShare(v)
	}
	return model.FormatBytes(model.Bytes(v))
}
