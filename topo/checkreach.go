package topo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// fate is what may happen to packets from some node on.
type fate uint8

const (
	arrives fate = 1 << iota
	fails        // no route, a wrong host, a loop
)

// checker holds the results while following all traffic.
type checker struct {
	r        *Routes
	f        *Fabric
	findings []Finding

	entering [][]model.NodeID // hosts attached to the same switches, by the first
	static   []int            // rows of switches with static routes

	loops             map[string]*foundLoop
	loopOrder         []string
	unroutedPairs     pairs // host pairs without any route
	partlyRoutedPairs pairs // host pairs with some routes that fail
	lostNets          []string

	bufferDeps *bufferDependencies // nil: too large to check

	// State of the traffic being followed, by row.
	fates  []fate
	state  []uint8 // 0 new, 1 on the current path, 2 done
	onPath []model.NodeID
	looped bool
}

type foundLoop struct {
	nodes []model.NodeID
	to    []string
}

// pairs counts pairs of hosts and keeps the first.
type pairs struct {
	n        int
	src, dst model.NodeID
	stops    model.NodeID
}

func newChecker(r *Routes) *checker {
	c := &checker{
		r: r, f: r.f,
		loops: make(map[string]*foundLoop),
		fates: make([]fate, len(r.f.switches)),
		state: make([]uint8, len(r.f.switches)),
	}
	for row := range r.overrides {
		if r.overrides[row] != nil {
			c.static = append(c.static, row)
		}
	}
	c.groupHosts()
	return c
}

// groupHosts groups hosts of one class. A host that is linked to another host
// may route differently and forms its own group.
func (c *checker) groupHosts() {
	at := make(map[uint32]int)
	for _, h := range c.f.hosts {
		alone := c.besideHost(h)
		i, known := at[c.r.dests[h].class]
		if alone || !known {
			i = len(c.entering)
			c.entering = append(c.entering, nil)
		}
		if !alone {
			at[c.r.dests[h].class] = i
		}
		c.entering[i] = append(c.entering[i], h)
	}
}

// besideHost reports whether a host has another host on one of its ports.
func (c *checker) besideHost(h model.NodeID) bool {
	return slices.ContainsFunc(c.f.nodes[h].Ports, func(p Port) bool { return c.r.row[p.Peer.Node] < 0 })
}

func (c *checker) isDown(link int) bool { return c.r.down != nil && c.r.down[link] }

// followTraffic follows one class of traffic from every host and every switch and
// records its fate.
func (c *checker) followTraffic(t traffic) {
	clear(c.state)
	clear(c.fates)
	c.looped = false
	for row := range c.f.switches {
		c.fateAt(t, uint32(row))
	}
	// Where packets may loop, the fate of nodes after the loop was not known when
	// the loop was met: repeat until nothing changes.
	for again := c.looped; again; {
		again = false
		for row := range c.f.switches {
			before := c.fates[row]
			again = c.fateOverPorts(t, uint32(row)) != before || again
		}
	}
	var entries []uint32
	for _, hosts := range c.entering {
		i := slices.IndexFunc(hosts, func(h model.NodeID) bool { return !c.r.Owns(h, t.dst) })
		if i < 0 {
			continue
		}
		src := hosts[i]
		var f fate
		hops := c.r.NextHops(src, t.dst)
		for _, p := range hops {
			peer := c.f.nodes[src].Ports[p-1].Peer.Node
			if row := c.r.row[peer]; row >= 0 {
				f |= c.fates[row]
				entries = append(entries, uint32(row))
			} else {
				f |= arrives // a host forwards to a host only if that is the owner
			}
		}
		if len(hops) == 0 {
			f = fails
		}
		c.countPairs(t, hosts, src, f)
	}
	slices.Sort(entries)
	if !t.net && len(t.hosts) > 0 || t.net && c.ownedByHost(t.dst) {
		c.bufferDeps.addTraffic(c.r, t.dst, slices.Compact(entries))
	}
}

func (c *checker) ownedByHost(a model.Addr) bool {
	return slices.ContainsFunc(c.r.Owners(a), func(id model.NodeID) bool { return !c.f.nodes[id].Role.IsSwitch() })
}

// fateAt finds the fate of packets at a switch, depth first; a switch met twice
// on the path is a loop.
func (c *checker) fateAt(t traffic, row uint32) fate {
	id := c.f.switches[row]
	switch c.state[row] {
	case 1:
		c.recordLoop(t, id)
		c.looped = true
		return fails
	case 2:
		return c.fates[row]
	}
	c.state[row] = 1
	c.onPath = append(c.onPath, id)
	f := c.fateOverPorts(t, row)
	c.onPath = c.onPath[:len(c.onPath)-1]
	return f
}

