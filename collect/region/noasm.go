//go:build !amd64 || purego || race

package region

import "encoding/binary"

// Prefetch loads words that will soon be written, and uses none, so that the
// loads overlap.
func Prefetch(words []uint64, at []uint64) {
	for _, i := range at {
		Load(&words[i])
	}
}

// StoreLine stores the bytes of eight words, each atomically. next is a word that
// will be written later.
//
//go:noinline
func StoreLine(to *[8]uint64, b *[64]byte, next *uint64) {
	Load(next)
	for i := range to {
		Store(&to[i], binary.LittleEndian.Uint64(b[8*i:]))
	}
}
