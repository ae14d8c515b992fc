package flows

import (
	"runtime"
	"slices"

	"github.com/weft-telemetry/weft/sketch"
)

// Options say how Net works; the zero value is the usual case.
type Options struct {
	// Workers is how many goroutines decode; 0: one per processor. The result
	// does not depend on it.
	Workers int
	// FlowsOnly leaves out the counts of flows that do not come from a cell of
	// their own: enough to see where flows go, and quicker.
	FlowsOnly bool
}

// NetDecode decodes the flowsets of many switches in one slot together, each family
// for itself: a flow found in one is taken out of others that have it, where it
// may uncover more. Guides say where to look, the second one for what the first
// has left; without a guide, each flowset is decoded by itself.
//
// Flows are proven by keys (see proveFlows), counts as in Single or by the
// equations of the whole flowset (see independent). The results are in the
// order of sets.
func NetDecode(sets []*Flowset, o Options, guides ...Guide) []Decoded {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	out := make([]Decoded, len(sets))
	decodeFamily[sketch.Key4](sets, out, o, guides)
	decodeFamily[sketch.Key6](sets, out, o, guides)
	return out
}

// network is the flowsets of one family.
type network[K sketch.Key] struct {
	Options
	parts []*part[K]
	bySet []*part[K] // by index in Net's sets; nil: of the other family
	flows *flowIndex[K]
}

// part is one flowset among those that are decoded together.
type part[K sketch.Key] struct {
	peeler[K]
	fs    *Flowset
	set   int    // flowIndex in Net's sets
	index int    // flowIndex in network.parts
	ownFlows   int    // so many flows were found before any was claimed
	shared  int    // so many flows were passed on to others
	firstHere []int  // cellsOf those not passed on: found here before anywhere else
	seen  bitmap // by flow number: found here, or known not to be

	// What is passed on in a round: to those adjacent, flows and their
	// numbers; where paths are known, numbers by part.
	newFlows []K
	newIDs   []uint32
	outbox      [][]uint32

	denied []uint32 // flows that pass the filter, but a cell has no room for
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
	n.findFlows(guides)
	n.countAll(out)
}

// findFlows is FlowDecode. It goes in rounds, in which every part takes what
// the others have told it in the round before.
func (n *network[K]) findFlows(guides []Guide) {
	n.flows = newFlowIndex[K](&n.parts[0].family)
	parallelFor(n.Workers, len(n.parts), func(i int) {
		p := n.parts[i]
		p.outbox = make([][]uint32, len(n.parts))
		p.load(p.table, int(p.fs.Counts.Flows))
		p.peel()
		p.ownFlows = len(p.found)
		p.ids = make([]uint32, p.ownFlows, cap(p.found))
		for j := range p.ids {
			p.ids[j] = noFlow
		}
	})
	for _, g := range guides {
		for _, p := range n.parts {
			p.shared = 0 // a guide is told of all flows
		}
		for n.exchange(g) {
			parallelFor(n.Workers, len(n.parts), func(i int) { n.acceptFlows(n.parts[i], g) })
		}
	}
	n.assignIDs()
	parallelFor(n.Workers, len(n.parts), func(i int) { n.parts[i].compact() })
}

// assignIDs gives every flow found its number.
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
		p.grow(len(n.flows.keys))
		for _, id := range p.ids[p.shared:] {
			p.seen.set(id)
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

// exchangeByPath makes lists of the new flows for the parts on their paths. Flows
// that another part has found before are on lists of that part.
func (n *network[K]) exchangeByPath(p *part[K], g Guide) {
	for i := range p.outbox {
		p.outbox[i] = p.outbox[i][:0]
	}
	var path []int
	pass := func(flow int) {
		path = g.path(sketch.FlowKeyOf(&p.found[flow]), path[:0])
		for _, set := range path {
			if q := n.bySet[set]; q != nil && q != p {
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
	for flow := range p.found { // a guide begins
		pass(flow)
	}
}

// grow makes room in seen for all flows.
func (p *part[K]) grow(flows int) {
	if words := (flows + 63) / 64; words > len(p.seen) {
		p.seen = append(p.seen, make(bitmap, words-len(p.seen)+words/2)...)
	}
}

// acceptFlows claims the flows that others have passed on to p, and peels on.
func (n *network[K]) acceptFlows(p *part[K], g Guide) {
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
		// A wrong claim has stood in the way of others.
		again := p.denied
		p.denied = nil
		for _, id := range again {
			p.claimNumbered(id, &n.flows.keys[id])
		}
	}
}

// claimIfNew claims a flow that was not looked for here before.
func (p *part[K]) claimIfNew(id uint32, key *K) {
	if !p.seen.has(id) {
		p.seen.set(id)
		p.claimNumbered(id, key)
	}
}

// claimNumbered claims a flow and keeps its number.
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
// table: the filter may have taken them for known, and their packets would be
// in the cells of others.
func (n *network[K]) hiddenFlows(p *part[K]) (keys []K) {
	for _, id := range p.denied {
		// One that was denied room may have been found by itself after.
		if !slices.Contains(p.ids, id) {
			keys = append(keys, n.flows.keys[id])
		}
	}
	return append(keys, p.undone...)
}
