// Package flowlog keeps the flowset reports of a run and says afterwards what
// they tell: ways that are wrong, losses and where, load. It sees reports and
// intended routes, as a controller would, nothing of the simulator's truth.
// Manual: docs/flow-analyses.md.
package flowlog

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// Log is the flowset reports of one run.
type Log struct {
	first, end dta.ListID // lists of flowsets
	chunks     []chunk
}

type chunk struct {
	at   model.Time
	data []byte
}

// New makes the log of a scenario that has flowsets.
func New(s *scenario.Scenario) (*Log, error) {
	i := slices.IndexFunc(s.Telemetry, func(p scenario.Program) bool { return p.Kind == "flowset" })
	if i < 0 {
		return nil, fmt.Errorf("scenario %q has no flowsets, want \"- {kind: flowset}\" under telemetry", s.Name)
	}
	return &Log{first: s.FirstList(i), end: s.FirstList(i + 1)}, nil
}

// Take is a simhost.Sink: it keeps what concerns flowsets.
func (l *Log) Take(at model.Time, _ model.NodeID, datagram []byte) {
	var r dta.Reader
	if r.Reset(datagram) != nil {
		return // the carrier makes no such thing, and counts what it loses
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.Primitive == dta.Append && rep.List >= l.first && rep.List < l.end {
			l.chunks = append(l.chunks, chunk{at, slices.Clone(rep.Data)})
		}
	}
}

// Play shows the reports to a watch, in the order of their arrival, and returns
// what each slot told.
func (l *Log) Play(in *topo.Intent) (*flowwatch.Watch, []*flowwatch.Slot, error) {
	if len(l.chunks) == 0 {
		return nil, nil, fmt.Errorf("flowlog: no flowset was reported; a run must last for two slots and more")
	}
	var head flowset.Chunk
	if _, err := head.Parse(l.chunks[0].data); err != nil {
		return nil, nil, fmt.Errorf("flowlog: first report: %w", err)
	}
	cfg := flowwatch.DefaultConfig(in)
	cfg.Slot = head.Length
	w, err := flowwatch.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	var slots []*flowwatch.Slot
	for _, c := range l.chunks {
		done, err := w.Add(c.at, c.data)
		if err != nil {
			return nil, nil, fmt.Errorf("flowlog: report of %v: %w", c.at, err)
		}
		slots = append(append(slots, done...), w.Tick(c.at)...)
	}
	return w, append(slots, w.Flush(l.chunks[len(l.chunks)-1].at)...), nil
}

// Way is a flow's way in one slot.
type Way struct {
	Slot int64         `json:"slot"`
	Hops []Hop         `json:"hops"`
	Loop []string      `json:"loop,omitempty"`
	Key  model.FlowKey `json:"-"`
}

// Hop is a switch on a way.
type Hop struct {
	Switch  string       `json:"switch"`
	In      model.PortID `json:"in"`
	Out     model.PortID `json:"out"`
	Packets uint64       `json:"packets"`
	Bytes   uint64       `json:"bytes"`
	Exact   bool         `json:"exact"`
}

// Ways returns the way of a flow in every slot that saw it.
func Ways(slots []*flowwatch.Slot, key model.FlowKey, in *topo.Intent) (list []Way) {
	f := in.At(0).Fabric()
	name := func(id model.NodeID) string { return f.Node(id).Name }
	for _, s := range slots {
		t := s.Map.FlowPath(key, in.At(s.Map.Start()))
		if len(t.Hops) == 0 {
			continue
		}
		w := Way{Slot: s.Map.Slot, Key: key}
		for _, h := range t.Hops {
			w.Hops = append(w.Hops, hopOf(name(h.Switch), h))
		}
		for _, id := range t.Loop {
			w.Loop = append(w.Loop, name(id))
		}
		list = append(list, w)
	}
	return list
}

func hopOf(name string, s paths.Sighting) Hop {
	return Hop{Switch: name, In: s.In, Out: s.Out, Packets: s.Packets, Bytes: s.Bytes, Exact: s.Exact}
}
