package slothash

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// PrototypeCRC is the prototype's hash of a key: the CRC-32 of its 4 bytes in
// little-endian order, as on an x86 host. It is the checksum too.
type PrototypeCRC uint32

// crcTables[i] advances a CRC by one byte and then by i zero bytes, so that the 4
// bytes of a key are 4 independent loads.
var crcTables = func() (t [4][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := 1; i < 4; i++ {
		for b := range 256 {
			c := t[i-1][b]
			t[i][b] = t[0][byte(c)] ^ c>>8
		}
	}
	return t
}()

// PrototypeKeyLen is the length of the prototype's keys in bytes.
const PrototypeKeyLen = 4

// HashPrototype hashes a key of 4 bytes, in network byte order as on the wire.
func HashPrototype(key [PrototypeKeyLen]byte) PrototypeCRC {
	c := ^binary.BigEndian.Uint32(key[:])
	return PrototypeCRC(^(crcTables[3][byte(c)] ^ crcTables[2][byte(c>>8)] ^ crcTables[1][byte(c>>16)] ^ crcTables[0][c>>24]))
}

// Slot returns the slot index of copy n; slots is a power of two. It is the CRC
// of the key followed by a byte n, one step from the CRC of the key alone.
func (c PrototypeCRC) Slot(n int, slots uint64) uint64 {
	s := ^uint32(c)
	return uint64(^(crcTables[0][byte(s)^byte(n)] ^ s>>8)) & (slots - 1)
}

// IsPrototypeSlots reports whether slots is a valid number with the prototype's
// layout.
func IsPrototypeSlots(slots uint64) bool {
	return slots >= 2 && slots <= 1<<31 && bits.OnesCount64(slots) == 1
}
