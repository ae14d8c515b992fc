package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// traceView is what weft trace prints; its JSON names are fixed.
type traceView struct {
	Note     string            `json:"note,omitempty"`
	Mirrors  uint64            `json:"mirrors"`
	Traces   uint64            `json:"traces"`
	Ends     map[string]uint64 `json:"ends"`
	Lost     uint64            `json:"lost_mirrors"` // for certain
	Bad      uint64            `json:"malformed"`
	Early    uint64            `json:"closed_early"`
	Findings []blameView       `json:"findings"`
	Matched  int               `json:"matched"`
	Evicted  uint64            `json:"evicted"` // traces that made room for others, and may be missing
	Fields   []string          `json:"fields,omitempty"`
	Rows     [][]string        `json:"rows,omitempty"` // of Fields
	Shown    []record.Trace    `json:"shown,omitempty"`

	fabric *topo.Fabric
	whole  []*trace.Trace // all that matched
}

// blameView is a trace.Finding by names.
type blameView struct {
	Kind    string         `json:"kind"`
	At      string         `json:"at"`
	Next    string         `json:"next,omitempty"`
	Round   []string       `json:"round,omitempty"`
	Flow    *model.FlowKey `json:"flow,omitempty"`
	Ended   uint64         `json:"ended"`
	Packets uint64         `json:"packets"`
	Chance  float64        `json:"chance"`
}

func newTraceView(w *tracewatch.Watch, f *topo.Fabric, got *tracewatch.Traces, top int) *traceView {
	s := w.Stats()
	v := &traceView{
		Mirrors: s.Mirrors, Traces: s.Closed, Bad: s.Malformed + s.Unreadable, Early: s.Stats.Evicted, Matched: len(got.Traces), Evicted: got.Evicted,
		Ends: map[string]uint64{}, fabric: f, whole: got.Traces, Findings: []blameView{},
	}
	sum := func(name string) (n uint64) {
		list, _ := w.GetCounter(name, 0, forever) // names that always are
		for _, p := range list {
			n += p.Count
		}
		return n
	}
	v.Lost = sum("lost-mirrors")
	known := uint64(0)
	for _, name := range []string{"arrived", "short", "looped", "unsettled"} {
		v.Ends[name] = sum(name)
		known += v.Ends[name]
	}
	v.Ends["unknown"] = sum("traces") - known
	for _, x := range w.Findings() {
		one := blameView{Kind: x.Kind.String(), At: nodeName(f, x.Switch), Flow: x.Flow, Ended: x.Ended, Packets: x.Packets, Chance: x.Chance}
		if x.Known {
			one.Next = nodeName(f, x.Next)
		}
		for _, id := range x.Switches {
			one.Round = append(one.Round, nodeName(f, id))
		}
		v.Findings = append(v.Findings, one)
	}
	if len(got.Fields) > 0 {
		v.Fields, v.Rows = got.Fields, cut(got.Rows, top)
		return v
	}
	for _, t := range cut(got.Traces, top) {
		v.Shown = append(v.Shown, t.Record(f))
	}
	return v
}

func (v *traceView) printSummary(w io.Writer) {
	if v.Note != "" {
		fmt.Fprintln(w, v.Note)
	}
	fmt.Fprintf(w, "%s of %s: %d arrived, %d short, %d looped, %d unsettled, %d unknown\n",
		plural.Count(v.Traces, "trace"), plural.Count(v.Mirrors, "mirror"), v.Ends["arrived"], v.Ends["short"], v.Ends["looped"], v.Ends["unsettled"], v.Ends["unknown"])
	if v.Lost+v.Bad+v.Early > 0 {
		fmt.Fprintf(w, "%d mirrors are missing for certain, %d could not be read; %d traces were closed early\n", v.Lost, v.Bad, v.Early)
	}
}

func (v *traceView) printFindings(w io.Writer) error {
	if len(v.Findings) == 0 {
		_, err := fmt.Fprintln(w, "\nnobody is to blame")
		return err
	}
	fmt.Fprintln(w, "\nfindings")
	var t table
	t.row("FINDING", "AT", "NEXT", "PACKETS", "OF", "CHANCE", "FLOW")
	for _, f := range v.Findings {
		at, flow := f.At, ""
		if len(f.Round) > 0 {
			at = strings.Join(f.Round, " > ")
		}
		if f.Flow != nil {
			flow = f.Flow.String()
		}
		t.row(f.Kind, at, dash(f.Next), f.Ended, f.Packets, fmt.Sprintf("%.1e", f.Chance), flow)
	}
	return t.print(w)
}

