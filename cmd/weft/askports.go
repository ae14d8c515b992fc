package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// portsAsked is what weft ports asks a controller.
type portsAsked struct {
	serverFlags
	port, node string
	metric     string
	step       time.Duration
	top        int
}

func (f *portsAsked) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.port, "port", "", "of a controller: one port over time, as leaf0>spine1 or leaf0:3")
	fl.StringVar(&f.node, "node", "", "of a controller: ports of one node")
	fl.DurationVar(&f.step, "step", 0, "with --port: steps of the series; 0: as fits")
	fl.StringVar(&f.metric, "metric", "queue_bytes", "with --heat, of a controller: queue_bytes, latency_ns, load_bps or paused_share")
	fl.IntVar(&f.top, "top", 200, "with --heat, of a controller: the hottest so many ports")
}

// own are the flags that scenarios do not know.
func (f *portsAsked) own() []string {
	return []string{"port", "node", "step", "metric", "top"}
}

// ask is weft ports of a controller.
func (f *portsFlags) ask(a *app, cmd *cobra.Command) error {
	c, err := f.asked.client()
	if err != nil {
		return err
	}
	span, err := f.span.ofRecords()
	if err := errors.Join(err, checkTop(f.asked.top)); err != nil {
		return err
	}
	switch {
	case f.asked.step < 0:
		return usagef("--step %v, want 0 or more", f.asked.step)
	case f.svg != "" && !f.heat:
		return usagef("--svg is for --heat")
	case f.heat && f.asked.port != "":
		return usagef("--heat is of all ports, --port of one; want one of them")
	case f.heat:
		return f.askHeat(a, cmd, c, span)
	case f.asked.port != "":
		return f.askPort(a, cmd, c, span)
	case span != api.Range{}:
		return usagef("--last, --from and --to are for --port and --heat; the state of all ports is that of now")
	}
	return f.askState(a, cmd, c)
}

// askState shows all ports as they are.
func (f *portsFlags) askState(a *app, cmd *cobra.Command, c *client.Client) error {
	topology, err := c.Topology(cmd.Context())
	if err != nil {
		return f.asked.advice(err)
	}
	state, err := c.State(cmd.Context(), time.Time{})
	if err != nil {
		return f.asked.advice(err)
	}
	peers := map[api.PortRef]string{}
	for i := range topology.Nodes {
		n := &topology.Nodes[i]
		for _, p := range n.Ports {
			peers[api.PortRef{Node: n.Name, Port: p.Port}] = p.Peer
		}
	}
	shown := api.State{Time: state.Time, Nodes: state.Nodes}
	var rows []portRow
	silent := 0
	for _, p := range state.Ports {
		if f.asked.node != "" && p.Node != f.asked.node {
			continue
		}
		shown.Ports = append(shown.Ports, p)
		if p.AgeMs < 0 {
			silent++
			continue
		}
		name := portName(&api.PortRef{Node: p.Node, Port: p.Port, Peer: peers[api.PortRef{Node: p.Node, Port: p.Port}]})
		age := time.Duration(p.AgeMs * float64(time.Millisecond)).Round(time.Microsecond)
		rows = append(rows, portRow{name, model.Bytes(p.QueueBytes), time.Duration(p.LatencyNs), p.LoadShare, age.String(), []any{percent(p.PausedShare), p.LostPackets}})
	}
	if f.asked.node != "" && len(shown.Ports) == 0 {
		return fmt.Errorf("node %q: %w", f.asked.node, api.ErrNotFound)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), shown)
	}
	if err := printPortRows(cmd.OutOrStdout(), "PORT", []any{"PAUSED", "LOST"}, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\n%s at %s; of %d nothing was heard\n", plural.Count(len(shown.Ports), "port"), clock(state.Time), silent)
	return err
}

