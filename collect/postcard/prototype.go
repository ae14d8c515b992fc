package postcard

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// hopTables are the CRCs that mask the hops in the prototype's chunks. That
// its polynomials are reflected, with all ones before and after, is our
// interpretation of the switch program; only the hardware could confirm it.
var hopTables = [protoHops]*crc32.Table{
	crc32.MakeTable(bits.Reverse32(0x1e12a700)),
	crc32.MakeTable(bits.Reverse32(0x65b96595)),
	crc32.MakeTable(bits.Reverse32(0x49cf878b)),
	crc32.MakeTable(bits.Reverse32(0x36518f0d)),
	crc32.MakeTable(bits.Reverse32(0x7a40a908)),
}

// protoCRC is the CRC of a key in network byte order.
func protoCRC(table *crc32.Table, key uint32) uint32 {
	c := ^uint32(0)
	for shift := 24; shift >= 0; shift -= 8 {
		c = table[byte(c)^byte(key>>shift)] ^ c>>8
	}
	return ^c
}

// protoEncode fills the prototype's chunk: 5 words of 32 bits in network byte
// order, 12 bytes of zeros. A hop that did not report is a value of 0.
func protoEncode(chunk *[maxWords]uint64, key uint32, hops []uint32) {
	var b [32]byte
	for i := range protoHops {
		v := uint32(0)
		if i < len(hops) && hops[i] != Blank {
			v = hops[i]
		}
		binary.BigEndian.PutUint32(b[4*i:], v^protoCRC(hopTables[i], key))
	}
	for i := range 4 {
		chunk[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
}
