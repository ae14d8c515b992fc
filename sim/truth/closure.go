package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/internal/scc"
	"github.com/weft-telemetry/weft/model"
)

// Closure returns all nodes that some nodes wait for, directly or through
// others, and themselves, in the order of Nodes. Flows on the path are the
// competitors in a queue that drains. They are not followed: where else they
// wait delays nothing here.
func (g *Graph) Closure(from ...Node) Closure {
	seen := make([]bool, len(g.Nodes))
	var todo []int
	visit := func(n Node, follow bool) {
		if i, ok := g.index[n]; ok && !seen[i] {
			seen[i] = true
			if follow {
				todo = append(todo, i)
			}
		}
	}
	for _, n := range from {
		visit(n, true)
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range g.Edges[g.first[i]:g.first[i+1]] {
			visit(e.To, e.To.Kind != KindFlow)
		}
	}
	c := Closure{g: g}
	for i, s := range seen {
		if s {
			c.Nodes = append(c.Nodes, g.Nodes[i].Node)
		}
	}
	return c
}

// Closure is all that some nodes wait for.
type Closure struct {
	Nodes []Node // as in Graph.Nodes
	g     *Graph
}

// Has reports whether the closure holds a node.
func (c Closure) Has(n Node) bool {
	_, ok := slices.BinarySearchFunc(c.Nodes, n, compareNodes)
	return ok
}

// Ports returns the ports whose queues are in it, ascending.
func (c Closure) Ports() (ports []model.Port) {
	for _, n := range c.Nodes {
		if n.Kind == KindQueue && (len(ports) == 0 || ports[len(ports)-1] != n.Port) {
			ports = append(ports, n.Port)
		}
	}
	return ports
}

// Switches returns the switches that have a port in it, ascending: those that a
// complete diagnosis must have polled.
func (c Closure) Switches() (ids []model.NodeID) {
	for _, n := range c.Nodes {
		if n.Kind == KindQueue && c.g.fabric.Node(n.Port.Node).Role.IsSwitch() && !slices.Contains(ids, n.Port.Node) {
			ids = append(ids, n.Port.Node)
		}
	}
	return ids
}

// Hosts returns the hosts that pause a queue, ascending.
func (c Closure) Hosts() (ids []model.NodeID) {
	for _, n := range c.Nodes {
		if n.Kind == KindHost {
			ids = append(ids, n.Port.Node)
		}
	}
	return ids
}

// Root is a node, or cycle, that waits for nothing else.
type Root struct {
	Kind  RootKind
	Nodes []Node // of a cycle: in the order they wait for each other; else one
	Count Count  // of those queues
	Flows []Edge // of contention: the competing flows, by bytes, most first
}

// RootKind is the type of a Root.
type RootKind uint8

// Kinds of root.
const (
	RootHost       RootKind = iota // a host pauses its switch
	RootContention                 // a queue that drains: its flows compete for the wire
	RootCycle                      // paused queues that wait for each other
	RootStalePause                 // a pause whose cause is gone
)

var rootNames = [...]string{"host", "contention", "cycle", "stale-pause"}

// String prints the kind's name.
func (k RootKind) String() string { return rootNames[k] }

// MarshalText writes String's form.
func (k RootKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Roots returns where the closure's dependencies end: hosts, queues that drain,
// cycles, stale pauses; each kind by node.
func (c Closure) Roots() (roots []Root) {
	for _, loop := range c.g.Cycles() {
		if c.Has(loop[0]) {
			root := Root{Kind: RootCycle, Nodes: loop}
			for _, n := range loop {
				s, _ := c.g.State(n)
				root.Count.Packets += s.Count.Packets
				root.Count.Bytes += s.Count.Bytes
			}
			roots = append(roots, root)
		}
	}
	for _, n := range c.Nodes {
		s, _ := c.g.State(n)
		edges := c.g.EdgesFrom(n)
		switch {
		case n.Kind == KindHost:
			roots = append(roots, Root{Kind: RootHost, Nodes: []Node{n}})
		case n.Kind == KindQueue && !s.Paused:
			roots = append(roots, Root{Kind: RootContention, Nodes: []Node{n}, Count: s.Count, Flows: competitors(edges)})
		case n.Kind == KindQueue && len(edges) == 0:
			roots = append(roots, Root{Kind: RootStalePause, Nodes: []Node{n}, Count: s.Count})
		}
	}
	slices.SortStableFunc(roots, func(a, b Root) int { return cmp.Compare(a.Kind, b.Kind) })
	return roots
}

// competitors returns the edges to flows, by bytes, most first.
func competitors(edges []Edge) (flows []Edge) {
	for _, e := range edges {
		if e.Reason == ReasonContends {
			flows = append(flows, e)
		}
	}
	slices.SortStableFunc(flows, func(a, b Edge) int { return cmp.Compare(b.Count.Bytes, a.Count.Bytes) })
	return flows
}

// Cycles returns the cyclic buffer dependencies: sets of paused queues that
// wait for each other, each from its least queue on in the order of waiting
// where there is one. A cycle need not be stuck: see Deadlocks.
func (g *Graph) Cycles() [][]Node {
	return g.cycles(func(Node) bool { return true })
}

// cycles is Cycles among the queues that keep accepts.
func (g *Graph) cycles(keep func(Node) bool) (loops [][]Node) {
	in := make([]bool, len(g.Nodes))
	for i, n := range g.Nodes {
		in[i] = n.Kind == KindQueue && n.Paused && keep(n.Node)
	}
	kept := func(yield func(int) bool) {
		for i := range in {
			if in[i] && !yield(i) {
				return
			}
		}
	}
	parts := scc.Components(len(g.Nodes), kept, func(i int, list []int) []int {
		for _, e := range g.Edges[g.first[i]:g.first[i+1]] {
			if to := g.index[e.To]; in[to] {
				list = append(list, to)
			}
		}
		return list
	})
	for _, members := range parts {
		if len(members) > 1 {
			loops = append(loops, g.cycleThrough(members))
		}
	}
	slices.SortFunc(loops, func(a, b []Node) int { return compareNodes(a[0], b[0]) })
	return loops
}

// cycleThrough orders the members of a component by waiting: from the least on,
// always to the least successor not yet listed; members off that walk follow in
// their own order.
func (g *Graph) cycleThrough(members []int) []Node {
	left := map[int]bool{}
	for _, m := range members {
		left[m] = true
	}
	var walk []Node
	for at := members[0]; at >= 0; {
		walk = append(walk, g.Nodes[at].Node)
		delete(left, at)
		next := -1
		for _, e := range g.EdgesFrom(g.Nodes[at].Node) {
			if to := g.index[e.To]; left[to] {
				next = to
				break
			}
		}
		at = next
	}
	for _, m := range members {
		if left[m] {
			walk = append(walk, g.Nodes[m].Node)
		}
	}
	return walk
}
