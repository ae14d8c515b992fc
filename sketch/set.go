package sketch

import "github.com/weft-telemetry/weft/model"

// Set is a flowset that is being filled: filter and counting table.
//
// Invariant: over all cells, flows sum to Tables × Inserted, packets and bytes
// to Tables × what was added.
type Set[K Key] struct {
	RecentFlows // first, to lie on lines of the cache

	family Family
	filter Filter

	// A cell is kept in three arrays, so that packets of known flows, which are
	// nearly all, touch little memory.
	//
	// hot has the counts that packets change: four bytes per cell, so that those
	// of 100K flows stay in a core's private cache. The upper 10 bits are
	// packets, the lower 22 bytes. When either half's top bit is set, the counts
	// move to wide: neither overflows.
	hot  []uint32
	wide []wide
	sums []flowSum[K] // what a new flow changes

	inserted       uint32
	packets, bytes uint64 // that the cells have, each once
}

// RecentFlows is the flows that a set has seen most recently. The zero value
// holds none.
type RecentFlows struct {
	recent  [recentSlots]recentFlow
	pending bool   // recent has counts that cells lack
	misses  uint32 // packets of flows that were not in recent
	hits    uint32 // packets of AddPacket that were, since it was judged
	bypass  uint32 // packets for which AddPacket does not look at recent
}

// recentFlow is a flow that the filter has, and its counts since they were last
// flushed to its cells. Most packets belong to a recent flow: they need neither
// filter nor cells nor the second half of the hash, and touch one cache line.
//
// A flow is recognised by the result of absorb. Keys with the same result have
// the same positions, so no decoder can distinguish them. A caller with numbers
// for keys need not pass the key.
type recentFlow struct {
	hi, lo         uint64 // of absorb
	packets, bytes uint64
	cells          [MaxTables]uint32
	id             uint32   // of RememberID, or 0
	_              [12]byte // to a line
}

const (
	// recentSlots flows are remembered, each in the slot that its hi or its id
	// selects.
	recentSlots = 512
	// replaceEvery is the number of misses per replacement of a slot: with too many
	// flows to remember, little time is spent on replacing.
	replaceEvery = 16
	// judgeEvery is the number of misses after which recent is judged. If fewer than
	// one packet in usefulShare was of a recent flow, the next bypassFor packets do
	// without: with 100K flows in random order, looking and replacing only cost.
	judgeEvery, usefulShare, bypassFor = 4096, 16, 16 * judgeEvery
)

type wide struct{ packets, bytes uint64 }

type flowSum[K Key] struct {
	key     K
	flows   uint32
	in, out model.PortID
}

const (
	hotShift = 22
	hotBytes = 1<<hotShift - 1
	hotFull  = 1<<31 | 1<<(hotShift-1)
	// More could overflow either half in one step.
	maxHotSize    = 1<<(hotShift-1) - 1
	maxHotPackets = 1<<(31-hotShift) - 1
)

// NewSet returns an empty set. It allocates all memory it will use.
func NewSet[K Key](g Geometry, seed uint64) (*Set[K], error) {
	f, err := NewFamily(g, seed)
	if err != nil {
		return nil, err
	}
	n := g.Cells()
	s := &Set[K]{
		family: f, filter: NewFilter(g), hot: make([]uint32, n), wide: make([]wide, n),
		sums: make([]flowSum[K], n),
	}
	s.clearRecent()
	return s, nil
}

// clearRecent empties recent. A slot whose hi selects another slot matches
// nothing, and zero selects the first.
func (s *Set[K]) clearRecent() {
	s.flushRecent()
	clear(s.recent[:])
	s.recent[0].hi = 1
	s.hits, s.bypass = 0, 0
}

// flushRecent adds the counts of recent flows to their cells.
func (s *Set[K]) flushRecent() {
	if !s.pending {
		return
	}
	for i := range s.recent {
		flow := &s.recent[i]
		s.addToCells(&flow.cells, flow.packets, flow.bytes)
		flow.packets, flow.bytes = 0, 0
	}
	s.pending = false
}

// ClearFilter and ClearCells empty a set in parts during its export: the filter
// and the counts of flows, packets and bytes, and a run of cells.
func (s *Set[K]) ClearFilter() {
	clear(s.filter)
	s.clearRecent()
	s.inserted, s.packets, s.bytes = 0, 0, 0
}

// ClearCells empties count cells from index first on.
func (s *Set[K]) ClearCells(first, count uint32) {
	s.flushRecent()
	clear(s.hot[first : first+count])
	clear(s.wide[first : first+count])
	clear(s.sums[first : first+count])
}

// AddPacket counts a packet and returns whether the filter takes its flow for
// new. If so, the caller calls InsertFlow with the same key and the hash, which
// is set for new flows only.
//
// Work is constant and nothing is allocated.
func (s *Set[K]) AddPacket(k *K, size uint32) (h Hash, isNew bool) {
	hi, lo := absorb(&s.family, k)
	look := s.bypass == 0
	if !look {
		s.bypass--
	} else if flow := &s.recent[hi%recentSlots]; flow.hi == hi && flow.lo == lo {
		flow.packets++
		flow.bytes += uint64(size)
		s.pending = true
		s.hits++
		return Hash{}, false
	}
	f := &s.family
	h = f.finish(hi, lo)
	isNew = !s.filter.hasByCall(f, h)
	if look {
		if s.misses++; s.misses%replaceEvery == 0 {
			s.missRecent(hi, lo, h, isNew)
		}
	}
	if size > maxHotSize {
		s.addWide(h, uint64(size))
		return h, isNew
	}
	s.packets++
	s.bytes += uint64(size)
	one, hot := 1<<hotShift|size, s.hot
	if f.Tables == 3 { // as switches are configured
		c0, c1, c2 := f.Cells3(h)
		w0, w1, w2 := hot[c0]+one, hot[c1]+one, hot[c2]+one
		hot[c0], hot[c1], hot[c2] = w0, w1, w2
		if (w0|w1|w2)&hotFull != 0 {
			s.spillFull(c0, c1, c2)
		}
		return h, isNew
	}
	cells, part := f.cells, walk(h)
	for n, base := f.Tables, uint64(0); n > 0; n-- {
		i := base + part.in(cells)
		w := hot[i] + one
		hot[i] = w
		if w&hotFull != 0 {
			s.spill(uint32(i))
		}
		part, base = part.next(), base+cells
	}
	return h, isNew
}