func (v *traceView) printTable(w io.Writer) error {
	more := ""
	if n := max(len(v.Rows), len(v.Shown)); n < v.Matched {
		more = fmt.Sprintf(", the first %d", n)
	}
	if v.Evicted > 0 {
		more += fmt.Sprintf("; %d made room for others", v.Evicted)
	}
	fmt.Fprintf(w, "\ntraces: %d%s\n", v.Matched, more)
	if v.Matched == 0 {
		return nil
	}
	var t table
	if len(v.Fields) > 0 {
		head := []any{"#"}
		for _, name := range v.Fields {
			head = append(head, name)
		}
		t.row(head...)
		for i, row := range v.Rows {
			cells := []any{i + 1}
			for _, cell := range row {
				cells = append(cells, dash(cell))
			}
			t.row(cells...)
		}
		return t.print(w)
	}
	var rows []traceRow
	for i := range v.Shown {
		one := v.whole[i]
		rows = append(rows, traceRow{fmt.Sprint(i + 1), one.Hops[0].Time.String(), one.Key, one.Why.String(), one.End.String(), latency(one), v.way(one)})
	}
	return printTraceRows(w, rows)
}

// traceRow is a trace in a table.
type traceRow struct {
	name, seen              string
	flow                    model.FlowKey
	why, end, latency, path string
}

func printTraceRows(w io.Writer, rows []traceRow) error {
	var t table
	t.row("#", "SEEN", "FLOW", "WHY", "END", "LATENCY", "WAY")
	for _, r := range rows {
		t.row(r.name, r.seen, r.flow, r.why, r.end, r.latency, r.path)
	}
	return t.print(w)
}

func latency(t *trace.Trace) string {
	d, ok := t.Latency()
	if !ok {
		return "-"
	}
	return d.String()
}

// wayHops is how many switches of a way fit into a line.
const wayHops = 8

// way is the switches of a trace; brackets are around those that saw the packet
// in a tunnel.
func (v *traceView) way(t *trace.Trace) string {
	var names []string
	for i := range t.Hops {
		name := nodeName(v.fabric, t.Hops[i].Switch)
		if t.Hops[i].Depth > 1 {
			name = "[" + name + "]"
		}
		names = append(names, name)
	}
	return wayText(names)
}

// wayText is the switches of a way in one line.
func wayText(names []string) string {
	text := ""
	for i, name := range names {
		if i == wayHops && len(names) > wayHops+1 {
			return text + fmt.Sprintf(" > … %d more", len(names)-i)
		}
		if i > 0 {
			text += " > "
		}
		text += name
	}
	return text
}

// printLadder shows one trace, hop below hop.
func (v *traceView) printLadder(w io.Writer, number int) error {
	t := v.whole[number-1]
	fmt.Fprintf(w, "trace %d: %v, IPID %d, %v, mirrored for %v: %v\n", number, t.Key, t.IPID, model.Bytes(t.Length), t.Why, t.End)
	if t.MirrorsLost+t.Reordered+t.Duplicates+t.Repeats > 0 {
		fmt.Fprintf(w, "mirrors: %d missing for certain, %d out of order, %d came twice; the packet came by again %d times\n", t.MirrorsLost, t.Reordered, t.Duplicates, t.Repeats)
	}
	var rungs []rung
	for i := range t.Hops {
		h := &t.Hops[i]
		r := rung{
			node: nodeName(v.fabric, h.Switch), in: h.In, out: v.leadsTo(h), to: h.To.String(), ttl: h.TTL, dscp: h.TOS >> 2, ecn: h.TOS & 3,
			at: h.Time.Sub(t.Hops[0].Time), after: "-",
		}
		if d, ok := t.HopDelay(i); ok {
			r.after = d.String()
		} else if d, ok := t.MuxDelay(i); ok {
			r.after, r.about = d.String(), "through a mux"
		}
		if t.End == trace.Looped && i >= t.Loop[0] && i <= t.Loop[1] {
			r.about = "round"
		}
		if h.Depth > 1 && r.about == "" {
			r.about = fmt.Sprintf("%d headers", h.Depth)
		}
		if i == len(t.Hops)-1 && t.End == trace.Incomplete {
			r.about = unseen
		}
		rungs = append(rungs, r)
	}
	return printRungs(w, rungs)
}

// unseen is about the last hop of a packet that did not arrive.
const unseen = "not seen again"

// rung is a hop in a ladder.
type rung struct {
	node           string
	in             model.PortID
	out, to        string
	ttl, dscp, ecn uint8
	at             time.Duration // since the first
	after          string        // until the next
	about          string
}

func printRungs(w io.Writer, rungs []rung) error {
	var t table
	t.row("HOP", "SWITCH", "IN", "OUT", "TO", "TTL", "DSCP", "ECN", "AT", "NEXT AFTER", "")
	for i, r := range rungs {
		t.row(i+1, r.node, port(r.in), r.out, r.to, r.ttl, r.dscp, r.ecn, "+"+r.at.String(), r.after, r.about)
	}
	return t.print(w)
}

func port(p model.PortID) string {
	if p == 0 {
		return "-"
	}
	return fmt.Sprint(p)
}

// leadsTo is an out port and the node behind it.
func (v *traceView) leadsTo(h *trace.Hop) string {
	at := v.fabric.Port(model.Port{Node: h.Switch, Port: h.Out})
	if at == nil {
		return port(h.Out)
	}
	return fmt.Sprintf("%d (%s)", h.Out, nodeName(v.fabric, at.Peer.Node))
}
