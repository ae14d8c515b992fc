package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/gre"
)

// followTunnels follows tunnels from Outer to the last IP header.
func (p *Packet) followTunnels(b []byte) {
	h := &p.Outer
	for {
		// A tunnel's content ends where the tunnel packet does.
		b = b[:min(int(h.Start)+int(h.Length), len(b))]
		encap, at, v6, err := h.tunnel(b)
		if err != nil {
			h.Flags |= flagFor(h, err)
			return
		}
		if encap == Mirror && p.Encap == None {
			p.Encap = Mirror
		}
		if encap == None || encap == Mirror {
			return
		}
		if p.Depth == MaxDepth {
			h.Flags |= TooDeep
			return
		}
		var inner IP
		if err := inner.parse(b, at, v6); err != nil {
			h.Flags |= flagFor(h, err)
			return
		}
		p.Inner, p.Encap = inner, encap
		p.Depth++
		h = &p.Inner
	}
}

// tunnel returns whether h carries another packet, and its offset in b.
func (h *IP) tunnel(b []byte) (encap Encap, at int, v6 bool, err error) {
	if h.Flags&(NoPorts|TooDeep|Malformed) != 0 {
		return None, 0, false, nil
	}
	at = int(h.Transport)
	switch h.Key.Proto {
	case model.IPIP:
		return IPinIP, at, false, nil
	case model.IPv6:
		return IPinIP, at, true, nil
	case model.GRE:
		var h gre.Header
		n, err := h.Parse(b[at:])
		if err == gre.ErrShort {
			return None, 0, false, ErrShort
		}
		if err != nil {
			return None, 0, false, ErrHeader
		}
		switch h.Protocol {
		case TypeIPv4, TypeIPv6:
			return GREinIP, at + n, h.Protocol == TypeIPv6, nil
		case TypeBridged:
			return bridged(GREinIP, b, at+n)
		case erspan.ProtoII, erspan.ProtoIII, erspan.ProtoMellanox:
			return Mirror, 0, false, nil
		}
	case model.UDP:
		if h.Key.DstPort == VXLANPort {
			var vx VXLAN
			n, err := vx.Parse(b[h.Payload:])
			if err != nil {
				return None, 0, false, err
			}
			return bridged(VXLANinUDP, b, int(h.Payload)+n)
		}
	}
	return None, 0, false, nil
}

// bridged parses an Ethernet frame that a tunnel carries. A frame without IP is
// not followed.
func bridged(encap Encap, b []byte, at int) (Encap, int, bool, error) {
	var eth Ethernet
	n, err := eth.Parse(b[at:])
	at += n
	for range maxTags {
		if err != nil || eth.Type != TypeVLAN && eth.Type != TypeQinQ {
			break
		}
		if len(b) < at+VLANSize {
			return None, 0, false, ErrShort
		}
		eth.Type = binary.BigEndian.Uint16(b[at+2:])
		at += VLANSize
	}
	if err != nil || eth.Type != TypeIPv4 && eth.Type != TypeIPv6 {
		return None, 0, false, err
	}
	return encap, at, eth.Type == TypeIPv6, nil
}