// missRecent makes a flow that was not recent so, unless it is new, and judges recent.
// Counts do not depend on either: those of a flow may lie in recent and in its cells.
//
//go:noinline
func (s *Set[K]) missRecent(hi, lo uint64, h Hash, isNew bool) {
	if !isNew {
		s.remember(&s.recent[hi%recentSlots], recentFlow{hi: hi, lo: lo}, h)
	}
	if s.misses%judgeEvery == 0 {
		if s.hits < judgeEvery/usefulShare {
			s.bypass = bypassFor
		}
		s.hits = 0
	}
}

// AddRecent is AddPacket for a flow that the set knows by its number. It reports
// whether it does; otherwise nothing is counted.
func (l *RecentFlows) AddRecent(id, size uint32) bool {
	flow := &l.recent[id%recentSlots]
	if flow.id != id || id == 0 {
		return false
	}
	flow.packets++
	flow.bytes += uint64(size)
	l.pending = true
	return true
}

// RememberID gives a flow a number, other than 0, for AddRecent, if a slot is
// free. The flow must not be new: call InsertFlow first. The number identifies
// this key until the set is cleared.
func (s *Set[K]) RememberID(id uint32, k *K) {
	flow := &s.recent[id%recentSlots]
	if s.misses++; s.misses%replaceEvery != 0 && flow.packets > 0 {
		return
	}
	hi, lo := absorb(&s.family, k)
	s.remember(flow, recentFlow{hi: hi, lo: lo, id: id}, s.family.finish(hi, lo))
}

// remember replaces the flow in a slot.
//
//go:noinline
func (s *Set[K]) remember(at *recentFlow, flow recentFlow, h Hash) {
	s.addToCells(&at.cells, at.packets, at.bytes)
	*at = flow
	s.family.CellsOf(h, &at.cells)
}

// addWide counts a packet that is too long for a hot word.
func (s *Set[K]) addWide(h Hash, size uint64) {
	var cells [MaxTables]uint32
	s.family.CellsOf(h, &cells)
	s.addToCells(&cells, 1, size)
}

// addToCells adds counts to the cells of a flow.
func (s *Set[K]) addToCells(cells *[MaxTables]uint32, packets, bytes uint64) {
	s.packets += packets
	s.bytes += bytes
	if packets > maxHotPackets || bytes > maxHotSize {
		for _, i := range cells[:s.family.Tables] {
			s.wide[i].packets += packets
			s.wide[i].bytes += bytes
		}
		return
	}
	more, hot := uint32(packets)<<hotShift|uint32(bytes), s.hot
	for _, i := range cells[:s.family.Tables] {
		w := hot[i] + more
		hot[i] = w
		if w&hotFull != 0 {
			s.spill(i)
		}
	}
}

// InsertFlow adds a flow that AddPacket has taken for new, with the ports of the
// current packet. A flow is inserted once, so ports that change later do not mix
// with these: a decoder finds the ports of the flow's first packet.
func (s *Set[K]) InsertFlow(k *K, h Hash, in, out model.PortID) {
	s.filter.Add(&s.family, h)
	for t := range int(s.family.Tables) {
		c := &s.sums[s.family.Cell(h, t)]
		for i := range len(c.key) {
			c.key[i] ^= (*k)[i]
		}
		c.flows++
		c.in ^= in
		c.out ^= out
	}
	s.inserted++
}

// spillFull spills those of some hot words that are full.
//
//go:noinline
func (s *Set[K]) spillFull(cells ...uint32) {
	for _, i := range cells {
		if s.hot[i]&hotFull != 0 {
			s.spill(i)
		}
	}
}

// spill moves the counts of a hot word to the wide counters.
//
//go:noinline
func (s *Set[K]) spill(i uint32) {
	w := s.hot[i]
	s.wide[i].packets += uint64(w >> hotShift)
	s.wide[i].bytes += uint64(w & hotBytes)
	s.hot[i] = 0
}

// Inserted returns the number of flows that were taken for new.
func (s *Set[K]) Inserted() uint32 { return s.inserted }

// Totals returns the packets and bytes that were added.
func (s *Set[K]) Totals() (packets, bytes uint64) {
	s.flushRecent()
	return s.packets, s.bytes
}

// Family returns the set's hash functions.
func (s *Set[K]) Family() *Family { return &s.family }

// Filter returns the set's filter; it changes with the set.
func (s *Set[K]) Filter() Filter { return s.filter }

// Cell returns the cell at an index.
func (s *Set[K]) Cell(i uint32) Cell[K] {
	s.flushRecent()
	w, n, hot := &s.wide[i], &s.sums[i], s.hot[i]
	return Cell[K]{
		Key:     n.key,
		Packets: w.packets + uint64(hot>>hotShift),
		Bytes:   w.bytes + uint64(hot&hotBytes),
		Flows:   n.flows, In: n.in, Out: n.out,
	}
}

// AppendCells appends all cells.
func (s *Set[K]) AppendCells(dst []Cell[K]) []Cell[K] {
	for i := range s.hot {
		dst = append(dst, s.Cell(uint32(i)))
	}
	return dst
}
