//go:build !race && amd64

package region

import (
	"sync/atomic"
	"unsafe"
)

// Store writes one aligned word. It is a plain store: the CPU keeps stores in
// order and atomic, and an atomic instruction would wait for all stores before
// it, which costs most of the speed of writing (docs/decisions/0009).
func Store(p *uint64, v uint64) { *p = v }

// store32 writes one aligned half word.
func store32(p *uint32, v uint32) { *p = v }

// Store4 writes four words, each atomically.
func Store4(to *[4]uint64, a, b, c, d uint64) { to[0], to[1], to[2], to[3] = a, b, c, d }

// Publish stores a word that makes earlier stores visible to readers. That it is
// a call keeps the compiler from moving stores across it; amd64 itself keeps them
// in order.
//
//go:noinline
func Publish(p *uint64, v uint64) { *p = v }

// Load reads one aligned word, before any later load.
func Load(p *uint64) uint64 { return atomic.LoadUint64(p) }

func load32(p *uint32) uint32 { return atomic.LoadUint32(p) }

// Copy stores the bytes of whole words. The runtime's copy moves 16 bytes or more at a
// time, aligned as the words are, and so never a part of a word.
func Copy(to []uint64, b []byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(to))), 8*len(to)), b)
}
