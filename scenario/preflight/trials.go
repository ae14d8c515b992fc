package preflight

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fairshare"
)

// cycleTrial returns flows that fill the ports of a cycle: for each two successive
// ports some that take both, from hosts that enter the cycle there.
func (c *checker) cycleTrial(routes *topo.Routes, failure topo.Failure, cycle []model.Port) (*trial, error) {
	t := &trial{
		about:    "Flows at line rate fill a cycle of ports that depend on each other. A deadlock forms and persists.",
		duration: c.fillTime(cycle), failure: failure, expect: "deadlock: persistent",
	}
	for _, perPort := range []int{1, 2, 4} {
		search := newFlowSearch(c, routes)
		var list []flow
		for i, p := range cycle {
			found := search.find(perPort, p, cycle[(i+1)%len(cycle)])
			if len(found) == 0 {
				return nil, fmt.Errorf("no flow takes %s and then the next port of the cycle", c.fabric.PortRef(p))
			}
			list = append(list, found...)
		}
		t.forms, t.storms = append(t.forms, list, list), append(t.storms, false, true)
	}
	return t, nil
}

// fillTime returns how long flows get to fill the ports of a cycle: twice the time
// in which the slowest link fills a whole buffer, and at least 3 ms.
func (c *checker) fillTime(cycle []model.Port) time.Duration {
	slowest := c.fabric.Port(cycle[0]).Rate
	for _, p := range cycle {
		slowest = min(slowest, c.fabric.Port(p).Rate)
	}
	buffer := float64(c.s.Sim.Buffer) * 8 / float64(slowest) * float64(time.Second)
	return max(3*time.Millisecond, time.Duration(buffer*2)).Round(100 * time.Microsecond)
}

func (c *checker) lostTrial(failure topo.Failure, routes *topo.Routes, src, dst string) *trial {
	a, _ := c.fabric.ByName(src)
	b, _ := c.fabric.ByName(dst)
	f := flow{src: a, dst: b, port: firstPort, bytes: 100 * model.KB, congested: true}
	// Where only some of several paths end, take a flow of one of them.
	for port := range uint16(1024) {
		fc := fairshare.New(routes, []fairshare.Flow{{Key: c.flowKey(a, b, firstPort+port), Src: a}})
		if fc.Flows[0].NoPath {
			f.port = firstPort + port
			break
		}
	}
	return &trial{
		about:    "A flow between two hosts that one failure parts. It does not finish.",
		duration: 20 * time.Millisecond, failure: failure, forms: [][]flow{{f}},
		expect: "finished: none", finish: true,
	}
}

// headroomTrial has senders fill one of the ports at its full rate while the
// receivers send PAUSE.
func (c *checker) headroomTrial(ports []model.Port) (*trial, error) {
	t := &trial{
		about:    "Receivers send PAUSE. Senders fill a port at its full rate, and more arrives after its pause than headroom holds.",
		duration: time.Millisecond, expect: "lossless-drops: some",
	}
	for _, p := range ports {
		port := c.fabric.Port(p)
		search := newFlowSearch(c, c.routes)
		var list []flow
		var sum model.Rate
		for _, f := range search.find(32, port.Peer) {
			if sum >= port.Rate {
				break
			}
			// The other direction is busy, too: a PAUSE waits for the frame that has begun.
			list = append(list, f, flow{src: f.dst, dst: f.src, port: f.port})
			sum += c.fabric.Node(f.src).Ports[0].Rate
		}
		if len(list) > 0 {
			t.forms, t.storms = append(t.forms, list), append(t.storms, true)
		}
		if len(t.forms) == 4 {
			break
		}
	}
	if len(t.forms) == 0 {
		return nil, errors.New("no flow between hosts takes these ports")
	}
	return t, nil
}

// ecnTrial has a receiver drain slowly, so that the queue of one sender grows until
// ECN or PFC acts.
func (c *checker) ecnTrial(ports []model.Port) (*trial, error) {
	for _, p := range ports {
		port := c.fabric.Port(p)
		dst := port.Peer.Node
		if c.fabric.Node(dst).Role.IsSwitch() {
			continue
		}
		search := newFlowSearch(c, c.routes)
		for _, f := range search.find(1, p) {
			f.congested = true
			f.bytes = 64 * model.MB
			return &trial{
				about:    "A receiver drains at a quarter of its rate. The sender is paused by PFC, because ECN marks too late to slow it.",
				duration: 2 * time.Millisecond, forms: [][]flow{{f}},
				faults: []string{fmt.Sprintf("{kind: slow-receiver, host: %s, rate: %d, priority: %d}",
					c.fabric.Node(dst).Name, int64(port.Rate/4), c.priority())},
				expect: "pauses-to-hosts: some", finish: true,
			}, nil
		}
	}
	return nil, errors.New("none of these ports leads to a host")
}

