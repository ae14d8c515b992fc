package flows

import "slices"

// system is one flowset's share of the equations that are solved together: its
// core, in which no single cell gives a count. Flows are in the order of their
// ids, so that one pass over all systems visits all flows once, in order.
type system struct {
	equations
	ids    []uint32 // by flow: its id among all switches' flows
	values []uint64 // by flow: the current guess of its count here
	left   []uint64 // by cell: the counts of all these flows together
	usable []bool   // by cell
	solved bool

	// trusted holds the cells that take part in guessing: usable, and not known
	// to hold a flow that counts differently here.
	trusted []bool

	counts *flowCounts // the counts of which this is the core
}

// newSystem returns a system of the core of c; ids holds the ids of the flows of
// e.
func newSystem(e *equations, c *flowCounts, ids []uint32) *system {
	sortByID(c.core, ids)
	s := &system{
		equations: equations{tables: e.tables, cells: make([]uint32, 0, len(c.core)*e.tables)},
		ids:       make([]uint32, len(c.core)), values: make([]uint64, len(c.core)),
		left: c.left, usable: c.usable, trusted: slices.Clone(c.usable), counts: c,
	}
	for i, flow := range c.core {
		s.ids[i] = ids[flow]
		s.cells = append(s.cells, e.cellsOf(flow)...)
	}
	return s
}

// distrustCells excludes cells from guessing.
func (s *system) distrustCells(cells []uint32) {
	for _, c := range cells {
		s.trusted[c] = false
	}
}

// sortByID sorts flows by their ids, byte by byte.
func sortByID(flows, ids []uint32) {
	spare := make([]uint32, len(flows))
	for shift := 0; shift < 32; shift += 8 {
		var from [257]int
		for _, f := range flows {
			from[ids[f]>>shift&255+1]++
		}
		if from[1] == len(flows) { // this byte is zero in all
			continue
		}
		for i := range 256 {
			from[i+1] += from[i]
		}
		for _, f := range flows {
			b := ids[f] >> shift & 255
			spare[from[b]] = f
			from[b]++
		}
		copy(flows, spare)
	}
}

// publish copies the values to the counts of which the system is the core: as the
// solution, or as estimates.
func (s *system) publish() {
	for i, flow := range s.counts.core {
		s.counts.values[flow] = s.values[i]
		if s.solved {
			s.counts.source[flow] = inCore
		}
	}
	if s.solved { // no residual where equations hold
		for c, usable := range s.usable {
			if usable {
				s.left[c] = 0
			}
		}
	}
}
