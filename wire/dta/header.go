package dta

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// HeaderSize is the length of an encoded Header.
const HeaderSize = 12

// version1 is the first byte of everything Weft sends: a magic nibble that no
// primitive of the prototype has, and the version.
const version1 = 0xd1

// Header starts a datagram of version 1. Count reports follow, numbered from
// Seq. A datagram without reports is legal: it carries the next sequence number,
// so that a loss at the end of a burst is detected.
type Header struct {
	Count    uint16
	Reporter model.NodeID
	Seq      Seq // of the first report
}

// AppendTo appends the encoded header.
func (h Header) AppendTo(b []byte) []byte {
	b = append(b, version1, 0, byte(h.Count>>8), byte(h.Count))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Reporter))
	return binary.BigEndian.AppendUint32(b, uint32(h.Seq))
}

// Parse decodes the header at the start of b and returns the bytes it used. It
// overwrites every field of h and keeps no reference to b.
func (h *Header) Parse(b []byte) (int, error) {
	*h = Header{}
	if len(b) < HeaderSize {
		return 0, ErrShort
	}
	if b[0] != version1 {
		return 0, ErrVersion
	}
	if b[1] != 0 {
		return 0, ErrReserved
	}
	*h = Header{
		Count:    binary.BigEndian.Uint16(b[2:]),
		Reporter: model.NodeID(binary.BigEndian.Uint32(b[4:])),
		Seq:      Seq(binary.BigEndian.Uint32(b[8:])),
	}
	return HeaderSize, nil
}
