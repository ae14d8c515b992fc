package ebpf

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/probe"
)

// frames draws frames of all kinds that wire/packet parses, and damaged ones.
type frames struct{ *rand.Rand }

func newFrames(seed uint64) frames { return frames{rand.New(rand.NewPCG(seed, 1))} }

func (r frames) oneIn(n int) bool { return r.IntN(n) == 0 }

// next returns a frame of at least some bytes, if it was drawn so long.
func (r frames) next(least int) []byte {
	b := r.ethernet(nil, 0)
	switch r.IntN(8) {
	case 0: // truncated
		return b[:max(min(least, len(b)), r.IntN(len(b)+1))]
	case 1: // some bytes changed
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
	case 2: // padding
		b = append(b, make([]byte, r.IntN(30))...)
	}
	return b
}

func (r frames) ethernet(b []byte, depth int) []byte {
	b = append(b, make([]byte, 12)...)
	for range max(0, r.IntN(9)-3) {
		b = binary.BigEndian.AppendUint16(b, []uint16{packet.TypeVLAN, packet.TypeQinQ}[r.IntN(2)])
		b = binary.BigEndian.AppendUint16(b, uint16(r.Uint32()))
	}
	switch {
	case r.oneIn(20):
		b = binary.BigEndian.AppendUint16(b, packet.TypeARP)
		return append(b, make([]byte, 46)...)
	case r.oneIn(2):
		b = binary.BigEndian.AppendUint16(b, packet.TypeIPv6)
		return r.ipv6(b, depth)
	}
	b = binary.BigEndian.AppendUint16(b, packet.TypeIPv4)
	return r.ipv4(b, depth)
}

// tos sometimes has the debug mark.
func (r frames) tos() uint8 { return []uint8{0, 4, 0x28, 0xb8 | 4}[r.IntN(4)] }

// few returns a small number, so that flows have several packets.
func (r frames) few() uint32 { return uint32(r.IntN(6)) }

func (r frames) ipv4(b []byte, depth int) []byte {
	proto, body := r.body(depth, false)
	h := packet.IPv4{
		TOS: r.tos(), ID: uint16(r.Uint32()), TTL: 9, Proto: proto,
		Src: 10<<24 | r.few(), Dst: 10<<24 | r.few()<<16 | r.few(),
	}
	if r.oneIn(8) {
		h.Flags = packet.MoreFragments
	}
	if r.oneIn(8) {
		h.FragOff = uint16(r.IntN(3))
	}
	if r.oneIn(6) {
		h.Options = make([]byte, 4*(1+r.IntN(10)))
	}
	h.Length = uint16(h.Size() + len(body))
	if r.oneIn(30) {
		h.Length = 0
	}
	return append(h.AppendTo(b), body...)
}

func (r frames) ipv6(b []byte, depth int) []byte {
	proto, body := r.body(depth, true)
	for range max(0, r.IntN(14)-8) { // sometimes some extension headers
		proto, body = r.extension(proto, body)
	}
	if r.oneIn(100) {
		for range 10 {
			proto, body = r.extension(proto, body)
		}
	}
	h := packet.IPv6{
		TrafficClass: r.tos(), Length: uint16(len(body)), NextHeader: proto, HopLimit: 9,
		Src: model.Addr{Hi: 0x20010db8 << 32, Lo: uint64(r.few())},
		Dst: model.Addr{Hi: 0x20010db8<<32 | uint64(r.few())<<16, Lo: uint64(r.few())},
	}
	if r.oneIn(30) {
		h.Length = 0
	}
	return append(h.AppendTo(b), body...)
}

func (r frames) extension(next model.Proto, body []byte) (model.Proto, []byte) {
	kind := []model.Proto{0, 43, 44, 51, 60}[r.IntN(5)]
	h := []byte{byte(next), byte(r.IntN(3)), 0, 0, 0, 0, 0, 0}
	switch {
	case kind == 44 && r.oneIn(3):
		h[3] = byte(r.IntN(16))
	case kind == 51:
		h = append(h, make([]byte, (int(h[1])+2)*4-8)...)
	case kind != 44:
		h = append(h, make([]byte, int(h[1])*8)...)
	}
	return kind, append(h, body...)
}

// body returns what an IP header carries, perhaps behind labels.
func (r frames) body(depth int, v6 bool) (model.Proto, []byte) {
	proto, body := r.transport(depth, v6)
	if r.oneIn(10) {
		o := label.Option{NextHeader: proto, Num: uint8(r.IntN(5)), MaxHop: uint8(1 + r.IntN(3))}
		b := append(o.AppendTo(nil), make([]byte, label.ItemSize*o.Count())...)
		if r.oneIn(10) {
			b[3] = 9 // another experiment
		}
		return label.Proto, append(b, body...)
	}
	return proto, body
}

func (r frames) transport(depth int, v6 bool) (model.Proto, []byte) {
	payload := make([]byte, r.IntN(40))
	if r.oneIn(3) {
		payload = append(probe.Stamp{Origin: 1}.AppendTo(nil), payload...)
	}
	kind := r.IntN(10)
	if depth >= 10 {
		kind = r.IntN(4)
	}
	switch kind {
	case 0, 1:
		h := packet.TCP{SrcPort: uint16(r.few()), DstPort: 80, Seq: r.Uint32(), Flags: uint16(r.Uint32() & 0x1ff)}
		if r.oneIn(3) {
			h.Options = make([]byte, 4*r.IntN(11))
		}
		b := h.AppendTo(nil)
		if r.oneIn(6) {
			b[12] = byte(r.Uint32()) // a data offset that may be too short or too long
		}
		return model.TCP, append(b, payload...)
	case 2:
		h := packet.UDP{SrcPort: uint16(r.few()), DstPort: []uint16{53, 4791, 4789, dta.Port}[r.IntN(4)], Length: uint16(8 + len(payload))}
		return model.UDP, append(h.AppendTo(nil), payload...)
	case 3:
		if v6 {
			return model.ICMPv6, append(packet.ICMP{Type: 128}.AppendTo(nil), payload...)
		}
		return model.ICMP, append(packet.ICMP{Type: 8}.AppendTo(nil), payload...)
	case 4:
		return model.IPIP, r.ipv4(nil, depth+1)
	case 5:
		return model.IPv6, r.ipv6(nil, depth+1)
	case 6, 7:
		h := gre.Header{HasChecksum: r.oneIn(2), HasKey: r.oneIn(2), HasSeq: r.oneIn(2), Flags: uint16(r.Uint32()) & 0x0ff8}
		inner := func(b []byte) []byte { return r.ethernet(b, depth+1) }
		switch h.Protocol = []uint16{packet.TypeIPv4, packet.TypeIPv6, packet.TypeBridged, 0x88be, 0x22eb}[r.IntN(5)]; h.Protocol {
		case packet.TypeIPv4:
			inner = func(b []byte) []byte { return r.ipv4(b, depth+1) }
		case packet.TypeIPv6:
			inner = func(b []byte) []byte { return r.ipv6(b, depth+1) }
		}
		b := h.AppendTo(nil)
		if r.oneIn(6) {
			b[1] |= byte(r.IntN(8)) // another version
		}
		return model.GRE, inner(b)
	case 8:
		h := packet.UDP{SrcPort: uint16(r.few()), DstPort: packet.VXLANPort}
		return model.UDP, r.ethernet(packet.VXLAN{Flags: 8}.AppendTo(h.AppendTo(nil)), depth+1)
	}
	return model.Proto(r.Uint32()), payload
}
