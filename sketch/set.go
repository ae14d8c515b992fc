package sketch

import "github.com/weft-telemetry/weft/model"

// Set is a flowset that is being filled: filter and counting table.
//
// Invariant: over all cells, flows sum to Tables × Inserted, packets and bytes
// to Tables × what was added.
type Set[K Key] struct {
	family Family
	filter Filter
	cells  []Cell[K]

	// hot has what every packet changes, apart from what only a new flow
	// does: four bytes per cell instead of forty, so that the table of 100K
	// flows stays in a core's own cache. The upper 10 bits are packets, the
	// lower 22 bytes. When either half's top bit is set, what they hold moves
	// to the cell: neither overflows.
	hot []uint32

	inserted uint32
}

const (
	hotShift = 22
	hotBytes = 1<<hotShift - 1
	hotFull  = 1<<31 | 1<<(hotShift-1)
	// A longer packet could overflow the bytes in one step.
	maxHotSize = 1<<(hotShift-1) - 1
)

// NewSet makes an empty set. It allocates all that it will ever need.
func NewSet[K Key](g Geometry, seed uint64) (*Set[K], error) {
	f, err := NewFamily(g, seed)
	if err != nil {
		return nil, err
	}
	return &Set[K]{family: f, filter: NewFilter(g), cells: make([]Cell[K], g.Cells()), hot: make([]uint32, g.Cells())}, nil
}

// ClearFilter and ClearCells empty a set bit by bit, as its export goes on:
// the filter and the count of flows, and a run of cells.
func (s *Set[K]) ClearFilter() {
	clear(s.filter)
	s.inserted = 0
}

// ClearCells empties count cells from index first on.
func (s *Set[K]) ClearCells(first, count uint32) {
	clear(s.cells[first : first+count])
	clear(s.hot[first : first+count])
}

// Add counts a packet and tells whether its flow is new, as far as the filter
// can tell. The caller then calls Insert with the same key.
//
// Work is constant and nothing is allocated.
func (s *Set[K]) Add(k *K, size uint32) (h Hash, isNew bool) {
	f := &s.family
	h = f.finish(absorb(f, k))
	isNew = !s.filter.Has(f, h)
	if size > maxHotSize {
		s.addWide(h, uint64(size))
		return h, isNew
	}
	one, cells := 1<<hotShift|size, f.cells
	if f.Tables == 3 {
		s.count(uint64(uint32(h.A))*cells>>32, one)
		s.count(h.A>>32*cells>>32+cells, one)
		s.count(uint64(uint32(h.B))*cells>>32+2*cells, one)
		return h, isNew
	}
	part, base := walk(h), uint64(0)
	for range f.Tables {
		s.count(base+part.in(cells), one)
		part = part.next()
		base += cells
	}
	return h, isNew
}

func (s *Set[K]) count(i uint64, one uint32) {
	w := s.hot[i] + one
	s.hot[i] = w
	if w&hotFull != 0 {
		s.spill(i)
	}
}

// Insert adds a flow that Add has taken for new, with the ports of the packet
// at hand. A flow is inserted once, so ports that change later do not mix with
// these: what a decoder finds are the ports of the flow's first packet.
func (s *Set[K]) Insert(k *K, h Hash, in, out model.PortID) {
	s.filter.Add(&s.family, h)
	for t := range int(s.family.Tables) {
		c := &s.cells[s.family.Cell(h, t)]
		c.Toggle(k, in, out)
		c.Flows++
	}
	s.inserted++
}

// spill moves what the hot word of a cell has counted to the cell.
//
//go:noinline
func (s *Set[K]) spill(i uint64) {
	c, w := &s.cells[i], s.hot[i]
	c.Packets += uint64(w >> hotShift)
	c.Bytes += uint64(w & hotBytes)
	s.hot[i] = 0
}

// addWide counts a packet that is too long for hot words.
func (s *Set[K]) addWide(h Hash, size uint64) {
	for t := range int(s.family.Tables) {
		c := &s.cells[s.family.Cell(h, t)]
		c.Packets++
		c.Bytes += size
	}
}

// Inserted is the number of flows that were taken for new.
func (s *Set[K]) Inserted() uint32 { return s.inserted }

// Family returns the set's hash functions.
func (s *Set[K]) Family() *Family { return &s.family }

// Filter returns the set's filter; it changes with the set.
func (s *Set[K]) Filter() Filter { return s.filter }

// Cell returns the cell at an index.
func (s *Set[K]) Cell(i uint32) Cell[K] {
	c, w := s.cells[i], s.hot[i]
	c.Packets += uint64(w >> hotShift)
	c.Bytes += uint64(w & hotBytes)
	return c
}

// AppendCells appends all cells.
func (s *Set[K]) AppendCells(dst []Cell[K]) []Cell[K] {
	for i := range s.cells {
		dst = append(dst, s.Cell(uint32(i)))
	}
	return dst
}