// askPort shows one port over time.
func (f *portsFlags) askPort(a *app, cmd *cobra.Command, c *client.Client, span api.Range) error {
	ref, err := resolvePort(cmd.Context(), c, f.asked.port)
	if err != nil {
		return f.asked.advice(err)
	}
	s, err := c.Port(cmd.Context(), ref.Node, ref.Port, span, f.asked.step)
	if err != nil {
		return f.asked.advice(err)
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, s)
	}
	fmt.Fprintf(out, "%s, port %d of %s (%s), %v, from %s to %s\n", portName(&s.PortRef), s.Port, s.Node, s.Interface, model.Rate(s.RateBps), clock(s.From), clock(s.To))
	if !s.Complete {
		fmt.Fprintln(out, "the oldest of the span is left out")
	}
	if len(s.Samples) == 0 {
		_, err := fmt.Fprintln(out, "nothing was heard of it")
		return err
	}
	var rows []portRow
	for _, p := range s.Samples {
		load := 0.0
		if s.RateBps > 0 {
			load = float64(p.LoadBps) / float64(s.RateBps)
		}
		rows = append(rows, portRow{clock(p.Time), model.Bytes(p.QueueBytes), time.Duration(p.LatencyNs), load, s.To.Sub(p.Time).Round(time.Microsecond).String(), []any{percent(p.PausedShare), p.Samples}})
	}
	return printPortRows(out, "TIME", []any{"PAUSED", "SAMPLES"}, rows)
}

// resolvePort finds a port by its number, as leaf0:3, or by the node at the other
// end, as leaf0>spine1.
func resolvePort(ctx context.Context, c *client.Client, text string) (api.PortRef, error) {
	if node, number, ok := strings.Cut(text, ":"); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return api.PortRef{}, usagef("port %q, want a number from 1 behind the colon", text)
		}
		return api.PortRef{Node: node, Port: model.PortID(n)}, nil
	}
	from, to, ok := strings.Cut(text, ">")
	if !ok {
		return api.PortRef{}, usagef("port %q, want it as leaf0>spine1 or leaf0:3", text)
	}
	t, err := c.Topology(ctx)
	if err != nil {
		return api.PortRef{}, err
	}
	var found []api.PortRef
	known := false
	for i := range t.Nodes {
		if t.Nodes[i].Name != from {
			continue
		}
		known = true
		for _, p := range t.Nodes[i].Ports {
			if p.Peer == to {
				found = append(found, api.PortRef{Node: from, Port: p.Port, Peer: to})
			}
		}
	}
	switch {
	case !known:
		return api.PortRef{}, usagef("port %q: the fabric has no node %q", text, from)
	case len(found) == 0:
		return api.PortRef{}, usagef("port %q: %s has no link to %s", text, from, to)
	case len(found) > 1:
		return api.PortRef{}, usagef("port %q: there are %d links, want one by its number, such as %s:%d", text, len(found), from, found[0].Port)
	}
	return found[0], nil
}

// askHeat shows a measure of all ports over time.
func (f *portsFlags) askHeat(a *app, cmd *cobra.Command, c *client.Client, span api.Range) error {
	m, err := c.Heatmap(cmd.Context(), api.HeatmapQuery{Range: span, Metric: f.asked.metric, Steps: f.steps, Top: f.asked.top, Node: f.asked.node})
	if err != nil {
		return f.asked.advice(err)
	}
	h := plot.Heat{Title: m.Metric + " of ports", XTitle: "seconds from " + clock(m.From), Label: func(v float64) string { return measure(m.Metric, v) }}
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
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), m)
	}
	if err := printHeat(cmd.OutOrStdout(), m.Metric+" from "+clock(m.From)+" on", step, measure(m.Metric, m.Max), h.Rows, h.Text()); err != nil {
		return err
	}
	if !m.Complete {
		fmt.Fprintf(cmd.OutOrStdout(), "read from %s on; %d cooler ports are not shown\n", clock(m.CoveredFrom), m.OmittedPorts)
	}
	return nil
}

// measure prints a value of a heat map with its unit.
func measure(metric string, v float64) string {
	switch metric {
	case "latency_ns":
		return time.Duration(v).String()
	case "load_bps":
		return model.Rate(v).String()
	case "paused_share":
		return percent(v)
	}
	return model.Bytes(v).String()
}
