package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/probes"
	"github.com/weft-telemetry/weft/topo"
)

// probeView is what weft probe shows.
type probeView struct {
	Asked  time.Duration   `json:"asked_ns"`
	Flows  []flowProbeView `json:"flows"`
	Links  []linkProbeView `json:"links"`
	Series *seriesView     `json:"series,omitempty"`
}

type flowProbeView struct {
	Flow string `json:"flow"`
	probe.Verdict
	Begin   string         `json:"begin"` // where probes were injected
	At      string         `json:"at,omitempty"`
	Next    string         `json:"next,omitempty"`
	Deaf    bool           `json:"deaf,omitempty"` // nothing was heard of next
	Loop    []string       `json:"loop,omitempty"`
	Early   uint64         `json:"early"` // probes that did not get to where they begin
	Mirrors probe.Interval `json:"mirrors_lost"`
	Way     []string       `json:"way"` // of one probe
	End     string         `json:"end"` // of that one
}

type linkProbeView struct {
	Link     string        `json:"link"`
	Sent     uint32        `json:"sent"`
	Returned int           `json:"returned"`
	Bytes    model.Bytes   `json:"bytes"`
	Least    time.Duration `json:"least_ns"`
	Median   time.Duration `json:"median_ns"`
	Mean     time.Duration `json:"mean_ns"`
	Error    time.Duration `json:"error_ns"`
	P90      time.Duration `json:"p90_ns"`
}

type seriesView struct {
	Host    string            `json:"host"`
	Sent    uint64            `json:"sent"`
	Seen    uint64            `json:"seen"`
	Arrived uint64            `json:"arrived"`
	Short   uint64            `json:"short"`
	Looped  uint64            `json:"looped"`
	Other   uint64            `json:"other"`
	Ends    map[string]uint64 `json:"ends"` // probes by the switch that saw them last
	Way     []string          `json:"way"`  // of the first
}

func newProbeView(p *probes.Played) *probeView {
	f := p.Fabric()
	v := &probeView{Asked: p.Asked, Flows: []flowProbeView{}, Links: []linkProbeView{}}
	for i := range p.Flows {
		v.Flows = append(v.Flows, newFlowProbeView(f, &p.Flows[i]))
	}
	for _, l := range p.Links {
		v.Links = append(v.Links, linkProbeView{
			Link: f.Node(l.Near).Name + ">" + f.Node(l.Far).Name, Sent: l.Sent, Returned: l.Seen, Bytes: l.Bytes,
			Least: l.Least, Median: l.Median, Mean: l.Mean, Error: l.Error, P90: l.P90,
		})
	}
	if s := p.Series; s != nil {
		v.Series = &seriesView{
			Host: f.Node(s.Host).Name, Sent: s.Sent, Seen: s.Seen, Arrived: s.Arrived, Short: s.Short, Looped: s.Looped, Other: s.Other,
			Ends: map[string]uint64{},
		}
		for _, e := range s.Ends {
			v.Series.Ends[f.Node(e.Switch).Name] = e.Probes
		}
		if len(s.Traces) > 0 {
			v.Series.Way = wayOf(f, s.Traces[0])
		}
	}
	return v
}

func newFlowProbeView(f *topo.Fabric, a *probes.Flow) flowProbeView {
	v := flowProbeView{Flow: a.Flow.String(), Verdict: a.Verdict, Begin: f.Node(a.Begin).Name, Early: a.Early, Mirrors: a.Mirrors, Deaf: a.Deaf}
	if a.Kind != probe.Passed && a.Kind != probe.Unreached {
		v.At = f.Node(a.At.Switch).Name
		if a.At.Known {
			v.Next = f.Node(a.At.Next).Name
		}
	}
	for _, id := range a.Loop {
		v.Loop = append(v.Loop, f.Node(id).Name)
	}
	if a.Way != nil {
		v.Way, v.End = wayOf(f, a.Way), a.Way.End.String()
	}
	return v
}

// wayOf names the switches of a trace.
func wayOf(f *topo.Fabric, t *trace.Trace) (names []string) {
	for i := range t.Hops {
		if id := t.Hops[i].Switch; f.HasNode(id) {
			names = append(names, f.Node(id).Name)
		}
	}
	return names
}

// faulty tells whether packets are lost or go round.
func (v *probeView) faulty() bool {
	for i := range v.Flows {
		if k := v.Flows[i].Kind; k != probe.Passed && k != probe.Unreached {
			return true
		}
	}
	return v.Series != nil && v.Series.Short+v.Series.Looped > 0
}

func (v *probeView) print(w io.Writer) error {
	for i := range v.Flows {
		if err := v.Flows[i].print(w); err != nil {
			return err
		}
	}
	if len(v.Links) > 0 {
		var t table
		t.row("LINK", "LEAST", "MEDIAN", "MEAN", "P90", "RETURNED", "SENT", "BYTES")
		for _, l := range v.Links {
			if l.Returned == 0 {
				t.row(l.Link, "-", "-", "-", "-", 0, l.Sent, l.Bytes)
				continue
			}
			t.row(l.Link, l.Least, l.Median, fmt.Sprintf("%v ± %v", l.Mean, l.Error), l.P90, l.Returned, l.Sent, l.Bytes)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if s := v.Series; s != nil {
		fmt.Fprintf(w, "%s from %s: %d seen, %d arrived, %d ended short, %d looped, %d unknown\n", plural.Count(s.Sent, "probe"), s.Host, s.Seen, s.Arrived, s.Short, s.Looped, s.Other)
		fmt.Fprintf(w, "way of the first: %s\n", strings.Join(s.Way, " > "))
	}
	if len(v.Flows)+len(v.Links) == 0 && v.Series == nil {
		fmt.Fprintln(w, "no trace ended short, there is no flow to ask about")
	}
	return nil
}

func (v *flowProbeView) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, probed from %s on\n", v.Flow, v.Begin)
	where := ""
	if v.At != "" {
		where = " at " + v.At
		if v.Next != "" {
			where += " towards " + v.Next
			if v.Deaf {
				where += ", of which nothing is heard (it is dead, or its mirrors are lost)"
			}
		}
	}
	fmt.Fprintf(w, "  %v%s: %s\n", v.Kind, where, v.Scope)
	fmt.Fprintf(w, "  lost %d of %d probes, %s (95 %%: %s to %s); that lost mirrors make it look so: %.2g; that all patterns are treated alike: %.2g\n",
		v.Lost, v.Reached, percent(v.Loss.Share), percent(v.Loss.Low), percent(v.Loss.High), v.Chance, v.Alike)
	fmt.Fprintf(w, "  mirrors lost: %s (%s to %s); probes lost before %s: %d\n", percent(v.Mirrors.Share), percent(v.Mirrors.Low), percent(v.Mirrors.High), v.Begin, v.Early)
	if len(v.Way) > 0 {
		fmt.Fprintf(w, "  way of one: %s, %s\n", strings.Join(v.Way, " > "), v.End)
	}
	var t table
	t.row("  PATTERN", "VARIED", "REACHED", "LOST", "LOSS", "95 %")
	for _, p := range v.Patterns {
		t.row("  "+p.Flow.String(), p.Varied, p.Reached, p.Lost, percent(p.Loss.Share), percent(p.Loss.Low)+" to "+percent(p.Loss.High))
	}
	return t.print(w)
}
