package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// IPv6 is an IPv6 base header. Extension headers follow it in the packet.
type IPv6 struct {
	TrafficClass uint8  // DSCP in the upper six bits, ECN in the lower two
	FlowLabel    uint32 // 20 bits; higher ones are cut off
	Length       uint16 // of all that follows this header
	NextHeader   model.Proto
	HopLimit     uint8
	Src, Dst     model.Addr
}

// IPv6Size is the length of an encoded IPv6 header.
const IPv6Size = 40

// Extension headers that Packet skips.
const (
	hopByHop    = 0
	routing     = 43
	fragment    = 44
	authHeader  = 51
	noNext      = 59
	destOptions = 60
)

// AppendTo appends the encoded header.
func (h IPv6) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, 6<<28|uint32(h.TrafficClass)<<20|h.FlowLabel&0xfffff)
	b = be.AppendUint16(b, h.Length)
	b = append(b, byte(h.NextHeader), h.HopLimit)
	b = be.AppendUint64(b, h.Src.Hi)
	b = be.AppendUint64(b, h.Src.Lo)
	b = be.AppendUint64(b, h.Dst.Hi)
	return be.AppendUint64(b, h.Dst.Lo)
}

// Parse decodes the header at the start of b and returns its length.
func (h *IPv6) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*h = IPv6{}
	if len(b) < IPv6Size {
		return 0, ErrShort
	}
	first := be.Uint32(b)
	if first>>28 != 6 {
		return 0, ErrHeader
	}
	*h = IPv6{
		TrafficClass: uint8(first >> 20), FlowLabel: first & 0xfffff,
		Length: be.Uint16(b[4:]), NextHeader: model.Proto(b[6]), HopLimit: b[7],
		Src: model.Addr{Hi: be.Uint64(b[8:]), Lo: be.Uint64(b[16:])},
		Dst: model.Addr{Hi: be.Uint64(b[24:]), Lo: be.Uint64(b[32:])},
	}
	return IPv6Size, nil
}
