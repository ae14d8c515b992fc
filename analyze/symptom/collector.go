// Package symptom gathers from traces what is slow or uneven rather than lost:
// time in load balancers, round trips of links, equal-cost ports, pauses. Where
// packets are lost or go round is trace.Judge's to say.
// Origin: docs/papers.md#everflow. Manual: docs/traces.md.
package symptom

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// Collector gathers traces. Its memory is bounded by the fabric's ports, and for
// equal-cost ports by the flows.
type Collector struct {
	intent  *topo.Intent
	fabric  *topo.Fabric
	balance *load.BalanceDetector
	muxes   map[model.NodeID]*trace.Latency
	hops    map[model.Port]*trace.Latency
	pauses  map[model.Port]*Pauses
}

// New makes an empty board.
func New(in *topo.Intent) (*Collector, error) {
	balance, err := load.NewBalanceDetector(load.DefaultBalanceConfig(in))
	if err != nil {
		return nil, err
	}
	return &Collector{
		intent: in, fabric: in.At(0).Fabric(), balance: balance, muxes: map[model.NodeID]*trace.Latency{},
		hops: map[model.Port]*trace.Latency{}, pauses: map[model.Port]*Pauses{},
	}, nil
}

// AddTrace takes a complete trace, and keeps nothing of it.
func (b *Collector) AddTrace(t *trace.Trace) {
	if t.Key.IsZero() {
		b.addPauseFrame(t)
		return
	}
	routes := b.intent.At(t.Last)
	for i := range t.Hops {
		h := &t.Hops[i]
		port := model.Port{Node: h.Switch, Port: h.Out}
		if !b.fabric.HasNode(h.Switch) || b.fabric.Port(port) == nil {
			continue
		}
		if h.Depth == 1 {
			b.balance.CountFlow(routes, t.Key, h.Switch, h.Out, 1)
		}
		if d, ok := t.HopDelay(i); ok {
			addLatency(b.hops, port, d)
		}
		if d, ok := t.MuxDelay(i); ok {
			if mux, ok := b.muxBefore(&t.Hops[i+1]); ok {
				addLatency(b.muxes, mux, d)
			}
		}
	}
}

func addLatency[K comparable](m map[K]*trace.Latency, k K, d time.Duration) {
	l := m[k]
	if l == nil {
		l = &trace.Latency{}
		m[k] = l
	}
	l.Merge(&trace.Latency{Count: 1, Sum: d, Min: d, Max: d})
}

// muxBefore is the load balancer from which a packet came to a hop.
func (b *Collector) muxBefore(h *trace.Hop) (model.NodeID, bool) {
	if !b.fabric.HasNode(h.Switch) {
		return 0, false
	}
	p := b.fabric.Port(model.Port{Node: h.Switch, Port: h.In})
	if p == nil || b.fabric.Node(p.Peer.Node).Role != topo.Mux {
		return 0, false
	}
	return p.Peer.Node, true
}

// addPauseFrame counts a PFC frame that asks for a pause.
func (b *Collector) addPauseFrame(t *trace.Trace) {
	var f pfc.Frame
	if _, err := f.Parse(t.Frame); err != nil {
		return
	}
	asks := false
	for class := range model.Priority(8) {
		q, ok := f.PauseOf(class)
		asks = asks || ok && q > 0
	}
	h := &t.Hops[0]
	port := model.Port{Node: h.Switch, Port: h.In}
	if !asks || !b.fabric.HasNode(h.Switch) || b.fabric.Port(port) == nil {
		return
	}
	p := b.pauses[port]
	if p == nil {
		p = &Pauses{Port: port, First: h.Time}
		b.pauses[port] = p
	}
	p.Frames++
	p.First, p.Last = min(p.First, h.Time), max(p.Last, h.Time)
}

// Mux is the time that packets spent in a load balancer.
type Mux struct {
	Node model.NodeID
	trace.Latency
}

// Muxes lists load balancers, by node.
func (b *Collector) Muxes() (list []Mux) {
	for id, l := range b.muxes {
		list = append(list, Mux{id, *l})
	}
	slices.SortFunc(list, func(x, y Mux) int { return cmp.Compare(x.Node, y.Node) })
	return list
}

// Link is the shortest round trip of a link between two switches: there and back
// by different packets. What their clocks differ by is in it once with each
// sign.
type Link struct {
	Port    model.Port // of the end with the lower node
	RoundTrip    time.Duration
	Packets uint64 // of the direction with fewer
}

// Links lists the links that packets passed in both directions, by port.
func (b *Collector) Links() (list []Link) {
	for port, there := range b.hops {
		peer := b.fabric.Port(port).Peer
		back := b.hops[peer]
		if back == nil || peer.Node < port.Node {
			continue
		}
		list = append(list, Link{Port: port, RoundTrip: there.Min + back.Min, Packets: min(there.Count, back.Count)})
	}
	slices.SortFunc(list, func(x, y Link) int {
		return cmp.Or(cmp.Compare(x.Port.Node, y.Port.Node), cmp.Compare(x.Port.Port, y.Port.Port))
	})
	return list
}

// Pauses is the PFC frames that a port received and that asked for a pause.
type Pauses struct {
	Port        model.Port
	Frames      uint64
	First, Last model.Time // by the switch's clock
}

// Pauses lists ports that received such frames, those with most first.
func (b *Collector) Pauses() (list []Pauses) {
	for _, p := range b.pauses {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(x, y Pauses) int {
		return cmp.Or(cmp.Compare(y.Frames, x.Frames), cmp.Compare(x.Port.Node, y.Port.Node), cmp.Compare(x.Port.Port, y.Port.Port))
	})
	return list
}

// TakeImbalances lists groups of equal-cost ports with unequal loads, the worst first,
// and begins anew.
func (b *Collector) TakeImbalances() []load.Imbalance { return b.balance.TakeImbalances() }
