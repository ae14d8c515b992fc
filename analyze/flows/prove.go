package flows

// prove finds the flows whose counts are proven. closed tells of each cell
// whether it arrived, all its flows are known, and their counts sum to its
// counts exactly. named has for each flow the cell that gave its count; it is
// noCell for a flow without a count.
//
// Why a closed cell alone proves nothing: the packets of a flow that the filter
// took for known by mistake are in the cells of others. The cell that gives
// another flow its count passes them on, and closes. They show in a cell that
// gives no count, some steps later. So what is proven is a set of flows and
// cells: every cell is closed and has proven flows only; every flow has, of its
// cells, the one that gave its count and all but one of the others in the set.
//
//   - Without a false positive in these cells, the counts are right: ordered by
//     their steps, the equations are triangular.
//   - A false positive in one of them shifts the flow counted there, and has to
//     be evened out in two more cells of it at least, by flows of which the
//     same holds. Flows and false positives meet in so many cells at once with
//     a chance that falls with the second power of the table's size or faster.
//     With fewer than three sub-tables there is no such bar, and no proof.
//
// The usual case, that all cells are closed, has all flows proven.
func prove(e *equations, closed []bool, named []uint32) (proven []bool) {
	n := e.flows()
	proven = make([]bool, n)
	if e.tables < 3 {
		return proven
	}
	// members lists the flows of each cell: those of cell c are
	// members[first[c]:first[c+1]].
	first := make([]uint32, len(closed)+1)
	for _, c := range e.cells {
		first[c+1]++
	}
	for c := range closed {
		first[c+1] += first[c]
	}
	members := make([]uint32, len(e.cells))
	at := append([]uint32(nil), first[:len(closed)]...)
	good := make([]int32, n) // cells of the flow that are still in the set
	var out []uint32         // flows that left the set
	for flow := range uint32(n) {
		proven[flow] = true
		for _, c := range e.of(flow) {
			members[at[c]] = flow
			at[c]++
			if closed[c] {
				good[flow]++
			}
		}
	}
	enough := int32(e.tables - 1)
	leave := func(flow uint32) {
		if proven[flow] && (good[flow] < enough || named[flow] == noCell || !closed[named[flow]]) {
			proven[flow] = false
			out = append(out, flow)
		}
	}
	closed = append([]bool(nil), closed...)
	for flow := range uint32(n) {
		leave(flow)
	}
	for len(out) > 0 {
		flow := out[len(out)-1]
		out = out[:len(out)-1]
		for _, c := range e.of(flow) {
			if !closed[c] {
				continue
			}
			closed[c] = false
			for _, other := range members[first[c]:first[c+1]] {
				good[other]--
				leave(other)
			}
		}
	}
	return proven
}

const noCell = ^uint32(0)
