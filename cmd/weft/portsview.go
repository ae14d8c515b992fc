package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/ports"
)

// portsView is the answer of weft ports.
type portsView struct {
	Ports     []portStateView `json:"ports"`
	Congested []congestedView `json:"congested,omitempty"`
	Heat      *heatView       `json:"heat,omitempty"`
	Silent    []string        `json:"silent"`
	Windows   int             `json:"windows"`
	Window    time.Duration   `json:"window_ns"`
	Coverage  float64         `json:"coverage"` // labelled over active ports, all windows
	Overhead  overheadView    `json:"overhead"`
}

type portStateView struct {
	Port        string        `json:"port"`
	Depth       model.Bytes   `json:"depth"`         // ahead of the labelled packet when it was enqueued
	After       model.Bytes   `json:"depth_dequeue"` // behind it when it left
	Latency     time.Duration `json:"latency_ns"`
	Utilisation float64       `json:"utilisation"`
	Age         time.Duration `json:"age_ns"` // at the end of the run
	Labels      int           `json:"labels"`
	Windows     int           `json:"windows"` // with traffic
	Coverage    float64       `json:"coverage"`
}

type congestedView struct {
	Port    string        `json:"port"`
	Depth   model.Bytes   `json:"depth"`
	At      model.Time    `json:"at"`
	Latency time.Duration `json:"latency_ns"`
	Labels  int           `json:"labels"`
}

type heatView struct {
	From  model.Time      `json:"from"`
	Step  time.Duration   `json:"step_ns"`
	Ports []string        `json:"ports"`
	Depth [][]model.Bytes `json:"depth"` // -1: nothing was heard
	lines []string
	most  model.Bytes
}

// overheadView is what labels cost: on the links, and on the way to the collector.
type overheadView struct {
	Labels      uint64      `json:"labels"`
	Exports     uint64      `json:"exports"`      // packets whose labels were exported
	ExportBytes uint64      `json:"export_bytes"` // without headers of datagrams
	ExportRate  model.Rate  `json:"export_rate"`
	LinkBytes   model.Bytes `json:"link_bytes"` // that labels added, over all links
	LinkRate    model.Rate  `json:"link_rate"`
	LinkShare   float64     `json:"link_share"` // of all bytes that switches sent
	Refused     uint64      `json:"refused"`    // labels that could not be believed, reports that were none
	Commands    uint64      `json:"commands"`
}

func newPortsView(p *ports.Played) *portsView {
	b, end := p.Watch.Board(), p.Result.Run.End
	v := &portsView{Ports: []portStateView{}, Silent: []string{}, Coverage: p.Watch.Coverage().Coverage()}
	for _, port := range b.ReportedPorts() {
		s, _ := b.Newest(port)
		age, _ := b.Age(port, end)
		w := p.Watch.Port(port)
		v.Ports = append(v.Ports, portStateView{
			Port: p.Fabric().LinkName(port), Depth: s.EnqueueDepth, After: s.DequeueDepth, Latency: s.Latency,
			Utilisation: float64(s.Utilisation) / (1<<16 - 1), Age: age,
			Labels: len(b.Series(port, 0, model.Time(1<<62))), Windows: w.Active, Coverage: w.Coverage(),
		})
	}
	all := p.Watch.Windows()
	v.Windows = len(all)
	if len(all) > 0 {
		last := all[len(all)-1]
		v.Window = last.To.Sub(last.From)
		for _, port := range last.Silent {
			v.Silent = append(v.Silent, p.Fabric().LinkName(port))
		}
	}
	s, span := p.Watch.Stats(), time.Duration(end)
	rate := func(bytes float64) model.Rate { return model.Rate(bytes * 8 / max(span.Seconds(), 1e-9)) }
	v.Overhead = overheadView{
		Labels: s.Labels, Exports: s.Exports, ExportBytes: s.Bytes, ExportRate: rate(float64(s.Bytes)),
		LinkBytes: p.Load.Labels, LinkRate: rate(float64(p.Load.Labels)), LinkShare: p.Load.Share(),
		Refused: s.Malformed + s.Repeated + s.Unknown + s.Future + s.Stale, Commands: s.Commands,
	}
	return v
}

