package sketch

import (
	"encoding/binary"
	"math/bits"
)

// Filter is a Bloom filter's bits, in the order of wire/flowset: bit i is in
// word i/64. A Family maps a flow to its bits.
//
// Paper: k_f bits anywhere. Here: in groups of GroupBits that share a word, so
// that a packet of a known flow, which has to read all of them, touches a
// quarter of the memory. The filter needs about a tenth more bits for the same
// rate of false positives (docs/flowset.md).
type Filter []uint64

// GroupBits is how many of a flow's filter bits lie in one word.
const GroupBits = 4

// NewFilter makes an empty filter for a shape.
func NewFilter(g Geometry) Filter { return make(Filter, (g.FilterBits+63)/64) }

// group returns the word and the mask of a flow's group of bits. The first group
// is made of h.A, each next one of the sum of the previous and h.B.
func (f *Family) group(x uint64) (word, mask uint64) {
	// The high half selects the word; the low half, uniform too, selects the
	// positions within it.
	word, at := bits.Mul64(x, f.words)
	return word, bits.RotateLeft64(f.patterns[at>>56], int(at>>50))
}

// Has reports whether all of the flow's bits are set.
func (b Filter) Has(f *Family, h Hash) bool { return b.Missing(f, h) == 0 }

// Missing returns 0 if all of the flow's bits are set. A caller that asks for many
// flows combines the results and branches once.
func (b Filter) Missing(f *Family, h Hash) (missing uint64) {
	// No branch until the end: all words are fetched at once.
	for range f.groups {
		word, mask := f.group(h.A)
		missing |= mask &^ b[word]
		h.A += h.B
	}
	return missing
}

// hasByCall is Has for AddPacket. Where the compiler puts Has into that function, there are too
// few registers for both: the loop keeps what it counts in memory.
//
//go:noinline
func (b Filter) hasByCall(f *Family, h Hash) bool {
	var missing uint64
	words := f.words
	for n := f.groups; n > 0; n-- {
		word, at := bits.Mul64(h.A, words)
		missing |= bits.RotateLeft64(f.patterns[at>>56], int(at>>50)) &^ b[word]
		h.A += h.B
	}
	return missing == 0
}

// Add sets the flow's bits.
func (b Filter) Add(f *Family, h Hash) {
	for range f.groups {
		word, mask := f.group(h.A)
		b[word] |= mask
		h.A += h.B
	}
}

// AppendBytes appends count bytes of the filter from byte first on, as a chunk
// carries them.
func (b Filter) AppendBytes(dst []byte, first, count uint32) []byte {
	for i := first; i < first+count; {
		if i%8 == 0 && i+8 <= first+count {
			dst = binary.LittleEndian.AppendUint64(dst, b[i/8])
			i += 8
			continue
		}
		dst = append(dst, byte(b[i/8]>>(i%8*8)))
		i++
	}
	return dst
}

// SetBytes puts what AppendBytes made back from byte first on.
func (b Filter) SetBytes(first uint32, src []byte) {
	for len(src) > 0 {
		if first%8 == 0 && len(src) >= 8 {
			words := b[first/8:][:len(src)/8]
			for i := range words {
				words[i] = binary.LittleEndian.Uint64(src[8*i:])
			}
			src, first = src[8*len(words):], first+uint32(8*len(words))
			continue
		}
		at, v := first, src[0]
		src, first = src[1:], first+1
		shift := at % 8 * 8
		b[at/8] = b[at/8]&^(0xff<<shift) | uint64(v)<<shift
	}
}
