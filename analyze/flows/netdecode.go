package flows

import (
	"runtime"
	"slices"

	"github.com/weft-telemetry/weft/sketch"
)

// Options configure NetDecode; the zero value is the usual case.
type Options struct {
	// Workers is the number of decoding goroutines; 0: one per CPU. The result
	// does not depend on it.
	Workers int
	// FlowsOnly omits the counts that no single cell gives: enough to see where
	// flows go, and faster.
	FlowsOnly bool
	// Compact asks for Decoded.Compact where it is possible.
	Compact bool
	// InPlace decodes flowsets that are not needed afterwards: tables may be empty then.
	InPlace bool
	// Memory, if not nil, is used again: results are valid until the next call with it.
	Memory *Memory

	// together decodes all tables together, those that empty by themselves, too. It is
	// for tests.
	together bool
}

// NetDecode decodes the flowsets of many switches in one slot together, each
// address family separately: a flow found in one is removed from others that
// hold it, where that may uncover more. Guides say where to search, the second
// one for what the first has missed; without a guide, each flowset is decoded by
// itself. A flowset whose table empties by itself needs no other: its result is that
// of SingleDecode, and it only helps those that do not.
//
// The presence of flows is proven by keys (see provenFlows), counts as in
// SingleDecode or by the equations of the whole flowset (see independent). The
// results are in the order of sets.
func NetDecode(sets []*Flowset, o Options, guides ...Guide) []Decoded {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Memory == nil {
		o.Memory = new(Memory)
	}
	o.Memory.reset(len(sets))
	out := make([]Decoded, len(sets))
	decodeFamily[sketch.Key4](sets, out, o, guides)
	decodeFamily[sketch.Key6](sets, out, o, guides)
	return out
}

// network is the flowsets of one family.
type network[K sketch.Key] struct {
	Options
	parts []*part[K]
	bySet []*part[K] // by index in NetDecode's sets; nil: of the other family
	flows *flowIndex[K]
}

// part is one flowset among those that are decoded together.
type part[K sketch.Key] struct {
	peeler[K]
	fs        *Flowset
	set       int    // index in NetDecode's sets
	index     int    // index in network.parts
	alone     bool   // the table emptied by itself; found has the flows that others may need
	ownFlows  int    // number of flows found before any was claimed
	shared    int    // number of flows passed on to others
	firstHere []int  // flows not passed on that were found here before anywhere else
	seen      bitmap // by flow id: found here, or known not to be

	// The flows passed on in a round: to adjacent parts, flows and their ids;
	// where paths are known, ids by part.
	newFlows []K
	newIDs   []uint32
	outbox   [][]uint32

	// Where the table emptied by itself: the counts of found.
	ownPackets, ownBytes *flowCounts

	denied []uint32 // flows that pass the filter, but one of whose cells is empty
}

func decodeFamily[K sketch.Key](sets []*Flowset, out []Decoded, o Options, guides []Guide) {
	n := &network[K]{Options: o, bySet: make([]*part[K], len(sets))}
	for i, fs := range sets {
		if t, ok := fs.body.(*table[K]); ok {
			p := &part[K]{fs: fs, set: i, index: len(n.parts), peeler: peeler[K]{table: t}}
			n.parts = append(n.parts, p)
			n.bySet[i] = p
		}
	}
	if len(n.parts) == 0 {
		return
	}
	if n.decodeAlone(out); !n.anyStuck() {
		return
	}
	n.findFlows(guides)
	n.countAll(out)
}

// findFlows is FlowDecode. It works in rounds, in which every part takes the
// flows that the others passed on in the round before.
func (n *network[K]) findFlows(guides []Guide) {
	n.flows = newFlowIndex[K](&n.parts[0].family)
	parallelFor(n.Workers, len(n.parts), func(i int) {
		p := n.parts[i]
		p.outbox = make([][]uint32, len(n.parts))
		if !p.alone {
			p.load(p.table, int(p.fs.Counts.Flows))
			p.peel()
		}
		p.ownFlows = len(p.found)
		p.ids = make([]uint32, p.ownFlows, cap(p.found))
		for j := range p.ids {
			p.ids[j] = noFlow
		}
	})
	for _, g := range guides {
		for _, p := range n.parts {
			p.shared = 0 // a new guide starts from all flows
		}
		for n.exchange(g) {
			parallelFor(n.Workers, len(n.parts), func(i int) { n.acceptFlows(n.parts[i], g) })
		}
	}
	n.assignIDs()
	parallelFor(n.Workers, len(n.parts), func(i int) { n.parts[i].compact() })
}

