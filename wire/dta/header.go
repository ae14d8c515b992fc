package dta

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Lengths of an encoded Header.
const (
	HeaderSize       = 12 // version 1
	SignedHeaderSize = 28 // version 2
)

// The first byte of everything Weft sends: a magic nibble that no primitive of
// the prototype has, and the version. Answers of version 2 have a magic of their
// own: under the same key, neither can be taken for the other.
const (
	version1 = 0xd1
	version2 = 0xd2
	answer2  = 0xa2
)

// Header starts a datagram of version 1 or 2. Count reports follow, numbered
// from Seq. A datagram without reports is legal: it carries the next sequence
// number, so that a loss at the end of a burst is detected.
//
// A datagram of version 2 is authenticated: a MAC over all of it comes last.
type Header struct {
	Count    uint16
	Reporter model.NodeID
	Seq      Seq // of the first report

	Signed bool       // version 2; without it the fields below are not encoded
	KeyID  uint8      // which of the reporter's keys made the MAC
	Start  model.Time // when the reporter began to number: grows with each restart
	Sent   model.Time // when the datagram was made: grows with each datagram
}

// Size returns how many bytes AppendTo appends.
func (h *Header) Size() int {
	if h.Signed {
		return SignedHeaderSize
	}
	return HeaderSize
}

// AppendTo appends the encoded header.
func (h Header) AppendTo(b []byte) []byte {
	first, second := byte(version1), byte(0)
	if h.Signed {
		first, second = version2, h.KeyID
	}
	b = append(b, first, second, byte(h.Count>>8), byte(h.Count))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Reporter))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Seq))
	if !h.Signed {
		return b
	}
	b = binary.BigEndian.AppendUint64(b, uint64(h.Start))
	return binary.BigEndian.AppendUint64(b, uint64(h.Sent))
}

// Parse decodes the header at the start of b and returns the bytes it used. It
// overwrites every field of h and keeps no reference to b. It does not verify
// the MAC of version 2.
func (h *Header) Parse(b []byte) (int, error) {
	*h = Header{}
	if len(b) < HeaderSize {
		return 0, ErrShort
	}
	switch {
	case b[0] == version2 && len(b) < SignedHeaderSize:
		return 0, ErrShort
	case b[0] == version2:
		h.Signed, h.KeyID = true, b[1]
		h.Start = model.Time(binary.BigEndian.Uint64(b[12:]))
		h.Sent = model.Time(binary.BigEndian.Uint64(b[20:]))
	case b[0] != version1:
		return 0, ErrVersion
	case b[1] != 0:
		return 0, ErrReserved
	}
	h.Count = binary.BigEndian.Uint16(b[2:])
	h.Reporter = model.NodeID(binary.BigEndian.Uint32(b[4:]))
	h.Seq = Seq(binary.BigEndian.Uint32(b[8:]))
	return h.Size(), nil
}
