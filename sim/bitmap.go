package sim

import "math/bits"

// bitmap holds a bit for each packet of a window that moves along a flow:
// packet i has bit i modulo the window, which is a power of two.
type bitmap []uint64

func (b bitmap) position(i int64) (word int, bit uint64) {
	return int(uint64(i)>>6) & (len(b) - 1), 1 << (uint64(i) & 63)
}

func (b bitmap) has(i int64) bool {
	word, bit := b.position(i)
	return b[word]&bit != 0
}

func (b bitmap) set(i int64) {
	word, bit := b.position(i)
	b[word] |= bit
}

func (b bitmap) clear(i int64) {
	word, bit := b.position(i)
	b[word] &^= bit
}

// next returns the first packet from i on that is set. There must be one in the
// window.
func (b bitmap) next(i int64) int64 {
	for {
		word, _ := b.position(i)
		if rest := b[word] >> (uint64(i) & 63); rest != 0 {
			return i + int64(bits.TrailingZeros64(rest))
		}
		i = i&^63 + 64
	}
}
