package translate

import (
	"iter"
	"math/bits"
)

// bits64 is a set of numbers below 64 times its length.
type bits64 []uint64

func (b bits64) has(i uint32) bool { return b[i>>6]>>(i&63)&1 != 0 }

// flip adds a number, or removes it.
func (b bits64) flip(i uint32) { b[i>>6] ^= 1 << (i & 63) }

// all yields the numbers in their order. One may be removed when it is yielded.
func (b bits64) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for w, rest := range b {
			for ; rest != 0; rest &= rest - 1 {
				if !yield(uint32(w*64 + bits.TrailingZeros64(rest))) {
					return
				}
			}
		}
	}
}
