// Package checksum computes the Internet checksum of RFC 1071 and updates it
// in place as RFC 1624 says. It knows no header: wire/packet and wire/label
// choose the bytes to sum.
package checksum

import (
	"encoding/binary"
	"math/bits"
)

// Sum is a running one's-complement sum. The zero value is empty.
type Sum uint64

// Add sums b as big-endian 16-bit words; an odd last byte is padded with zero,
// so only the last piece of a message may have odd length.
func (s Sum) Add(b []byte) Sum {
	// One's-complement addition may take wide words and fold late: a carry out
	// of 64 bits is worth one, as it is out of 16.
	sum, carry := uint64(s), uint64(0)
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	if len(b) >= 4 { // the end of most headers; a copy of what is left costs a call
		sum, carry = bits.Add64(sum, uint64(binary.BigEndian.Uint32(b))<<32, carry)
		b = b[4:]
	}
	if len(b) > 0 {
		var tail [4]byte
		copy(tail[:], b)
		sum, carry = bits.Add64(sum, uint64(binary.BigEndian.Uint32(tail[:]))<<32, carry)
	}
	sum, carry = bits.Add64(sum, 0, carry)
	return Sum(sum + carry)
}

// Fold returns the checksum: the complement of the sum in 16 bits.
func (s Sum) Fold() uint16 {
	v := uint64(s)
	v = v>>32 + v&0xffffffff
	v = v>>32 + v&0xffffffff
	v = v>>16 + v&0xffff
	v = v>>16 + v&0xffff
	return ^uint16(v)
}

// Of returns the checksum of b alone. It is 0 for a message that carries a
// correct checksum.
func Of(b []byte) uint16 { return Sum(0).Add(b).Fold() }

// Update returns the checksum of a message after one of its 16-bit words
// changed. A wrong checksum stays wrong by the same amount, so a corrupted
// header is not repaired by a switch.
func Update(check, before, after uint16) uint16 {
	// RFC 1624, equation 3. Equation 4 would turn 0x0000 into 0xffff.
	sum := uint32(^check) + uint32(^before) + uint32(after)
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum)
}
