package flows

import (
	"math/bits"

	"github.com/weft-telemetry/weft/internal/hugepages"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// Flowset is the received part of one switch's flowset of one slot. An Assembler
// makes it; decoding does not change it, so it may be decoded again, and by
// several goroutines.
type Flowset struct {
	flowset.Header

	// MissingCells and MissingFilter count what did not arrive, in cells and
	// in bytes of the filter.
	MissingCells, MissingFilter uint32

	body cellStore // nil while its chunks are staged, and after Release

	open *pending    // nil once it is emitted
	held model.Bytes // charged to its switch
}

// cellStore is the content of a flowset of either family.
type cellStore interface {
	storeCells(c *flowset.Chunk)
	storeFilter(c *flowset.Chunk)
	// markMissing marks the units that are not among those that arrived.
	markMissing(cells, filter bitmap)
	// filterTest returns the test for a flow, which keeps no cell alive.
	filterTest() func(model.FlowKey) bool
	filterWords() sketch.Filter
	// occupied counts the cells that hold a flow. Where chunks overlap, it may count more.
	occupied() int
}

// newFlowset returns a flowset of which nothing has arrived yet. The header must
// be one that flowset.Header.Check accepts.
func newFlowset(h *flowset.Header) *Flowset {
	return &Flowset{Header: *h, MissingCells: h.Units(flowset.Cells), MissingFilter: h.Units(flowset.Filter)}
}

// allocate makes the table. The geometry must be one that sketch.Geometry.Check
// accepts. Cells are spare ones if there are such.
func (fs *Flowset) allocate(m *memory) {
	family, err := sketch.NewFamily(sketch.Geometry(fs.Geometry), fs.Seed)
	if err != nil {
		panic("unreachable: the geometry was checked: " + err.Error())
	}
	if fs.Layout.Key == model.KeyLen6 {
		fs.body = newTable(family, fs.Layout, m.cells6.take(family.Cells()))
	} else {
		fs.body = newTable(family, fs.Layout, m.cells4.take(family.Cells()))
	}
}

// Dropped reports whether the flowset was dropped after it was emitted, to keep to
// the memory limit, or released.
func (fs *Flowset) Dropped() bool { return fs.body == nil }

// table is a flowset's content, laid out for decoding: all that removing a flow
// changes in a cell lies in 32 bytes (IPv4), so that it touches one line of the
// cache per sub-table.
type table[K sketch.Key] struct {
	*membership[K]
	layout flowset.Layout
	sums   []cellSum[K]
	filled int // cells with a flow that were stored

	// high holds the upper halves of packet counts; nil where the layout has four
	// bytes of them or fewer.
	high []uint32
	// flaws says which part of a cell cannot be used. It is nil while every
	// cell is intact, which is the usual case and the fast one.
	flaws []flaw
}

// cellSum is a cell: the sum of its flows.
type cellSum[K sketch.Key] struct {
	// key is the XOR of the keys. The canonical key leaves the low 24 bits of its
	// last word free: they hold the flow count, see countMask.
	key K
	// counts has the lower 32 bits of the packet count in its upper half, and the
	// XOR of the ports in its lower half: in port, out port.
	counts uint64
	bytes  uint64
}

const portsMask = 1<<32 - 1

// membership is the flow filter of a table. Results keep it, and not the cells.
type membership[K sketch.Key] struct {
	family sketch.Family
	filter sketch.Filter
}

// flaw is a set of reasons not to trust a part of a cell.
type flaw uint8

const (
	cellMissing flaw = 1 << iota // the cell did not arrive
	packetsFull                  // the packet count is at its limit
	bytesFull                    // the byte count is
)

// The flow count of a cell in the low bits of its key's last word. It starts
// from zeroFlows, not 0, so that a count below it, which a flow removed by
// mistake leaves, does not borrow from the key. A count that cannot be trusted,
// or is larger than that of any decodable cell, starts from unknownFlows and
// never comes near zeroFlows.
const (
	countMask    = 1<<24 - 1
	zeroFlows    = 1 << 22
	unknownFlows = 1 << 23
	maxCellFlows = 1 << 20
)

// newTable returns a table to store cells and filter in. Units that do not arrive
// have to be marked, see markMissing. Cells may have any content; nil: new ones.
func newTable[K sketch.Key](family sketch.Family, l flowset.Layout, cells []cellSum[K]) *table[K] {
	n := family.Cells()
	if cells == nil {
		cells = hugepages.Make[cellSum[K]](n)
	}
	t := &table[K]{
		membership: &membership[K]{family, sketch.NewFilter(family.Geometry)}, layout: l,
		sums: cells,
	}
	if l.Packets > 4 {
		t.high = make([]uint32, n)
	}
	return t
}

func (t *table[K]) filterTest() func(model.FlowKey) bool { return t.membership.mayContain }

func (t *table[K]) filterWords() sketch.Filter { return t.filter }

// mayContain queries the switch's filter for a flow: false proves that no packet
// of it was counted. Missing bytes of the filter prove nothing.
func (m *membership[K]) mayContain(k model.FlowKey) bool {
	key, ok := pack[K](&k)
	return ok && m.has(&key)
}

// has is mayContain for a key of the table's family.
func (m *membership[K]) has(key *K) bool {
	return m.filter.Has(&m.family, sketch.HashOf(&m.family, key))
}

func (t *table[K]) occupied() int { return min(t.filled, len(t.sums)) }

// pack returns the words of a key of this table's family; a key of the other
// family is in no such table.
func pack[K sketch.Key](k *model.FlowKey) (key K, ok bool) {
	switch p := any(&key).(type) {
	case *sketch.Key4:
		*p = sketch.Pack4(k)
		return key, !k.V6
	case *sketch.Key6:
		*p = sketch.Pack6(k)
		return key, k.V6
	}
	panic("unreachable: Key has two types")
}

// bitmap is a set of small numbers.
type bitmap []uint64

func newBitmap(n uint32) bitmap { return make(bitmap, (uint64(n)+63)/64) }

func (b bitmap) has(i uint32) bool { return b[i/64]>>(i%64)&1 != 0 }

func (b bitmap) set(i uint32) { b[i/64] |= 1 << (i % 64) }

// setRange adds n numbers from first on and returns how many were new.
func (b bitmap) setRange(first, n uint32) (fresh uint32) {
	for n > 0 {
		w, at := first/64, first%64
		take := min(64-at, n)
		mask := (^uint64(0) >> (64 - take)) << at
		fresh += uint32(bits.OnesCount64(mask &^ b[w]))
		b[w] |= mask
		first, n = first+take, n-take
	}
	return fresh
}
