package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Hop is one switch on a packet's path.
type Hop struct {
	Switch  model.NodeID
	In, Out model.PortID
}

// Path is one path that packets of a flow took, through muxes to the end. Where
// all were dropped it ends at the last queue they joined.
type Path struct {
	Hops      []Hop
	Delivered int64 // packets
	Dropped   int64 // packets

	// First and Last are when the first and the last of those packets were
	// enqueued at their first switch.
	First, Last engine.Time
}

// paths follows every packet from its first switch on. The paths of one
// direction of a flow form a tree of hops, so a packet's path so far is one
// number, and a step is a comparison where the route did not change.
type paths struct {
	nodes      []pathNode
	roots      []int32 // by direction: 1 + its root in nodes, 0 for none yet
	max        int
	unrecorded int64

	// position is how far each packet has come. The packet is only a key: it is
	// never read, and its entry is removed when it ends.
	position map[*sim.Packet]packetPosition
}

type pathNode struct {
	in, out        int32 // ports
	parent         int32 // -1 at the root
	child, sibling int32 // 0: none; a root has no parent

	delivered, dropped int64
	first, last        engine.Time
}

type packetPosition struct {
	node      int32 // notFollowed: not followed
	direction int32
	entered   engine.Time
}

const notFollowed = -1

func newPaths(maxHops int) *paths {
	return &paths{max: maxHops, position: make(map[*sim.Packet]packetPosition)}
}

func (t *paths) enqueued(now engine.Time, p *sim.Packet, in, out int32, first bool) {
	d := direction(p)
	if in < 0 || d < 0 {
		// A packet of the switch, or of no flow. The memory may be that of a
		// packet which a program consumed without notice.
		delete(t.position, p)
		return
	}
	var at packetPosition
	if first {
		at = packetPosition{node: t.root(d), direction: d, entered: now}
	} else {
		var known bool
		if at, known = t.position[p]; !known || at.direction != d {
			return // a clone: it was made in the middle of the fabric
		}
	}
	if at.node != notFollowed {
		at.node = t.step(at.node, in, out)
	}
	t.position[p] = at
}

// root returns the root of a direction's tree.
func (t *paths) root(d int32) int32 {
	t.roots = reach(t.roots, d)
	if t.roots[d] == 0 {
		if len(t.nodes) >= t.max {
			return notFollowed
		}
		t.nodes = append(t.nodes, pathNode{in: -1, out: -1, parent: -1})
		t.roots[d] = int32(len(t.nodes))
	}
	return t.roots[d] - 1
}

// step advances by one hop.
func (t *paths) step(from, in, out int32) int32 {
	for c := t.nodes[from].child; c != 0; c = t.nodes[c].sibling {
		if t.nodes[c].in == in && t.nodes[c].out == out {
			return c
		}
	}
	if len(t.nodes) >= t.max {
		return notFollowed
	}
	c := int32(len(t.nodes))
	t.nodes = append(t.nodes, pathNode{in: in, out: out, parent: from, sibling: t.nodes[from].child})
	t.nodes[from].child = c
	return c
}

// ended closes a packet's path.
func (t *paths) ended(p *sim.Packet, delivered bool) {
	at, known := t.position[p]
	if !known {
		return
	}
	delete(t.position, p)
	switch {
	case p.Control || at.direction != direction(p):
		return // another packet in the memory of one that a program consumed
	case at.node == notFollowed:
		t.unrecorded++
		return
	}
	n := &t.nodes[at.node]
	if n.delivered+n.dropped == 0 {
		n.first, n.last = at.entered, at.entered
	}
	n.first, n.last = min(n.first, at.entered), max(n.last, at.entered)
	if delivered {
		n.delivered++
	} else {
		n.dropped++
	}
}

// Paths returns the paths of one direction of a flow, in the order of first
// use. Packets still in flight belong to none yet.
func (r *Recorder) Paths(flow int, reverse bool) []Path {
	d := directionOf(flow, reverse)
	if r.paths == nil || flow < 0 || int(d) >= len(r.paths.roots) || r.paths.roots[d] == 0 {
		return nil
	}
	var all []Path
	var walk func(node int32, hops []Hop)
	walk = func(node int32, hops []Hop) {
		n := &r.paths.nodes[node]
		if n.parent >= 0 {
			in, out := r.name(n.in), r.name(n.out)
			hops = append(hops, Hop{Switch: out.Node, In: in.Port, Out: out.Port})
		}
		if n.delivered+n.dropped > 0 {
			all = append(all, Path{slices.Clone(hops), n.delivered, n.dropped, n.first, n.last})
		}
		for c := n.child; c != 0; c = r.paths.nodes[c].sibling {
			walk(c, hops)
		}
	}
	walk(r.paths.roots[d]-1, nil)
	slices.SortFunc(all, func(a, b Path) int {
		return cmp.Or(cmp.Compare(a.First, b.First), slices.CompareFunc(a.Hops, b.Hops, compareHops))
	})
	return all
}

func compareHops(a, b Hop) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.In, b.In), cmp.Compare(a.Out, b.Out))
}
