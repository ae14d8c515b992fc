package flows

import "slices"

// proof finds the flows of a switch whose counts, or whose presence, is proven.
//
// Why a closed cell alone proves no count: the packets of a flow that the
// filter took for known by mistake are in the cells of others. The cell that
// gives another flow its count passes them on, and closes. They appear in a cell
// that gives no count, some steps later. So the proof covers a set of flows and
// cells: every cell is closed and holds proven flows only; the set contains, of
// the cells of every flow, the one that gave its count and all but one of the
// others.
//
//   - Without a false positive in these cells, the counts are right: ordered by
//     their steps, the equations are triangular. Those of a core are solved
//     together and must be independent.
//   - A false positive in one of them shifts the flow counted there, and must be
//     compensated in at least two more of its cells, by flows of which the same
//     holds. The probability that flows and false positives share that many
//     cells falls with the second power of the table's size or faster. With
//     fewer than three sub-tables there is no such bound, and no proof.
//
// Usually all cells are closed, and then all flows are proven.
type proof struct {
	*equations
	// closed says of each cell whether it arrived, all its flows are known, and
	// they sum to its count exactly.
	closed []bool
	// source holds for each flow the cell that gave its count, inCore or noCell;
	// nil: not required.
	source []uint32
	// minCells is how many of its cells the set must contain to keep a flow.
	minCells int
}

// inCore replaces the cell that gave a count, where many cells gave the counts of
// many flows together.
const inCore = noCell - 2

// provenFlows returns which flows are proven.
func (p *proof) provenFlows() []bool {
	proven, closed := p.prune(true)
	var core []uint32
	for flow, at := range p.source {
		if at == inCore && proven[flow] {
			core = append(core, uint32(flow))
		}
	}
	if len(core) > 0 && !independent(p.equations, core, closed) {
		proven, _ = p.prune(false)
	}
	return proven
}

// prune starts from all flows and closed cells and removes those that fail.
func (p *proof) prune(coreHolds bool) (proven, closed []bool) {
	n := p.flows()
	proven, closed = make([]bool, n), slices.Clone(p.closed)
	first, list := p.byCell(len(closed))
	good := make([]int, n) // cells of the flow that are still in the set
	for flow := range uint32(n) {
		proven[flow] = true
		for _, c := range p.cellsOf(flow) {
			if closed[c] {
				good[flow]++
			}
		}
	}
	var out []uint32 // flows that left the set
	check := func(flow uint32) {
		ok := good[flow] >= p.minCells
		if ok && p.source != nil {
			switch at := p.source[flow]; at {
			case noCell:
				ok = false
			case inCore:
				ok = coreHolds
			default:
				ok = closed[at]
			}
		}
		if !ok && proven[flow] {
			proven[flow] = false
			out = append(out, flow)
		}
	}
	for flow := range uint32(n) {
		check(flow)
	}
	for len(out) > 0 {
		flow := out[len(out)-1]
		out = out[:len(out)-1]
		for _, c := range p.cellsOf(flow) {
			if !closed[c] {
				continue
			}
			closed[c] = false
			for _, other := range list[first[c]:first[c+1]] {
				good[other]--
				check(other)
			}
		}
	}
	return proven, closed
}

// byCell lists the flows of each cell: those of cell c are
// list[first[c]:first[c+1]].
func (e *equations) byCell(cells int) (first, list []uint32) {
	first = make([]uint32, cells+1)
	for _, c := range e.cells {
		first[c+1]++
	}
	for c := range cells {
		first[c+1] += first[c]
	}
	list = make([]uint32, len(e.cells))
	at := slices.Clone(first[:cells])
	for flow := range uint32(e.flows()) {
		for _, c := range e.cellsOf(flow) {
			list[at[c]] = flow
			at[c]++
		}
	}
	return first, list
}