// polarizationTrial has half of the hosts send to the other half, in flows that
// would share no link if each switch had a hash of its own.
func (c *checker) polarizationTrial(routes *topo.Routes, same bool) (*trial, error) {
	if !same {
		return nil, errors.New("a scenario cannot state this hash")
	}
	hosts := c.fabric.Hosts()
	n := min(len(hosts)/2, 64)
	var flows []fairshare.Flow
	var list []flow
	taken := make(map[int]bool) // links, where each switch has a hash of its own
	for i := range n {
		src, dst := hosts[i*(len(hosts)/2)/n], hosts[len(hosts)/2+i*(len(hosts)/2)/n]
		port, ok := c.freePort(src, dst, taken)
		if !ok {
			continue
		}
		flows = append(flows, fairshare.Flow{Key: c.flowKey(src, dst, port), Src: src})
		list = append(list, flow{src: src, dst: dst, port: port, bytes: 2 * model.MB, congested: true})
	}
	fc := fairshare.New(routes, flows)
	t := collisionTrial(fc.Flows[fc.Worst()].Slowdown(), list)
	t.about = "All switches use the same hash. Flows share few of the equal-cost ports."
	t.faults = []string{"{kind: hash-polarization}"}
	return t, nil
}

// freePort returns a source port with which a flow takes no link that is taken,
// and takes its links.
func (c *checker) freePort(src, dst model.NodeID, taken map[int]bool) (uint16, bool) {
	for i := range uint16(256) {
		fc := fairshare.New(c.routes, []fairshare.Flow{{Key: c.flowKey(src, dst, firstPort+i), Src: src}})
		links := fc.Flows[0].Links
		if len(links) == 0 || slices.ContainsFunc(links, func(l int) bool { return taken[l] }) {
			continue
		}
		for _, l := range links {
			taken[l] = true
		}
		return firstPort + i, true
	}
	return 0, false
}

// collisionTrial expects the slowdown that was forecast, less a part for what the
// forecast leaves out: flows that end earlier leave their share to others.
func collisionTrial(forecast float64, list []flow) *trial {
	return &trial{
		about:    "Flows of a job share links though others of equal cost are free.",
		duration: 50 * time.Millisecond, forms: [][]flow{list}, finish: true,
		expect: fmt.Sprintf("slowdown-max: at least %.2f", max(1, 0.7*forecast)),
	}
}

// flowSearch finds flows over given ports, each from another host.
type flowSearch struct {
	c      *checker
	routes *topo.Routes
	used   map[model.NodeID]bool // sources
	tries  int
}

func newFlowSearch(c *checker, routes *topo.Routes) *flowSearch {
	return &flowSearch{c: c, routes: routes, used: make(map[model.NodeID]bool), tries: 400_000}
}

// find returns up to n flows whose packets leave by all of the ports, one after the
// other. Sources that other flows have are used only if there is no other.
func (s *flowSearch) find(n int, egress ...model.Port) (list []flow) {
	for _, again := range []bool{false, true} {
		if again && len(list) > 0 {
			break
		}
		for _, dst := range s.destinations(egress) {
			reaches := make(map[model.NodeID]bool)
			for _, src := range s.c.fabric.Hosts() {
				if src == dst || s.used[src] && !again || !s.leadsTo(src, dst, egress[0].Node, reaches) {
					continue
				}
				if f, ok := s.flowOver(src, dst, egress); ok {
					s.used[src] = true
					if list = append(list, f); len(list) == n {
						return list
					}
					break // the next flow has another destination
				}
			}
		}
	}
	return list
}

// destinations lists the hosts to which packets may leave by all of the ports.
func (s *flowSearch) destinations(egress []model.Port) (list []model.NodeID) {
	for _, dst := range s.c.fabric.Hosts() {
		addr := s.c.fabric.Node(dst).IPv4
		if !slices.ContainsFunc(egress, func(p model.Port) bool { return !slices.Contains(s.routes.NextHops(p.Node, addr), p.Port) }) {
			list = append(list, dst)
		}
	}
	return list
}

// leadsTo reports whether some path from a node to dst passes another node. known
// holds what was found before.
func (s *flowSearch) leadsTo(from, dst, pass model.NodeID, known map[model.NodeID]bool) bool {
	if from == pass {
		return true
	}
	if found, ok := known[from]; ok {
		return found
	}
	known[from] = false // a loop leads nowhere
	for _, p := range s.routes.NextHops(from, s.c.fabric.Node(dst).IPv4) {
		if p != 0 && s.leadsTo(s.c.fabric.Node(from).Port(p).Peer.Node, dst, pass, known) {
			known[from] = true
			return true
		}
	}
	return false
}

// flowOver searches for a source port with which a flow takes the ports.
func (s *flowSearch) flowOver(src, dst model.NodeID, egress []model.Port) (flow, bool) {
	var hops []topo.Hop
	for i := range uint16(512) {
		if s.tries--; s.tries < 0 {
			break
		}
		var err error
		hops, err = s.routes.AppendPath(hops[:0], s.c.flowKey(src, dst, firstPort+i), src)
		if err != nil && !errors.Is(err, topo.ErrLoop) {
			continue
		}
		at := slices.IndexFunc(hops, func(h topo.Hop) bool { return h.Node == egress[0].Node })
		if at < 0 || at+len(egress) > len(hops) {
			continue
		}
		takes := true
		for j, p := range egress {
			takes = takes && hops[at+j].Node == p.Node && hops[at+j].Out == p.Port
		}
		if takes {
			return flow{src: src, dst: dst, port: firstPort + i}, true
		}
	}
	return flow{}, false
}
