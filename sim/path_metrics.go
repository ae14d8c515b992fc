package sim

import (
	"math"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// Span is the way between two hosts as the HPCC simulator sums it up: where
// several are equally short, the first.
type Span struct {
	Delay engine.Time // propagation, one way
	Send  engine.Time // one payload on each link, without headers
	Rate  model.Rate  // the lowest on the way
}

// RTT is both ways of propagation, and sending one of them.
func (s Span) RTT() engine.Time { return 2*s.Delay + s.Send }

// Window is the bandwidth-delay product in bytes.
func (s Span) Window() int64 {
	hi, lo := bits.Mul64(uint64(s.RTT()), uint64(s.Rate))
	const bitTimes = 8 * uint64(engine.Second)
	if hi >= bitTimes {
		return 0 // a way of days
	}
	q, _ := bits.Div64(hi, lo, bitTimes)
	return int64(q)
}

// Spans computes the spans of a fabric.
type Spans struct {
	routes  *topo.Routes
	fabric  *topo.Fabric
	payload int64
	whole   bool // links take whole nanoseconds, as there

	// Towards one destination, what is known of each node; rate 0 is no way.
	to    model.Addr
	from  []Span
	known []int32 // for which destination that is, counted from 1
	round int32
}

// NewSpans prepares to sum up the ways of packets with so much payload. whole
// cuts the time on each link to nanoseconds.
func NewSpans(r *topo.Routes, payload int32, whole bool) *Spans {
	return &Spans{routes: r, fabric: r.Fabric(), payload: int64(payload), whole: whole}
}

// Of returns the span between two hosts; ok is false where there is no way.
func (s *Spans) Of(src, dst model.NodeID) (sum Span, ok bool) {
	to := s.fabric.Node(dst).IPv4
	sum.Rate = math.MaxInt64
	for range len(s.fabric.Nodes()) {
		if src == dst {
			return sum, sum.Delay|sum.Send != 0
		}
		ports := s.routes.NextHops(src, to)
		if len(ports) == 0 {
			return sum, false
		}
		p := s.fabric.Node(src).Port(ports[0])
		sum = s.over(sum, p)
		src = p.Peer.Node
	}
	return sum, false // routes that lead in a circle
}

// over lengthens a span by a port's link.
func (s *Spans) over(sum Span, p *topo.Port) Span {
	return sum.with(p.Rate, engine.Of(p.Delay), s.payload, s.whole)
}

// with lengthens a span by a link. whole cuts the time to send the payload to
// nanoseconds.
func (s Span) with(rate model.Rate, delay engine.Time, payload int64, whole bool) Span {
	send := engine.Transmit(payload, rate)
	if whole {
		send -= send % engine.Nanosecond
	}
	return Span{s.Delay + delay, s.Send + send, min(s.Rate, rate)}
}

// Largest returns the largest window and the longest round trip of any two
// hosts. Hosts with like links to the same switches stand for each other, and
// what is known of a switch serves all that send through it.
func (s *Spans) Largest() (window int64, rtt engine.Time) {
	from, to := s.places()
	s.from, s.known, s.round = make([]Span, len(s.fabric.Nodes())), make([]int32, len(s.fabric.Nodes())), 0
	for _, dst := range to {
		s.to = s.fabric.Node(dst).IPv4
		s.round++
		s.known[dst], s.from[dst] = s.round, Span{Rate: math.MaxInt64}
		for _, src := range from {
			if src == dst || !s.reach(src) {
				continue
			}
			window, rtt = max(window, s.from[src].Window()), max(rtt, s.from[src].RTT())
		}
	}
	return window, rtt
}

// reach finds out about a node on the way to the destination.
func (s *Spans) reach(node model.NodeID) bool {
	if s.known[node] == s.round {
		return s.from[node].Rate != 0
	}
	s.known[node], s.from[node] = s.round, Span{} // so where there is no way, or one in a circle
	at := s.fabric.Node(node)
	p := &at.Ports[0]
	if at.Role.IsSwitch() || len(at.Ports) > 1 {
		ports := s.routes.NextHops(node, s.to)
		if len(ports) == 0 {
			return false
		}
		p = at.Port(ports[0])
	}
	if !s.reach(p.Peer.Node) {
		return false
	}
	s.from[node] = s.over(s.from[p.Peer.Node], p)
	return true
}

// places picks hosts so that every kind of pair is among them: one destination
// and two sources of those with like links.
func (s *Spans) places() (from, to []model.NodeID) {
	type end struct {
		to   model.NodeID
		link topo.LinkSpec
	}
	type ends [4]end
	seen := make(map[ends]int)
	for _, h := range s.fabric.Hosts() {
		ports := s.fabric.Node(h).Ports
		if len(ports) == 0 {
			continue
		}
		var at ends
		for i, p := range ports[:min(len(ports), len(at))] {
			at[i] = end{p.Peer.Node, p.LinkSpec}
		}
		if len(ports) > len(at) {
			at[0].to = h // stands for itself
		}
		seen[at]++
		if seen[at] == 1 {
			to = append(to, h)
		}
		if seen[at] <= 2 {
			from = append(from, h)
		}
	}
	return from, to
}
