//go:build race || !amd64

package region

import (
	"encoding/binary"
	"sync/atomic"
)

// Store writes one aligned word; in this build, atomically.
func Store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// store32 writes one aligned half word; in this build, atomically.
func store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

// Store4 writes four words, each atomically.
func Store4(to *[4]uint64, a, b, c, d uint64) {
	Store(&to[0], a)
	Store(&to[1], b)
	Store(&to[2], c)
	Store(&to[3], d)
}

// Publish stores a word that makes earlier stores visible to readers.
func Publish(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// Load reads one aligned word, before any later load.
func Load(p *uint64) uint64 { return atomic.LoadUint64(p) }

func load32(p *uint32) uint32 { return atomic.LoadUint32(p) }

// Copy stores the bytes of whole words.
func Copy(to []uint64, b []byte) {
	for i := range to {
		Store(&to[i], binary.LittleEndian.Uint64(b[8*i:]))
	}
}
