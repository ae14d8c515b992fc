package capture

import (
	"net/netip"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

const hopLimit = 64

// AppendPacket appends a report as an IP packet. Sockets do not expose headers:
// addresses and ports are the report's, all other fields are synthetic.
func AppendPacket(b []byte, k source.Kind, from, to netip.AddrPort, payload []byte) []byte {
	if protoOf(k) == model.GRE {
		b = appendIP(b, model.GRE, from.Addr(), to.Addr(), len(payload))
		return append(b, payload...)
	}
	length := packet.UDPSize + len(payload)
	b = appendIP(b, model.UDP, from.Addr(), to.Addr(), length)
	b = packet.UDP{SrcPort: from.Port(), DstPort: to.Port(), Length: uint16(length)}.AppendTo(b) // checksum 0 is none
	return append(b, payload...)
}

// appendIP appends the header of a packet with a payload of length bytes.
func appendIP(b []byte, proto model.Proto, from, to netip.Addr, length int) []byte {
	src, dst := from.Unmap(), to.Unmap()
	if src.Is4() && dst.Is4() {
		h := packet.IPv4{Proto: proto, TTL: hopLimit, Src: model.AddrOf(src).V4(), Dst: model.AddrOf(dst).V4(), Length: uint16(packet.IPv4Size + length)}
		h.Checksum = h.Sum()
		return h.AppendTo(b)
	}
	return packet.IPv6{NextHeader: proto, HopLimit: hopLimit, Src: model.AddrOf(src), Dst: model.AddrOf(dst), Length: uint16(length)}.AppendTo(b)
}

// maxPayload is the longest payload that fits into a packet of either family with
// its headers.
const maxPayload = 1<<16 - 1 - packet.IPv4Size - packet.UDPSize
