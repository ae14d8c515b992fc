package trace

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Load is mirrored traffic: if packets are sampled, it is that sample.
type Load struct {
	Packets uint64
	Bytes   model.Bytes // of whole frames, with their lengths at the first hop
	Flows   Distinct
}

func (l *Load) addPacket(t *Trace, flow uint64) {
	l.Packets++
	l.Bytes += model.Bytes(t.Length)
	l.Flows.Add(flow)
}

// Merge adds another load.
func (l *Load) Merge(o *Load) {
	l.Packets += o.Packets
	l.Bytes += o.Bytes
	l.Flows.Merge(&o.Flows)
}

// Latency aggregates delays.
type Latency struct {
	Count         uint64
	Sum, Min, Max time.Duration
}

// Mean returns the average, 0 for no delays.
func (l *Latency) Mean() time.Duration {
	if l.Count == 0 {
		return 0
	}
	return l.Sum / time.Duration(l.Count)
}

// Merge adds other delays.
func (l *Latency) Merge(o *Latency) {
	if o.Count == 0 {
		return
	}
	if l.Count == 0 {
		*l = *o
		return
	}
	l.Count += o.Count
	l.Sum += o.Sum
	l.Min, l.Max = min(l.Min, o.Min), max(l.Max, o.Max)
}

func (l *Latency) addDelay(d time.Duration) { l.Merge(&Latency{1, d, d, d}) }

// Counters aggregate traces. Those of several analyzers merge into the counters
// that one analyzer of all traces would have.
type Counters struct {
	Traces, Arrived, Lost, Looped, Unsettled uint64
	MirrorsLost                              uint64 // for certain

	Links map[model.Port]*Load // by the port that sends
	// Latency of a switch and the link after it, from one arrival to the next,
	// by the clocks of both switches: it is as accurate as these agree.
	Latency map[model.Port]*Latency
	// Mux is the time between the last hop before a tunnel and the first in it,
	// by the switch where the packet came back. It is by one clock, and exact,
	// where that switch is also the one that sent it to the mux.
	Mux    map[model.NodeID]*Latency
	Custom map[string]*Load // by CustomCounter.Name, each packet once
}

// CustomCounter is a user-defined counter of the packets that Matches accepts.
type CustomCounter struct {
	Name    string
	Matches func(t *Trace) bool
}

// NewCounters returns empty counters.
func NewCounters() *Counters {
	return &Counters{
		Links: map[model.Port]*Load{}, Latency: map[model.Port]*Latency{},
		Mux: map[model.NodeID]*Latency{}, Custom: map[string]*Load{},
	}
}

// counterFor returns the counter of a key, a new one if there is none.
func counterFor[K comparable, V any](m map[K]*V, k K) *V {
	v := m[k]
	if v == nil {
		v = new(V)
		m[k] = v
	}
	return v
}

// AddTrace counts a trace.
func (c *Counters) AddTrace(t *Trace, matches []CustomCounter) {
	c.Traces++
	c.MirrorsLost += uint64(t.MirrorsLost)
	switch t.End {
	case Arrived:
		c.Arrived++
	case Lost:
		c.Lost++
	case Looped:
		c.Looped++
	case Unsettled:
		c.Unsettled++
	}
	if t.Key.IsZero() {
		return
	}
	flow := t.Key.Hash(0)
	for i := range t.Hops {
		h := &t.Hops[i]
		if _, known := nextNode(t.routes.Fabric(), h); !known {
			continue // no counter for a port that does not exist
		}
		port := model.Port{Node: h.Switch, Port: h.Out}
		counterFor(c.Links, port).addPacket(t, flow)
		if d, ok := t.HopDelay(i); ok {
			counterFor(c.Latency, port).addDelay(d)
		}
	}
	for i := range t.Hops {
		if d, ok := t.MuxDelay(i); ok && t.routes.Fabric().HasNode(t.Hops[i+1].Switch) {
			counterFor(c.Mux, t.Hops[i+1].Switch).addDelay(d)
		}
	}
	for i := range matches {
		if matches[i].Matches(t) {
			counterFor(c.Custom, matches[i].Name).addPacket(t, flow)
		}
	}
}

// Merge adds the counters of another analyzer, of the same period.
func (c *Counters) Merge(o *Counters) {
	c.Traces += o.Traces
	c.Arrived += o.Arrived
	c.Lost += o.Lost
	c.Looped += o.Looped
	c.Unsettled += o.Unsettled
	c.MirrorsLost += o.MirrorsLost
	for k, v := range o.Links {
		counterFor(c.Links, k).Merge(v)
	}
	for k, v := range o.Latency {
		counterFor(c.Latency, k).Merge(v)
	}
	for k, v := range o.Mux {
		counterFor(c.Mux, k).Merge(v)
	}
	for k, v := range o.Custom {
		counterFor(c.Custom, k).Merge(v)
	}
}