// assignIDs assigns an id to every flow found.
func (n *network[K]) assignIDs() {
	for _, p := range n.parts {
		p.firstHere = p.firstHere[:0]
		for i := p.shared; i < len(p.found); i++ {
			if p.ids[i] != noFlow {
				continue
			}
			var fresh bool
			if p.ids[i], fresh = n.flows.addFlow(&p.found[i]); fresh {
				p.firstHere = append(p.firstHere, i)
			}
		}
	}
}

// exchange passes on the flows that were not passed on yet. It returns false when
// there are none.
func (n *network[K]) exchange(g Guide) bool {
	n.assignIDs()
	parallelFor(n.Workers, len(n.parts), func(i int) {
		p := n.parts[i]
		if !p.alone {
			p.grow(len(n.flows.keys))
			for _, id := range p.ids[p.shared:] {
				p.seen.set(id)
			}
		}
		p.newFlows, p.newIDs = p.found[p.shared:], p.ids[p.shared:]
		if g.path != nil {
			n.exchangeByPath(p, g)
		}
		p.shared = len(p.found)
	})
	for _, p := range n.parts {
		if len(p.newIDs) > 0 {
			return true
		}
	}
	return false
}

// exchangeByPath lists the new flows for the parts on their paths. Flows that
// another part has found before are on lists of that part.
func (n *network[K]) exchangeByPath(p *part[K], g Guide) {
	for i := range p.outbox {
		p.outbox[i] = p.outbox[i][:0]
	}
	var path []int
	pass := func(flow int) {
		path = g.path(sketch.FlowKeyOf(&p.found[flow]), path[:0])
		for _, set := range path {
			if q := n.bySet[set]; q != nil && q != p && !q.alone {
				p.outbox[q.index] = append(p.outbox[q.index], p.ids[flow])
			}
		}
	}
	if p.shared > 0 {
		for _, flow := range p.firstHere {
			pass(flow)
		}
		return
	}
	for flow := range p.found { // a new guide
		pass(flow)
	}
}

// grow extends seen to all flows.
func (p *part[K]) grow(flows int) {
	if words := (flows + 63) / 64; words > len(p.seen) {
		p.seen = append(p.seen, make(bitmap, words-len(p.seen)+words/2)...)
	}
}

// acceptFlows claims the flows that others have passed on to p, and peels again.
func (n *network[K]) acceptFlows(p *part[K], g Guide) {
	if p.alone {
		return
	}
	if g.path != nil {
		for _, q := range n.parts {
			for _, id := range q.outbox[p.index] {
				p.claimIfNew(id, &n.flows.keys[id])
			}
		}
	} else {
		for _, set := range g.adjacent[p.set] {
			if q := n.bySet[set]; q != nil {
				for i, id := range q.newIDs {
					p.claimIfNew(id, &q.newFlows[i])
				}
			}
		}
	}
	for {
		undone := len(p.undone)
		p.peel()
		for i := len(p.ids); i < len(p.found); i++ {
			p.ids = append(p.ids, noFlow)
		}
		if len(p.undone) == undone {
			return
		}
		// A wrong claim has blocked others.
		again := p.denied
		p.denied = nil
		for _, id := range again {
			p.claimNumbered(id, &n.flows.keys[id])
		}
	}
}

// claimIfNew claims a flow that was not searched here before.
func (p *part[K]) claimIfNew(id uint32, key *K) {
	if !p.seen.has(id) {
		p.seen.set(id)
		p.claimNumbered(id, key)
	}
}

// claimNumbered claims a flow and keeps its id.
func (p *part[K]) claimNumbered(id uint32, key *K) {
	claimed, passes := p.claimFlow(key)
	switch {
	case claimed:
		p.ids = append(p.ids, id)
	case passes:
		p.denied = append(p.denied, id)
	}
}

// hiddenFlows returns the flows that pass the part's filter and are not in its
// table: the filter may have taken them for known ones, and their packets would
// be in the cells of others.
func (n *network[K]) hiddenFlows(p *part[K]) (keys []K) {
	for _, id := range p.denied {
		// A denied flow may have been peeled later.
		if !slices.Contains(p.ids, id) {
			keys = append(keys, n.flows.keys[id])
		}
	}
	return append(keys, p.undone...)
}
