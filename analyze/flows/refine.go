package flows

import (
	"math"
	"slices"
)

// refine tries to solve a core from guesses: it takes what its cells have
// beyond the guesses and looks for the few flows that explain it. The system is
// solved when nothing is left in any usable cell.
//
// Packets in flight make differences of both signs, so a cell with nothing left
// may hold two that cancel. That makes settle fail, or try again, but never
// makes a wrong answer: the cells are all it is judged by.
func (s *system) refine(guess []float64, have []bool) {
	rest := slices.Clone(s.left)
	for flow, id := range s.ids {
		if s.values[flow] == 0 || have[id] {
			s.values[flow] = uint64(int64(math.Round(max(0, guess[id]))))
		}
		for _, c := range s.cellsOf(uint32(flow)) {
			rest[c] -= s.values[flow]
		}
	}
	for c := range rest {
		if !s.usable[c] {
			rest[c] = 0
		}
	}
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

// nonzeroCells counts the cells in which something is left.
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

// flip changes flows of which more cells than not have the same left, until
// there are none: first the clear cases, all cells but one, then the others.
// Every change evens out more cells than it upsets.
func (s *system) flip(rest []uint64) {
	for need := max(2, s.tables-1); need >= 2; need-- {
		for s.flipOnce(rest, need) {
		}
	}
}

// flipOnce goes through all flows once, and tells whether it changed any.
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

// peelDifferences takes those flows for unknown that may differ from their
// guess, because something is left in some of their cells, and the others for
// provenFlows. If the unknown ones can be peeled, that is the solution. With few
// differences one suspicious cell is enough to be suspected; with many, so many
// are suspected that they cannot be peeled, and it takes more.
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
