package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/checksum"
)

// IPv4 is an IPv4 header with its options.
type IPv4 struct {
	TOS      uint8 // DSCP in the upper six bits, ECN in the lower two
	Length   uint16
	ID       uint16
	Flags    uint8  // reserved, DF, MF: the top three bits of the fragment word
	FragOff  uint16 // in units of 8 bytes, 13 bits
	TTL      uint8
	Proto    model.Proto
	Checksum uint16 // as on the wire; Sum computes the correct one
	Src, Dst uint32 // host order; model.Addr4 makes an Addr
	Options  []byte // aliases the input of Parse; padded to four bytes, at most 40
}

// Flags of an IPv4 header.
const (
	MoreFragments = 1
	DontFragment  = 2
)

// IPv4Size is the length of a header without options.
const IPv4Size = 20

// Size is the length of the encoded header.
func (h IPv4) Size() int { return IPv4Size + len(h.options()) }

// options returns the options that fit: whole words, at most ten.
func (h IPv4) options() []byte { return h.Options[:min(len(h.Options)&^3, 40)] }

// AppendTo appends the encoded header, its checksum as the field says.
func (h IPv4) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	opts := h.options()
	b = append(b, byte(0x40|(IPv4Size+len(opts))/4), h.TOS)
	b = be.AppendUint16(b, h.Length)
	b = be.AppendUint16(b, h.ID)
	b = be.AppendUint16(b, uint16(h.Flags)<<13|h.FragOff&0x1fff)
	b = append(b, h.TTL, byte(h.Proto))
	b = be.AppendUint16(b, h.Checksum)
	b = be.AppendUint32(b, h.Src)
	b = be.AppendUint32(b, h.Dst)
	return append(b, opts...)
}

// Sum returns the checksum that the header should carry.
func (h IPv4) Sum() uint16 {
	var buf [60]byte
	h.Checksum = 0
	return checksum.Of(h.AppendTo(buf[:0]))
}

// Parse decodes the header at the start of b and returns its length.
func (h *IPv4) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*h = IPv4{}
	if len(b) < IPv4Size {
		return 0, ErrShort
	}
	size := int(b[0]&0xf) * 4
	if b[0]>>4 != 4 || size < IPv4Size {
		return 0, ErrHeader
	}
	if len(b) < size {
		return 0, ErrShort
	}
	frag := be.Uint16(b[6:])
	*h = IPv4{
		TOS: b[1], Length: be.Uint16(b[2:]), ID: be.Uint16(b[4:]),
		Flags: uint8(frag >> 13), FragOff: frag & 0x1fff,
		TTL: b[8], Proto: model.Proto(b[9]), Checksum: be.Uint16(b[10:]),
		Src: be.Uint32(b[12:]), Dst: be.Uint32(b[16:]),
	}
	if size > IPv4Size {
		h.Options = b[IPv4Size:size:size]
	}
	return size, nil
}
