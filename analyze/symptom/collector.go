// Package symptom collects from traces what is slow or unbalanced rather than
// lost: time in load balancers, round-trip times of links, equal-cost ports, PFC
// pause frames. Losses and forwarding loops are analyze/trace's work.
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

// Collector collects traces. Its memory is bounded by the fabric's ports, and
// for equal-cost ports by the flows.
type Collector struct {
	intent  *topo.Intent
	fabric  *topo.Fabric
	balance *load.BalanceDetector
	muxes   map[model.NodeID]*trace.Latency
	hops    map[model.Port]*trace.Latency
	pauses  map[model.Port]*Pauses
}

// New returns an empty collector.
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

// AddTrace adds a complete trace, and keeps nothing of it.
func (c *Collector) AddTrace(t *trace.Trace) {
	if t.Key.IsZero() {
		c.addPauseFrame(t)
		return
	}
	routes := c.intent.At(t.Last)
	for i := range t.Hops {
		h := &t.Hops[i]
		port := model.Port{Node: h.Switch, Port: h.Out}
		if !c.fabric.HasNode(h.Switch) || c.fabric.Port(port) == nil {
			continue
		}
		if h.Depth == 1 {
			c.balance.CountFlow(routes, t.Key, h.Switch, h.Out, 1)
		}
		if d, ok := t.HopDelay(i); ok {
			addLatency(c.hops, port, d)
		}
		if d, ok := t.MuxDelay(i); ok {
			if mux, ok := c.muxBefore(&t.Hops[i+1]); ok {
				addLatency(c.muxes, mux, d)
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

// muxBefore returns the load balancer from which a packet came to a hop.
func (c *Collector) muxBefore(h *trace.Hop) (model.NodeID, bool) {
	if !c.fabric.HasNode(h.Switch) {
		return 0, false
	}
	p := c.fabric.Port(model.Port{Node: h.Switch, Port: h.In})
	if p == nil || c.fabric.Node(p.Peer.Node).Role != topo.Mux {
		return 0, false
	}
	return p.Peer.Node, true
}

// addPauseFrame counts a PFC frame that requests a pause.
func (c *Collector) addPauseFrame(t *trace.Trace) {
	var f pfc.Frame
	if _, err := f.Parse(t.Frame); err != nil {
		return
	}
	pauses := false
	for class := range model.Priority(8) {
		q, ok := f.PauseOf(class)
		pauses = pauses || ok && q > 0
	}
	h := &t.Hops[0]
	port := model.Port{Node: h.Switch, Port: h.In}
	if !pauses || !c.fabric.HasNode(h.Switch) || c.fabric.Port(port) == nil {
		return
	}
	p := c.pauses[port]
	if p == nil {
		p = &Pauses{Port: port, First: h.Time}
		c.pauses[port] = p
	}
	p.Frames++
	p.First, p.Last = min(p.First, h.Time), max(p.Last, h.Time)
}

// Mux is the time that packets spent in a load balancer.
type Mux struct {
	Node model.NodeID
	trace.Latency
}

// Muxes returns the load balancers, by node.
func (c *Collector) Muxes() (list []Mux) {
	for id, l := range c.muxes {
		list = append(list, Mux{id, *l})
	}
	slices.SortFunc(list, func(x, y Mux) int { return cmp.Compare(x.Node, y.Node) })
	return list
}

// Link is the shortest round-trip time of a link between two switches, from
// different packets in the two directions. The clocks' difference cancels out:
// it enters once with each sign.
type Link struct {
	Port      model.Port // at the end with the lower node
	RoundTrip time.Duration
	Packets   uint64 // in the direction with fewer
}

// Links returns the links that packets passed in both directions, by port.
func (c *Collector) Links() (list []Link) {
	for port, forward := range c.hops {
		peer := c.fabric.Port(port).Peer
		backward := c.hops[peer]
		if backward == nil || peer.Node < port.Node {
			continue
		}
		list = append(list, Link{
			Port: port, RoundTrip: forward.Min + backward.Min,
			Packets: min(forward.Count, backward.Count),
		})
	}
	slices.SortFunc(list, func(x, y Link) int {
		return cmp.Or(cmp.Compare(x.Port.Node, y.Port.Node), cmp.Compare(x.Port.Port, y.Port.Port))
	})
	return list
}

// Pauses counts the PFC frames that a port received and that requested a pause.
type Pauses struct {
	Port        model.Port
	Frames      uint64
	First, Last model.Time // by the switch's clock
}

// Pauses returns the ports that received such frames, those with most first.
func (c *Collector) Pauses() (list []Pauses) {
	for _, p := range c.pauses {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(x, y Pauses) int {
		return cmp.Or(cmp.Compare(y.Frames, x.Frames), cmp.Compare(x.Port.Node, y.Port.Node),
			cmp.Compare(x.Port.Port, y.Port.Port))
	})
	return list
}

// TakeImbalances returns the groups of equal-cost ports with unequal loads, the
// worst first, and starts over.
func (c *Collector) TakeImbalances() []load.Imbalance { return c.balance.TakeImbalances() }
