package packet

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// EtherTypes that Weft parses.
const (
	TypeIPv4       = 0x0800
	TypeARP        = 0x0806
	TypeBridged    = 0x6558 // an Ethernet frame inside GRE
	TypePoll       = 0x6888 // wire/poll
	TypeVLAN       = 0x8100
	TypeIPv6       = 0x86dd
	TypeMACControl = 0x8808 // wire/pfc
	TypeQinQ       = 0x88a8
)

// ErrShort is returned when the input ends inside a header.
var ErrShort = errors.New("packet: frame ends inside a header")

// ErrHeader is returned when a header contradicts itself: a version that does
// not fit, or a length smaller than the header that states it.
var ErrHeader = errors.New("packet: header contradicts itself")

// Ethernet is the header of a frame. Preamble and FCS are the hardware's.
type Ethernet struct {
	Dst, Src model.MAC
	Type     uint16
}

// EthernetSize is the length of an encoded Ethernet header.
const EthernetSize = 14

// AppendTo appends the encoded header.
func (h Ethernet) AppendTo(b []byte) []byte {
	b = append(b, h.Dst[:]...)
	b = append(b, h.Src[:]...)
	return binary.BigEndian.AppendUint16(b, h.Type)
}

// Parse decodes the header at the start of b and returns its length.
func (h *Ethernet) Parse(b []byte) (int, error) {
	*h = Ethernet{}
	if len(b) < EthernetSize {
		return 0, ErrShort
	}
	copy(h.Dst[:], b)
	copy(h.Src[:], b[6:])
	h.Type = binary.BigEndian.Uint16(b[12:])
	return EthernetSize, nil
}

// VLAN is an 802.1Q tag, which follows an Ethernet header or another tag.
type VLAN struct {
	PCP  model.Priority // 3 bits; higher ones are cut off
	DEI  bool
	ID   uint16 // 12 bits; higher ones are cut off
	Type uint16 // EtherType of what follows
}

// VLANSize is the length of an encoded VLAN tag.
const VLANSize = 4

// AppendTo appends the encoded tag.
func (h VLAN) AppendTo(b []byte) []byte {
	tci := uint16(h.PCP)<<13 | h.ID&0xfff
	if h.DEI {
		tci |= 1 << 12
	}
	b = binary.BigEndian.AppendUint16(b, tci)
	return binary.BigEndian.AppendUint16(b, h.Type)
}

// Parse decodes the tag at the start of b and returns its length.
func (h *VLAN) Parse(b []byte) (int, error) {
	*h = VLAN{}
	if len(b) < VLANSize {
		return 0, ErrShort
	}
	tci := binary.BigEndian.Uint16(b)
	*h = VLAN{
		PCP:  model.Priority(tci >> 13),
		DEI:  tci&(1<<12) != 0,
		ID:   tci & 0xfff,
		Type: binary.BigEndian.Uint16(b[2:]),
	}
	return VLANSize, nil
}
