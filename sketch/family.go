package sketch

import (
	"errors"
	"fmt"
	"math/bits"
)

// Geometry is the shape of a flowset. Its fields are those of
// wire/flowset.Geometry, so that one converts to the other.
type Geometry struct {
	FilterHashes uint8  // filter bits per flow, k_f
	FilterBits   uint32 // m_f; a multiple of 64
	Tables       uint8  // sub-tables, one cell of each per flow: k_c
	TableCells   uint32 // cells of one sub-table
}

// MaxTables is the largest number of sub-tables. A hash has bits for so many
// cells that are independent of each other; more have no use.
const MaxTables = 8

// ErrGeometry is returned for a shape that the hash family cannot serve.
var ErrGeometry = errors.New("sketch: bad geometry")

// Check tells whether the hash family can serve the shape.
func (g Geometry) Check() error {
	switch {
	case g.FilterHashes == 0:
		return fmt.Errorf("%w: no filter hashes, want at least 1", ErrGeometry)
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
	seed  [4]uint64
	words uint64 // of the filter
	cells uint64 // of one sub-table
}

// NewFamily makes the functions for a shape and a seed.
func NewFamily(g Geometry, seed uint64) (Family, error) {
	if err := g.Check(); err != nil {
		return Family{}, err
	}
	f := Family{Geometry: g, words: uint64(g.FilterBits / 64), cells: uint64(g.TableCells)}
	for i := range f.seed {
		// SplitMix64: any two seeds, even neighbouring numbers, give words
		// that have nothing in common.
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		f.seed[i] = z ^ z>>31
	}
	return f, nil
}

// Hash is the 128 bits that all positions of a flow come from.
type Hash struct{ A, B uint64 }

// HashOf mixes a key: a multiplication to 128 bits per pair of words, then one
// per half of the result.
func HashOf[K Key](f *Family, k *K) Hash {
	hi, lo := bits.Mul64((*k)[0]^f.seed[0], (*k)[1]^f.seed[1])
	for i := 2; i < len(*k); i++ {
		hi, lo = bits.Mul64(lo^(*k)[i]^f.seed[2], hi^f.seed[3])
	}
	ah, al := bits.Mul64(lo^f.seed[2], hi^f.seed[3])
	bh, bl := bits.Mul64(lo^f.seed[3], hi^f.seed[0])
	return Hash{ah ^ al, bh ^ bl}
}

// Cell returns the index of the flow's cell in sub-table t, counted from the
// start of the first sub-table.
//
// Each of the first four comes from 32 bits of its own. Double hashing, which
// is enough for filters, is not enough here: with two free numbers per flow the
// chance that two flows share all their cells does not fall with the table's
// size.
func (f *Family) Cell(h Hash, t int) uint32 {
	if t >= 4 {
		h = Hash{h.A*0x9e3779b97f4a7c15 ^ h.B>>32, h.B*0xbf58476d1ce4e5b9 ^ h.A>>32}
		h = Hash{h.A ^ h.A>>29, h.B ^ h.B>>29}
	}
	w := h.A
	if t&2 != 0 {
		w = h.B
	}
	w = w >> (t & 1 * 32) & 0xffff_ffff
	return uint32(w*f.cells>>32 + uint64(t)*f.cells)
}
