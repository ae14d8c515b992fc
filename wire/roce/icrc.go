package roce

import (
	"encoding/binary"
	"hash/crc32"
)

// Fields that switches rewrite count as all ones, so that the CRC holds from end
// to end. Each mask covers the headers from the first byte of the IP header on,
// as far as they make whole 64-bit words; all masked fields lie within them.
var (
	mask4 = [40]byte{ // IPv4 20, UDP 8, BTH 12
		1:  0xff,           // type of service
		8:  0xff,           // time to live
		10: 0xff, 11: 0xff, // header checksum
		26: 0xff, 27: 0xff, // UDP checksum
		32: 0xff, // BTH: FECN, BECN, reserved
	}
	mask6 = [56]byte{ // IPv6 40, UDP 8, the first 8 of BTH
		0: 0x0f, 1: 0xff, 2: 0xff, 3: 0xff, // traffic class, flow label
		7:  0xff,           // hop limit
		46: 0xff, 47: 0xff, // UDP checksum
		52: 0xff, // BTH: FECN, BECN, reserved
	}
)

// Shortest packets: the headers alone.
const (
	minSize4 = 20 + 8 + BTHSize
	minSize6 = 40 + 8 + BTHSize
	protoUDP = 17
)

// afterOnes is the CRC register after eight bytes of 0xff, which replace the
// local route header that an InfiniBand packet would have.
const afterOnes = 0xdebb20e3

// slices[k][v] is what byte v contributes to the CRC register k bytes later.
// hash/crc32 has the same table, but takes the bytes it reads through a
// function variable, so that masked headers on the stack would escape to the
// heap with every packet.
var slices = func() (t [8][256]uint32) {
	t[0] = *crc32.IEEETable
	for k := 1; k < len(t); k++ {
		for v, x := range t[k-1] {
			t[k][v] = x>>8 ^ t[0][x&0xff]
		}
	}
	return t
}()

// ICRC computes the invariant CRC of a packet that starts at its IP header and
// ends where the CRC belongs. The lengths in the IP and UDP headers must count
// the CRC's 4 bytes already. It allocates nothing and changes nothing.
func ICRC(ip []byte) (uint32, error) {
	if len(ip) == 0 {
		return 0, ErrShort
	}
	var mask []byte
	switch ip[0] >> 4 {
	case 4:
		if len(ip) < minSize4 {
			return 0, ErrShort
		}
		if ip[0] != 0x45 || ip[9] != protoUDP {
			return 0, ErrNotUDP
		}
		mask = mask4[:]
	case 6:
		if len(ip) < minSize6 {
			return 0, ErrShort
		}
		if ip[6] != protoUDP {
			return 0, ErrNotUDP
		}
		mask = mask6[:]
	default:
		return 0, ErrNotUDP
	}
	reg := uint32(afterOnes)
	for i := 0; i < len(mask); i += 8 {
		word := binary.LittleEndian.Uint64(ip[i:]) | binary.LittleEndian.Uint64(mask[i:])
		word ^= uint64(reg)
		reg = slices[7][byte(word)] ^ slices[6][byte(word>>8)] ^
			slices[5][byte(word>>16)] ^ slices[4][byte(word>>24)] ^
			slices[3][byte(word>>32)] ^ slices[2][byte(word>>40)] ^
			slices[1][byte(word>>48)] ^ slices[0][byte(word>>56)]
	}
	// hash/crc32 keeps the complement of the register between calls.
	return crc32.Update(^reg, crc32.IEEETable, ip[len(mask):]), nil
}

// AppendICRC appends to b the invariant CRC of the packet ip, which is usually
// the end of b: frame, err = AppendICRC(frame, frame[14:]). On an error it
// returns b as it was.
func AppendICRC(b, ip []byte) ([]byte, error) {
	crc, err := ICRC(ip)
	if err != nil {
		return b, err
	}
	return binary.LittleEndian.AppendUint32(b, crc), nil
}

// CheckICRC checks a packet that starts at its IP header and ends with its
// invariant CRC; padding that the link added must be removed before. It returns
// nil, ErrICRC, or why there is no CRC to compute.
func CheckICRC(ip []byte) error {
	end := len(ip) - ICRCSize
	if end < 0 {
		return ErrShort
	}
	crc, err := ICRC(ip[:end])
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(ip[end:]) != crc {
		return ErrICRC
	}
	return nil
}