// fateOverPorts joins the fates of packets through each port of a switch.
func (c *checker) fateOverPorts(t traffic, row uint32) fate {
	id := c.f.switches[row]
	ports := c.r.ports(c.r.lookup(row, id, t.dst))
	if len(ports) == 0 {
		c.fates[row] |= fails
	}
	for _, p := range ports {
		c.fates[row] |= c.fateByPort(t, id, p)
	}
	c.state[row] = 2
	return c.fates[row]
}

// fateByPort finds the fate of packets that a switch sends through a port.
func (c *checker) fateByPort(t traffic, id model.NodeID, p model.PortID) fate {
	if p == 0 {
		return arrives
	}
	port := &c.f.nodes[id].Ports[p-1]
	if c.isDown(port.Link) {
		return fails
	}
	if row := c.r.row[port.Peer.Node]; row >= 0 {
		return c.fateAt(t, uint32(row))
	}
	// Only a static route can pick a wrong host.
	if c.r.Owns(port.Peer.Node, t.dst) {
		return arrives
	}
	return fails
}

// recordLoop records the loop that closes at a switch.
func (c *checker) recordLoop(t traffic, id model.NodeID) {
	loop := slices.Clone(c.onPath[slices.Index(c.onPath, id):])
	// The same loop may be entered anywhere: start at its least node.
	least := slices.Index(loop, slices.Min(loop))
	loop = slices.Concat(loop[least:], loop[:least])
	key := fmt.Sprint(loop)
	if c.loops[key] == nil {
		c.loops[key] = &foundLoop{nodes: loop}
		c.loopOrder = append(c.loopOrder, key)
	}
	if l := c.loops[key]; len(l.to) == 0 || l.to[len(l.to)-1] != t.name {
		l.to = append(l.to, t.name)
	}
}

// countPairs counts pairs of hosts by the fate of packets from hosts attached to
// the same switches. Where static routes differ for a host's two addresses, each
// counts.
func (c *checker) countPairs(t traffic, sources []model.NodeID, src model.NodeID, f fate) {
	if f&fails == 0 {
		return
	}
	if t.net {
		if name := t.name; !slices.Contains(c.lostNets, name) {
			c.lostNets = append(c.lostNets, name)
		}
		return
	}
	into := &c.unroutedPairs
	if f&arrives != 0 {
		into = &c.partlyRoutedPairs
	}
	n := len(sources) * len(t.hosts)
	for _, h := range t.hosts {
		if _, same := slices.BinarySearch(sources, h); same {
			n-- // not to itself
		}
	}
	if n == 0 {
		return
	}
	dst := t.hosts[0]
	if dst == src {
		dst = t.hosts[len(t.hosts)-1]
	}
	if into.n == 0 {
		into.src, into.dst, into.stops = src, dst, c.failureNode(t, src)
	}
	into.n += n
}

// failureNode returns a node where packets from a host fail.
func (c *checker) failureNode(t traffic, at model.NodeID) model.NodeID {
	for range len(c.f.nodes) {
		next := at
		for _, p := range c.r.NextHops(at, t.dst) {
			if p == 0 {
				continue
			}
			port := &c.f.nodes[at].Ports[p-1]
			row := c.r.row[port.Peer.Node]
			if !c.isDown(port.Link) && row >= 0 && c.fates[row]&fails != 0 {
				next = port.Peer.Node
			}
		}
		if next == at {
			return at
		}
		at = next
	}
	return at // in a loop
}

func (c *checker) reportLoops() {
	for _, key := range c.loopOrder {
		l := c.loops[key]
		var names []string
		for _, id := range append(slices.Clone(l.nodes), l.nodes[0]) {
			names = append(names, c.name(id))
		}
		to := l.to[0]
		if len(l.to) > 1 {
			to += fmt.Sprintf(" and %d other destinations", len(l.to)-1)
		}
		c.addFinding(Finding{Fault, Loop, fmt.Sprintf("forwarding loop %s for packets to %s",
			strings.Join(names, " > "), to), l.nodes, nil})
	}
}

func (c *checker) reportReach() {
	for _, what := range []struct {
		p    pairs
		text string
	}{
		{c.unroutedPairs, "no route for %s, for example %s → %s: packets are dropped at %s"},
		{c.partlyRoutedPairs, "no route for some flows of %s, for example %s → %s: packets are dropped at %s"},
	} {
		if p := what.p; p.n > 0 {
			c.addFinding(Finding{
				Fault, Unreachable, fmt.Sprintf(what.text, plural.Count(p.n, "ordered host pair"), c.name(p.src), c.name(p.dst), c.name(p.stops)),
				[]model.NodeID{p.src, p.dst, p.stops},
				nil,
			})
		}
	}
	if len(c.lostNets) > 0 {
		c.addFinding(Finding{Fault, Unreachable, fmt.Sprintf("some hosts cannot reach %s",
			strings.Join(c.lostNets, ", ")), nil, nil})
	}
}
