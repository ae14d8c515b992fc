package sim

import (
	"math"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// PathMetrics sums up the path between two hosts as the HPCC simulator does:
// the first of several shortest ones.
type PathMetrics struct {
	Delay engine.Time // propagation, one direction
	Send  engine.Time // one payload on each link, without headers
	Rate  model.Rate  // the lowest on the path
}

// RTT returns propagation in both directions and transmission in one.
func (s PathMetrics) RTT() engine.Time { return 2*s.Delay + s.Send }

// Window returns the bandwidth-delay product in bytes.
func (s PathMetrics) Window() int64 {
	hi, lo := bits.Mul64(uint64(s.RTT()), uint64(s.Rate))
	const bitTimes = 8 * uint64(engine.Second)
	if hi >= bitTimes {
		return 0 // a path of days
	}
	q, _ := bits.Div64(hi, lo, bitTimes)
	return int64(q)
}

// PathTable computes the metrics of a fabric's paths.
type PathTable struct {
	routes  *topo.Routes
	fabric  *topo.Fabric
	payload int64
	wholeNS bool // times on links are whole nanoseconds, as in the HPCC simulator

	// For one destination, the metrics from each node; rate 0 is no path.
	to         model.Addr
	from       []PathMetrics
	known      []int32 // the generation of the entry in from
	generation int32
}

// NewPathTable prepares to sum up the paths of packets with that payload.
// wholeNS truncates the time on each link to nanoseconds.
func NewPathTable(r *topo.Routes, payload int32, whole bool) *PathTable {
	return &PathTable{routes: r, fabric: r.Fabric(), payload: int64(payload), wholeNS: whole}
}

// Between returns the metrics between two hosts; ok is false where there is no
// path.
func (s *PathTable) Between(src, dst model.NodeID) (sum PathMetrics, ok bool) {
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
		sum = s.along(sum, p)
		src = p.Peer.Node
	}
	return sum, false // a forwarding loop
}

// along adds a port's link to the metrics.
func (s *PathTable) along(sum PathMetrics, p *topo.Port) PathMetrics {
	return sum.addLink(p.Rate, engine.Of(p.Delay), s.payload, s.wholeNS)
}

// addLink adds a link to the metrics. whole truncates the transmission time to
// nanoseconds.
func (s PathMetrics) addLink(rate model.Rate, delay engine.Time, payload int64, whole bool) PathMetrics {
	send := engine.Transmit(payload, rate)
	if whole {
		send -= send % engine.Nanosecond
	}
	return PathMetrics{s.Delay + delay, s.Send + send, min(s.Rate, rate)}
}

// LargestWindow returns the largest window and the longest round trip of any
// two hosts. Hosts with equal links to the same switches represent each other,
// and the metrics of a switch are computed once per destination.
func (s *PathTable) LargestWindow() (window int64, rtt engine.Time) {
	from, to := s.representativeHosts()
	s.from, s.known, s.generation = make([]PathMetrics, len(s.fabric.Nodes())), make([]int32, len(s.fabric.Nodes())), 0
	for _, dst := range to {
		s.to = s.fabric.Node(dst).IPv4
		s.generation++
		s.known[dst], s.from[dst] = s.generation, PathMetrics{Rate: math.MaxInt64}
		for _, src := range from {
			if src == dst || !s.computeFrom(src) {
				continue
			}
			window, rtt = max(window, s.from[src].Window()), max(rtt, s.from[src].RTT())
		}
	}
	return window, rtt
}

// computeFrom computes the metrics from a node to the destination.
func (s *PathTable) computeFrom(node model.NodeID) bool {
	if s.known[node] == s.generation {
		return s.from[node].Rate != 0
	}
	s.known[node], s.from[node] = s.generation, PathMetrics{} // also where there is no path, or a loop
	at := s.fabric.Node(node)
	p := &at.Ports[0]
	if at.Role.IsSwitch() || len(at.Ports) > 1 {
		ports := s.routes.NextHops(node, s.to)
		if len(ports) == 0 {
			return false
		}
		p = at.Port(ports[0])
	}
	if !s.computeFrom(p.Peer.Node) {
		return false
	}
	s.from[node] = s.along(s.from[p.Peer.Node], p)
	return true
}

// representativeHosts picks hosts so that every kind of pair is among them: one
// destination and two sources of those with equal links.
func (s *PathTable) representativeHosts() (from, to []model.NodeID) {
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
			at[0].to = h // it represents only itself
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
