package flows

import (
	"math"
	"slices"
)

// refine tries to solve a core from guesses: it computes the residuals of its
// cells and searches the few flows that explain them. The system is solved when
// no usable cell has a residual.
//
// Packets in flight make differences of both signs, so two of them may cancel in
// a cell. That makes refine fail, or try again, but never makes a wrong result:
// the cells alone decide.
func (s *system) refine(guess []float64, have []bool) {
	for flow, id := range s.ids {
		if s.values[flow] == 0 || have[id] {
			s.values[flow] = uint64(int64(math.Round(max(0, guess[id]))))
		}
	}
	s.search(s.residuals())
}

// residuals returns what the values leave of each usable cell.
func (s *system) residuals() []uint64 {
	rest := slices.Clone(s.left)
	for flow := range s.ids {
		for _, c := range s.cellsOf(uint32(flow)) {
			rest[c] -= s.values[flow]
		}
	}
	for c := range rest {
		if !s.usable[c] {
			rest[c] = 0
		}
	}
	return rest
}

// search changes values until no cell has a residual, as far as it can.
func (s *system) search(rest []uint64) {
	for uneven := s.nonzeroCells(rest); uneven > 0; {
		s.flip(rest)
		s.peelDifferences(rest)
		now := s.nonzeroCells(rest)
		if now >= uneven {
			return
		}
		uneven = now
	}
	for _, v := range s.values {
		if int64(v) < 0 {
			return
		}
	}
	s.solved = true
}

// nonzeroCells counts the cells with a residual.
func (s *system) nonzeroCells(rest []uint64) (n int) {
	for _, v := range rest {
		if v != 0 {
			n++
		}
	}
	return n
}

// adjust changes a flow's count.
func (s *system) adjust(flow uint32, by uint64, rest []uint64) {
	s.values[flow] += by
	for _, c := range s.cellsOf(flow) {
		if s.usable[c] {
			rest[c] -= by
		}
	}
}

// flip changes flows most of whose cells have the same residual, until there are
// none: first the clear cases, all cells but one, then the others. Every change
// zeroes more cells than it disturbs.
func (s *system) flip(rest []uint64) {
	for need := max(2, s.tables-1); need >= 2; need-- {
		for s.flipOnce(rest, need) {
		}
	}
}

// flipOnce visits all flows once, and reports whether it changed any.
func (s *system) flipOnce(rest []uint64, need int) (changed bool) {
	for flow := range uint32(s.flows()) {
		cells := s.cellsOf(flow)
		var by uint64
		most, even := 0, 0
		for _, c := range cells {
			v := rest[c]
			if v == 0 {
				even++
				continue
			}
			same := 0
			for _, d := range cells {
				if rest[d] == v {
					same++
				}
			}
			if same > most {
				by, most = v, same
			}
		}
		if most >= need && most > even {
			s.adjust(flow, by, rest)
			changed = true
		}
	}
	return changed
}

// peelDifferences treats the flows that may differ from their guess, because
// some of their cells have a residual, as unknown and the others as known. If
// the unknown ones can be peeled, that is the solution. With few differences one
// suspicious cell is enough to suspect a flow; with many, that suspects more
// flows than can be peeled, and more suspicious cells are required.
func (s *system) peelDifferences(rest []uint64) {
	before := s.nonzeroCells(rest)
	suspicion := make([]uint8, s.flows())
	for flow := range uint32(s.flows()) {
		for _, c := range s.cellsOf(flow) {
			if rest[c] != 0 {
				suspicion[flow]++
			}
		}
	}
	for need := uint8(1); int(need) <= s.tables; need++ {
		suspects := 0
		for _, v := range suspicion {
			if v >= need {
				suspects++
			}
		}
		if suspects == 0 {
			return
		}
		steps := s.peel(s.usable, func(flow uint32) bool { return suspicion[flow] >= need })
		if len(steps) < suspects && int(need) < s.tables {
			continue
		}
		after, changes := slices.Clone(rest), make([]uint64, s.flows())
		s.substitute(steps, after, changes)
		for c := range after {
			if !s.usable[c] {
				after[c] = 0
			}
		}
		if s.nonzeroCells(after) >= before {
			continue
		}
		copy(rest, after)
		for _, st := range steps {
			s.values[st.flow] += changes[st.flow]
		}
		return
	}
}
