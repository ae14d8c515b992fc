package roce

import (
	"encoding/binary"
	"hash/crc32"
)

// A UDP socket does not show the IP header of what it receives, and the invariant
// CRC covers it. All of an IPv4 header follows from addresses and lengths, except
// its identification and the flag Don't Fragment: Linux sends 0 and DF from
// unconnected sockets, the kernel's own RoCE and NICs count.
//
// The CRC is linear: if a packet and the header that it is assumed to have differ
// in one word, their CRCs differ by that word times a constant, which depends on
// the word's distance from the end. So the difference of the CRCs is divided by
// the constant, and the packet is undamaged if the quotient is a difference that
// identification and DF can make. This accepts one in 2^15 of damaged packets,
// where a comparison of CRCs accepts one in 2^32. A raw socket would show the header,
// but needs a privilege, and the kernel's filter in place of the port.

// identificationAt is the offset of identification, flags and fragment offset.
const identificationAt = 4

// maxIdentified is the length of the longest packet that is checked: headers and
// a payload of 4096 bytes, InfiniBand's largest MTU.
const maxIdentified = 4096 + 128

// inverse[n] divides a CRC by n bytes: it is x^-8n modulo the CRC's polynomial.
var inverse = func() (t [maxIdentified]uint32) {
	var indexOf [256]uint32 // by the top byte of a table entry, which is unique
	for v, x := range crc32.IEEETable {
		indexOf[x>>24] = uint32(v)
	}
	t[0] = 1 << 31 // x^0: the lowest power is the highest bit
	for n := 1; n < len(t); n++ {
		v := indexOf[t[n-1]>>24]
		t[n] = (t[n-1]^crc32.IEEETable[v])<<8 | v
	}
	return t
}()

// multiply returns a times b modulo the CRC's polynomial.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1 << 31); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.IEEE*(b&1)
	}
	return product
}

// CheckICRCAnyIdentification is CheckICRC for a packet whose IPv4 header was made
// from its addresses and length: identification and DF may be others than in ip.
// It allocates nothing and changes nothing.
func CheckICRCAnyIdentification(ip []byte) error {
	end := len(ip) - ICRCSize
	if end < 0 {
		return ErrShort
	}
	crc, err := ICRC(ip[:end])
	if err != nil {
		return err
	}
	difference := crc ^ binary.LittleEndian.Uint32(ip[end:])
	if difference == 0 {
		return nil
	}
	if ip[0]>>4 != 4 || len(ip) > maxIdentified {
		return ErrICRC
	}
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], multiply(inverse[end-identificationAt], difference))
	if word[2]&^0x40 != 0 || word[3] != 0 { // other flags, or a fragment
		return ErrICRC
	}
	return nil
}
