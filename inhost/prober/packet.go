package prober

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/probe"
)

// Packet is the pattern of a probe: an IP packet with any header, inside one
// more IP header for each node that it is routed through.
type Packet struct {
	Tunnels []Tunnel // outermost first; the switch that it addresses removes it
	Key     model.FlowKey
	TTL     uint8 // 0: DefaultTTL
	DSCP    uint8 // the prober adds its mark, here and in Tunnels
	ECN     uint8

	// IPID of the first probe; the next ones increment it, so that no two of a
	// series are taken for one.
	IPID uint16

	TCPFlags packet.TCPFlags
	Seq, Ack uint32 // of TCP

	// Payload is the number of bytes after the last header, which start with
	// the stamp; less than the stamp means the stamp alone.
	Payload int
}

// Tunnel is one tunnel header of a probe.
type Tunnel struct {
	Src, Dst model.Addr
	TTL      uint8 // 0: DefaultTTL
}

// DefaultTTL is the TTL of headers that set none.
const DefaultTTL = 64

// maxPayload keeps probes within the MTU of any Ethernet.
const maxPayload = 1200

// Check returns an error for a probe that cannot be sent.
func (p *Packet) Check() error {
	switch {
	case p.Key.IsZero():
		return fmt.Errorf("prober: probe without addresses, want source and destination")
	case p.Key.V6 == p.Key.Src.Is4() || p.Key.V6 == p.Key.Dst.Is4():
		return fmt.Errorf("prober: probe from %v to %v, want addresses of one family", p.Key.Src, p.Key.Dst)
	case p.Payload < 0 || p.Payload > maxPayload:
		return fmt.Errorf("prober: payload of %d bytes, want 0 to %d", p.Payload, maxPayload)
	case p.DSCP > 63 || p.ECN > 3:
		return fmt.Errorf("prober: DSCP %d and ECN %d, want at most 63 and 3", p.DSCP, p.ECN)
	case len(p.Tunnels) >= packet.MaxDepth:
		return fmt.Errorf("prober: %d tunnels, want at most %d", len(p.Tunnels), packet.MaxDepth-1)
	}
	for _, h := range p.Tunnels {
		if h.Src.Is4() != h.Dst.Is4() {
			return fmt.Errorf("prober: tunnel from %v to %v, want addresses of one family", h.Src, h.Dst)
		}
	}
	return nil
}

// StampEnd returns the offset of the end of the stamp in a frame: a mirror must
// keep as many bytes, or the probe cannot be identified.
func (p *Packet) StampEnd() int { return packet.EthernetSize + p.Size() - p.payload() + probe.Size }

// Size returns the length of the IP packet.
func (p *Packet) Size() int {
	n := ipSize(p.Key.V6) + p.payload()
	switch p.Key.Proto {
	case model.TCP:
		n += packet.TCPSize
	case model.UDP:
		n += packet.UDPSize
	}
	for i := range p.Tunnels {
		n += ipSize(!p.Tunnels[i].Dst.Is4())
	}
	return n
}

func (p *Packet) payload() int { return max(p.Payload, probe.Size) }

func ipSize(v6 bool) int {
	if v6 {
		return packet.IPv6Size
	}
	return packet.IPv4Size
}

// AppendTo appends the bytes of the IP packet with a stamp, its number-th IPID,
// and a mark in every header. The checksum of TCP or UDP is deliberately wrong:
// the receiving host discards the probe before any of its programs sees it.
func (p *Packet) AppendTo(b []byte, s probe.Stamp, mark uint8) []byte {
	tos := (p.DSCP|mark)<<2 | p.ECN
	left := p.Size()
	for i := range p.Tunnels {
		h := &p.Tunnels[i]
		v6 := !h.Dst.Is4()
		inside := p.Key.V6
		if i+1 < len(p.Tunnels) {
			inside = !p.Tunnels[i+1].Dst.Is4()
		}
		proto := model.IPIP
		if inside {
			proto = model.IPv6
		}
		b = appendIP(b, model.FlowKey{Src: h.Src, Dst: h.Dst, Proto: proto, V6: v6}, left, h.TTL, tos, 0)
		left -= ipSize(v6)
	}
	b = appendIP(b, p.Key, left, p.TTL, tos, p.IPID+uint16(s.Number))
	at := len(b)
	size := left - ipSize(p.Key.V6)
	switch p.Key.Proto {
	case model.TCP:
		b = packet.TCP{
			SrcPort: p.Key.SrcPort, DstPort: p.Key.DstPort, Seq: p.Seq, Ack: p.Ack,
			Flags: uint16(p.TCPFlags),
		}.AppendTo(b)
	case model.UDP:
		b = packet.UDP{SrcPort: p.Key.SrcPort, DstPort: p.Key.DstPort, Length: uint16(size)}.AppendTo(b)
	}
	b = s.AppendTo(b)
	for len(b) < at+size {
		b = append(b, 0)
	}
	switch p.Key.Proto {
	case model.TCP:
		p.corruptChecksum(b[at:], 16)
	case model.UDP:
		p.corruptChecksum(b[at:], 6)
	}
	return b
}

// corruptChecksum writes a wrong checksum that is not zero, which in UDP means
// that there is none.
func (p *Packet) corruptChecksum(segment []byte, at int) {
	wrong := packet.TransportChecksum(p.Key.Src, p.Key.Dst, p.Key.V6, p.Key.Proto, segment) ^ 0x0101
	if wrong == 0 {
		wrong = 0x1010
	}
	segment[at], segment[at+1] = byte(wrong>>8), byte(wrong)
}

func appendIP(b []byte, k model.FlowKey, size int, ttl, tos uint8, id uint16) []byte {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	if k.V6 {
		return packet.IPv6{
			TrafficClass: tos, Length: uint16(size - packet.IPv6Size), NextHeader: k.Proto, HopLimit: ttl,
			Src: k.Src, Dst: k.Dst,
		}.AppendTo(b)
	}
	h := packet.IPv4{
		TOS: tos, Length: uint16(size), ID: id, Flags: packet.DontFragment, TTL: ttl, Proto: k.Proto,
		Src: k.Src.V4(), Dst: k.Dst.V4(),
	}
	h.Checksum = h.Sum()
	return h.AppendTo(b)
}
