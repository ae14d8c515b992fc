package flows

import "slices"

// countAll counts and grades the flows of all parts.
func (n *network[K]) countAll(out []Decoded) {
	answers := make([]*solution[K], len(n.parts))
	parallelFor(n.Workers, len(n.parts), func(i int) {
		p := n.parts[i]
		if p.alone {
			answers[i] = &solution[K]{packets: p.ownPackets, bytes: p.ownBytes}
			return
		}
		extra := n.hiddenFlows(p)
		a := &solution[K]{peeler: &p.peeler, fs: p.fs, extra: extra, e: p.equationsOf(extra), proven: p.provenFlows()}
		a.packets = new(flowCounts)
		p.countPackets(a.packets, a.e)
		if p.layout.Bytes != 0 {
			a.bytes = new(flowCounts)
			p.countBytes(a.bytes, a.e)
		}
		answers[i] = a
	})
	if !n.FlowsOnly {
		packets := n.solveCounts(answers, func(a *solution[K]) *flowCounts { return a.packets }, nil)
		n.solveCounts(answers, func(a *solution[K]) *flowCounts { return a.bytes }, packets)
	}
	parallelFor(n.Workers, len(n.parts), func(i int) {
		if p := n.parts[i]; !p.alone {
			out[p.set] = answers[i].gradedResult()
		}
		*answers[i] = solution[K]{}
	})
}

// provenFlows returns the flows whose presence is proven; nil means all of them.
// Flows that the table gave before any claim were inserted. A claim may be
// wrong, and so may be what was peeled after it; but then cells are not emptied:
// the XOR of the keys that were there and of those removed would have to be zero
// in two cells of every wrong flow.
func (p *part[K]) provenFlows() []bool {
	if p.ownFlows == len(p.found) {
		return nil
	}
	closed := make([]bool, len(p.left))
	all := true
	for i := range closed {
		closed[i] = p.emptied(i)
		all = all && closed[i]
	}
	if all && p.family.Tables >= 2 {
		return nil
	}
	pr := proof{equations: p.equationsOf(nil), closed: closed, minCells: 2}
	known := pr.provenFlows()
	for i := range p.ownFlows {
		known[i] = true
	}
	return known
}

// solveCounts is CounterDecode: it solves one count of the flows in the cores of
// all parts. A flow counts nearly the same at every switch it crosses, so guesses
// come from other switches that have its count, or from all equations of all
// switches together; each switch's own equations then show what differs there.
// A guess is never a result: only counts that fit every cell of a switch are.
//
// Bytes come after packets, whose guesses are passed: a flow whose packets at a
// switch differ from their guess differs there in bytes, too. It is another unknown
// than the same flow elsewhere, one for each number of packets. solveCounts returns
// its own guesses.
func (n *network[K]) solveCounts(answers []*solution[K], of func(*solution[K]) *flowCounts,
	packets []float64,
) []float64 {
	j := &jointSolver{
		workers: n.Workers, guess: make([]float64, len(n.flows.keys)),
		have: make([]bool, len(n.flows.keys)), smallDifferences: packets == nil,
	}
	variants := map[variant]uint32{}
	for i, a := range answers {
		c := of(a)
		if c == nil {
			continue
		}
		ids := slices.Clone(n.parts[i].ids)
		for k := range a.extra {
			ids = append(ids, n.flows.lookup(&a.extra[k]))
		}
		estimated := make([]bool, len(ids)) // the packets of the flow
		for flow, id := range ids {
			if packets == nil || packets[id] == float64(a.packets.values[flow]) {
				continue
			}
			if a.packets.source[flow] == noCell {
				estimated[flow] = true
				continue
			}
			v := variant{id, a.packets.values[flow]}
			other, known := variants[v]
			if !known {
				other = j.addUnknown()
				variants[v] = other
			}
			ids[flow] = other
		}
		for flow, at := range c.source {
			if at != noCell && !estimated[flow] {
				j.learnCount(ids[flow], c.values[flow])
			}
		}
		if len(c.core) == 0 {
			continue
		}
		s := newSystem(a.e, c, ids)
		for flow, e := range estimated {
			if e {
				s.distrustCells(a.e.cellsOf(uint32(flow)))
			}
		}
		j.systems = append(j.systems, s)
	}
	if len(j.systems) > 0 {
		j.solve()
	}
	return j.guess
}

// variant is a flow with a number of packets that differs from the usual one.
type variant struct {
	id      uint32
	packets uint64
}
