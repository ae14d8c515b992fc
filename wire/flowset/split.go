package flowset

import (
	"fmt"
	"math"
)

// Span names the units one chunk carries.
type Span struct {
	Section Section
	First   uint32 // index of the first unit in its section
	Count   uint32
}

// Splitter plans the chunks of a flowset. It covers every unit of both
// sections once, the filter first, both in ascending order.
type Splitter struct {
	section Section
	first   uint32    // not yet covered
	units   [3]uint32 // by section: in all
	most    [3]uint32 // by section: in one chunk
}

// Split plans chunks of at most size bytes each: the MTU less the headers of the
// transport. It returns an error if a chunk of one cell is longer, or if h fails
// Check.
func (h *Header) Split(size int) (Splitter, error) {
	if err := h.Check(); err != nil {
		return Splitter{}, err
	}
	cell := h.Layout.Size()
	payload := min(size, math.MaxInt32) - Overhead
	if payload < cell {
		return Splitter{}, fmt.Errorf("flowset: chunk size %d, want at least %d", size, Overhead+cell)
	}
	return Splitter{
		section: Filter,
		units:   [...]uint32{Filter: h.Units(Filter), Cells: h.Units(Cells)},
		most:    [...]uint32{Filter: uint32(payload), Cells: uint32(payload / cell)},
	}, nil
}

// Next returns the next chunk's span, or false after the last.
func (s *Splitter) Next() (Span, bool) {
	if s.section == Filter && s.first == s.units[Filter] {
		s.section, s.first = Cells, 0
	}
	n := min(s.most[s.section], s.units[s.section]-s.first)
	if n == 0 {
		return Span{}, false
	}
	span := Span{s.section, s.first, n}
	s.first += n
	return span, true
}