func (v *portsView) addCongested(p *ports.Played, from, to model.Time, depth model.Bytes) {
	for _, c := range p.Watch.Board().CongestedPorts(from, to, depth) {
		v.Congested = append(v.Congested, congestedView{p.Fabric().LinkName(c.Port), c.Depth, c.At, c.Latency, c.Samples})
	}
}

func (v *portsView) addHeat(h plot.Heat) {
	out := &heatView{From: model.Time(h.X[0] * 1e3), Step: time.Duration((h.X[1] - h.X[0]) * 1e3), Ports: h.Rows, lines: h.Text()}
	for _, row := range h.Values {
		depth := make([]model.Bytes, len(row))
		for i, d := range row {
			depth[i] = model.Bytes(d)
			out.most = max(out.most, depth[i])
		}
		out.Depth = append(out.Depth, depth)
	}
	v.Heat = out
}

func percent(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }

func (v *portsView) printPorts(w io.Writer) error {
	var rows []portRow
	for _, p := range v.Ports {
		rows = append(rows, portRow{p.Port, p.Depth, p.Latency, p.Utilisation, p.Age.Round(time.Microsecond).String(), []any{p.Labels, percent(p.Coverage)}})
	}
	return printPortRows(w, "PORT", []any{"LABELS", "COVERAGE"}, rows)
}

// portRow is the state of a port, or of one instant of a port, and what else is
// known of it.
type portRow struct {
	name    string
	depth   model.Bytes
	latency time.Duration
	load    float64
	age     string
	more    []any
}

func printPortRows(w io.Writer, name string, more []any, rows []portRow) error {
	var t table
	t.row(append([]any{name, "DEPTH", "LATENCY", "LOAD", "AGE"}, more...)...)
	for _, r := range rows {
		t.row(append([]any{r.name, r.depth, r.latency, fmt.Sprintf("%.0f %%", 100*r.load), r.age}, r.more...)...)
	}
	return t.print(w)
}

func (v *portsView) printCongested(w io.Writer, depth string) error {
	if len(v.Congested) == 0 {
		_, err := fmt.Fprintf(w, "no port had a queue of %s or more\n", depth)
		return err
	}
	var t table
	t.row("CONGESTED", "DEEPEST", "AT", "LATENCY", "LABELS")
	for _, c := range v.Congested {
		t.row(c.Port, c.Depth, time.Duration(c.At), c.Latency, c.Labels)
	}
	return t.print(w)
}

func (v *portsView) printHeat(w io.Writer) error {
	return printHeat(w, fmt.Sprintf("queues from %v on", time.Duration(v.Heat.From)), v.Heat.Step, v.Heat.most.String(), v.Heat.Ports, v.Heat.lines)
}

// printHeat prints the lines of a map of ports over time.
func printHeat(w io.Writer, what string, step time.Duration, most string, ports, lines []string) error {
	fmt.Fprintf(w, "%s, %v per column, up to %s (@); blank: nothing heard\n", what, step, most)
	var t table
	for i, line := range lines {
		t.row(ports[i], "|"+line+"|")
	}
	return t.print(w)
}

func (v *portsView) printSilent(w io.Writer) {
	if len(v.Silent) == 0 {
		fmt.Fprintln(w, "every port with traffic in the last window was heard of")
	}
	for _, p := range v.Silent {
		fmt.Fprintf(w, "silent: %s\n", p)
	}
}

func (v *portsView) printOverhead(w io.Writer) error {
	o := &v.Overhead
	_, err := fmt.Fprintf(w, "\ncoverage %s in %d windows of %v\noverhead %d labels in %d exported packets, %v to the collector; %v on all links, %s of what switches sent\n",
		percent(v.Coverage), v.Windows, v.Window, o.Labels, o.Exports, o.ExportRate, o.LinkRate, percent(o.LinkShare))
	if o.Refused > 0 {
		fmt.Fprintf(w, "refused %d labels or reports\n", o.Refused)
	}
	return err
}
