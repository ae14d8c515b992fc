package flows

// equations says, for one switch, which flows are in which cells: the count of
// a cell is the sum of its flows' counts. One set of equations serves packets
// and bytes.
type equations struct {
	tables int
	cells  []uint32 // of each flow, tables in a row

	unsolved []cellMembers // by cell; what peel works on
	queue    []uint32
	steps    []step
}

// cellMembers is the unsolved flows of a cell: their number, and the XOR of
// their indexes, which is the index of the last.
type cellMembers struct {
	n     int32
	flows uint32
}

// step is a flow and the cell that gives its count once the flows of all earlier
// steps are subtracted.
type step struct{ flow, cell uint32 }

// flows returns the number of unknowns.
func (e *equations) flows() int { return len(e.cells) / e.tables }

// cellsOf returns the cells of a flow.
func (e *equations) cellsOf(flow uint32) []uint32 {
	return e.cells[int(flow)*e.tables : (int(flow)+1)*e.tables]
}

// peel orders flows so that single cells give their counts one by one, and
// returns that order. usable says which cells can. Flows that are not in the
// order form a core, of which every usable cell holds two or more or none. With
// only, flows for which it returns false are taken as known.
func (e *equations) peel(usable []bool, only func(flow uint32) bool) []step {
	e.unsolved = zeroed(e.unsolved, len(usable))
	e.queue, e.steps = e.queue[:0], e.steps[:0]
	for flow := range uint32(e.flows()) {
		if only != nil && !only(flow) {
			continue
		}
		for _, c := range e.cellsOf(flow) {
			m := &e.unsolved[c]
			m.n++
			m.flows ^= flow
		}
	}
	for c, m := range e.unsolved {
		if m.n == 1 && usable[c] {
			e.queue = append(e.queue, uint32(c))
		}
	}
	for len(e.queue) > 0 {
		cell := e.queue[len(e.queue)-1]
		e.queue = e.queue[:len(e.queue)-1]
		if e.unsolved[cell].n != 1 {
			continue
		}
		flow := e.unsolved[cell].flows
		e.steps = append(e.steps, step{flow, cell})
		for _, c := range e.cellsOf(flow) {
			m := &e.unsolved[c]
			m.n--
			m.flows ^= flow
			if m.n == 1 && usable[c] {
				e.queue = append(e.queue, c)
			}
		}
	}
	return e.steps
}

// substitute solves the flows of steps: left holds the cells' counts without the
// flows that were known before, and afterwards the residuals. Counts below zero
// wrap as unsigned numbers do.
func (e *equations) substitute(steps []step, left, counts []uint64) {
	for _, s := range steps {
		v := left[s.cell]
		counts[s.flow] = v
		for _, c := range e.cellsOf(s.flow) {
			left[c] -= v
		}
	}
}

// zeroed returns s with n zero elements, in the same memory if it is large enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
