package sketch

import (
	"errors"
	"fmt"
	"math/bits"
)

// Geometry is the shape of a flowset. Its fields are those of
// wire/flowset.Geometry, so that one converts to the other.
type Geometry struct {
	FilterHashes uint8  // filter bits per flow, k_f; a multiple of GroupBits
	FilterBits   uint32 // m_f; a multiple of 64
	Tables       uint8  // sub-tables, one cell of each per flow: k_c
	TableCells   uint32 // cells of one sub-table
}

// MaxTables is the largest number of sub-tables: a hash has separate bits for
// each. More than four hold fewer flows.
const MaxTables = 4

// ErrGeometry is returned for a shape that the hash family cannot serve.
var ErrGeometry = errors.New("sketch: bad geometry")

// Check returns an error if the hash family cannot serve the shape.
func (g Geometry) Check() error {
	switch {
	case g.FilterHashes == 0 || g.FilterHashes%GroupBits != 0:
		return fmt.Errorf("%w: %d filter hashes, want a multiple of %d", ErrGeometry, g.FilterHashes, GroupBits)
	case g.FilterBits == 0 || g.FilterBits%64 != 0:
		return fmt.Errorf("%w: %d filter bits, want a multiple of 64", ErrGeometry, g.FilterBits)
	case g.Tables == 0 || g.Tables > MaxTables:
		return fmt.Errorf("%w: %d tables, want 1 to %d", ErrGeometry, g.Tables, MaxTables)
	case g.TableCells == 0 || uint64(g.Tables)*uint64(g.TableCells) > 1<<32-1:
		return fmt.Errorf("%w: %d tables of %d cells, want 1 to 2³²-1 in all", ErrGeometry, g.Tables, g.TableCells)
	}
	return nil
}

// Cells is the number of cells of all sub-tables together, m_c.
func (g Geometry) Cells() int { return int(g.Tables) * int(g.TableCells) }

// Family is the hash functions of one flowset under one seed. Families of
// different seeds are independent: neighbours that share their flows do not
// share their collisions.
type Family struct {
	Geometry
	seed   [4]uint64
	groups int    // of a flow's filter bits
	words  uint64 // of the filter
	cells  uint64 // of one sub-table

	// patterns has GroupBits different bits per word: with the 64 rotations of
	// each, 16,384 groups to choose from. Setting the bits one by one took
	// twice the instructions.
	patterns [256]uint64
}

// NewFamily makes the functions for a shape and a seed.
func NewFamily(g Geometry, seed uint64) (Family, error) {
	if err := g.Check(); err != nil {
		return Family{}, err
	}
	f := Family{
		Geometry: g, groups: int(g.FilterHashes / GroupBits), words: uint64(g.FilterBits / 64),
		cells: uint64(g.TableCells),
	}
	random := splitMix(seed)
	for i := range f.seed {
		f.seed[i] = random.next()
	}
	for i := range f.patterns {
		for bits.OnesCount64(f.patterns[i]) < GroupBits {
			f.patterns[i] |= 1 << (random.next() >> 58)
		}
	}
	return f, nil
}

// Constants returns what the seed determines: the keys of the hash functions and the
// patterns of filter bits. An implementation in another language needs no more.
func (f *Family) Constants() (seed [4]uint64, patterns [256]uint64) { return f.seed, f.patterns }

// splitMix draws words that have nothing in common for any two seeds, even
// neighbouring numbers.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Hash is the 128 bits that all positions of a flow come from.
type Hash struct{ A, B uint64 }

// HashOf mixes a key: a multiplication to 128 bits per pair of words, then one
// per half of the result.
func HashOf[K Key](f *Family, k *K) Hash {
	hi, lo := absorb(f, k)
	return f.finish(hi, lo)
}

// absorb and finish are two functions so that the compiler puts both into the
// loops that need them.
func absorb[K Key](f *Family, k *K) (hi, lo uint64) {
	hi, lo = bits.Mul64((*k)[0]^f.seed[0], (*k)[1]^f.seed[1])
	for i := 2; i < len(*k); i++ {
		hi, lo = bits.Mul64(lo^(*k)[i]^f.seed[2], hi^f.seed[3])
	}
	return hi, lo
}

// HashWords4 is HashOf of an IPv4 key by its words, which then need not be in memory.
func (f *Family) HashWords4(w0, w1 uint64) Hash {
	hi, lo := bits.Mul64(w0^f.seed[0], w1^f.seed[1])
	return f.finish(hi, lo)
}

func (f *Family) finish(hi, lo uint64) Hash {
	ah, al := bits.Mul64(lo^f.seed[2], hi^f.seed[3])
	bh, bl := bits.Mul64(lo^f.seed[3], hi^f.seed[0])
	return Hash{ah ^ al, bh ^ bl}
}

// Cell returns the index of the flow's cell in sub-table t, counted from the
// start of the first sub-table.
func (f *Family) Cell(h Hash, t int) uint32 {
	w := walk(h)
	for range t {
		w = w.next()
	}
	return uint32(w.in(f.cells) + uint64(t)*f.cells)
}

// walk iterates over the hash 32 bits at a time, one part per sub-table.
//
// Double hashing, which is enough for filters, is not enough here: with two
// free numbers per flow, the chance that some two flows share all their cells
// does not fall with the table's size.
type walk Hash

// in returns the current part as a number below n.
func (w walk) in(n uint64) uint64 { return w.A & 0xffff_ffff * n >> 32 }

// next advances to the next part.
func (w walk) next() walk { return walk{w.A>>32 | w.B<<32, w.B >> 32} }

// CellsOf writes the flow's cells in all sub-tables to the start of dst.
func (f *Family) CellsOf(h Hash, dst *[MaxTables]uint32) {
	w, from := walk(h), uint64(0)
	for t := range dst[:f.Tables] {
		dst[t] = uint32(w.in(f.cells) + from)
		w, from = w.next(), from+f.cells
	}
}

// Cells3 returns the flow's cells in three sub-tables, as CellsOf does.
func (f *Family) Cells3(h Hash) (c0, c1, c2 uint32) {
	n := f.cells
	return uint32(h.A & 0xffff_ffff * n >> 32), uint32(h.A>>32*n>>32 + n), uint32(h.B&0xffff_ffff*n>>32 + 2*n)
}
