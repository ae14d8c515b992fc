package flows

import "github.com/weft-telemetry/weft/sketch"

// spareCells are arrays of cells of flowsets that were decoded, for those of the next
// slot: a fabric reports tables of the same sizes in every slot.
type spareCells[K sketch.Key] struct{ free [][]cellSum[K] }

// take returns an array of n cells with any content, or nil.
func (s *spareCells[K]) take(n int) []cellSum[K] {
	for i := len(s.free) - 1; i >= 0; i-- {
		if cells := s.free[i]; len(cells) == n {
			last := len(s.free) - 1
			s.free[i], s.free[last] = s.free[last], nil
			s.free = s.free[:last]
			return cells
		}
	}
	return nil
}

// Recycle releases flowsets that were decoded, and keeps their cells for others until
// DropSpare. The assembler's account does not have them: DecodeSize counts more for them
// than they take.
func (a *Assembler) Recycle(sets []*Flowset) {
	for _, fs := range sets {
		switch t := fs.body.(type) {
		case *table[sketch.Key4]:
			a.memory.cells4.free = append(a.memory.cells4.free, t.sums)
		case *table[sketch.Key6]:
			a.memory.cells6.free = append(a.memory.cells6.free, t.sums)
		}
		a.Release(fs)
	}
}

// DropSpare releases cells that no flowset has needed since Recycle.
func (a *Assembler) DropSpare() {
	clear(a.memory.cells4.free)
	clear(a.memory.cells6.free)
	a.memory.cells4.free, a.memory.cells6.free = a.memory.cells4.free[:0], a.memory.cells6.free[:0]
}
