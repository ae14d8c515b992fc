package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Craft makes a packet that the host originates from the bytes of an IP packet,
// tunnels included. It keeps what a Packet holds: AppendFrame writes the same
// bytes, but with don't-fragment set, no flow label, and correct checksums. The
// packet must be sent with Send.
func (h *Host) Craft(ip []byte) (*Packet, error) { return h.w.craft(ip) }

// Craft is Host's, for a packet that the switch originates.
func (sw *Switch) Craft(ip []byte) (*Packet, error) { return sw.w.craft(ip) }

func (w *worker) craft(ip []byte) (*Packet, error) {
	p := w.pool.get()
	if err := w.parseHeaders(p, ip); err != nil {
		w.pool.put(p)
		return nil, fmt.Errorf("sim: craft a packet: %w", err)
	}
	return p, nil
}

// parseHeaders reads headers from the outermost inwards.
func (w *worker) parseHeaders(p *Packet, rest []byte) error {
	p.Size = max(minFrame, ethernetSize+int32(len(rest)))
	e := w.pool.extra(p)
	for first := true; ; first = false {
		key, h, id, size, err := readIP(rest)
		if err != nil {
			return err
		}
		if first {
			p.TTL, p.DSCP, p.ECN = h.ttl, h.dscp, h.ecn
		} else {
			e.inner = append(e.inner, h)
		}
		rest = rest[size:]
		if key.Proto == model.IPIP || key.Proto == model.IPv6 {
			e.Outer = append(e.Outer, key)
			continue
		}
		p.Key, p.IPID, p.Kind = key, id, KindOther
		break
	}
	// AppendFrame writes UDP headers. Other headers stay part of the content.
	if p.Key.Proto == model.UDP {
		if len(rest) < udpSize {
			return fmt.Errorf("%d bytes of UDP, want at least %d", len(rest), udpSize)
		}
		p.Kind = KindUDP
	}
	if (p.Key.Proto == model.UDP || p.Key.Proto == model.TCP) && len(rest) >= 4 {
		p.Key.SrcPort, p.Key.DstPort = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	}
	if p.Kind == KindUDP {
		rest = rest[udpSize:]
	}
	e.Content = append(e.Content, rest...)
	p.Payload = int32(len(rest))
	return nil
}

// readIP reads one header of a packet that ends with b.
func readIP(b []byte) (key model.FlowKey, h innerHeader, id uint16, size int, err error) {
	if len(b) > 0 && b[0]>>4 == 6 {
		var v packet.IPv6
		if size, err = v.Parse(b); err == nil && size+int(v.Length) != len(b) {
			err = fmt.Errorf("IPv6 packet of %d bytes that says %d, want the same", len(b), size+int(v.Length))
		}
		key = model.FlowKey{Src: v.Src, Dst: v.Dst, Proto: v.NextHeader, V6: true}
		return key, innerHeader{v.HopLimit, v.TrafficClass >> 2, v.TrafficClass & 3}, 0, size, err
	}
	var v packet.IPv4
	if size, err = v.Parse(b); err == nil && (int(v.Length) != len(b) || v.FragOff != 0 || len(v.Options) > 0) {
		err = fmt.Errorf("IPv4 packet of %d bytes that says %d, offset %d, %d bytes of options; want the same, and neither fragments nor options", len(b), v.Length, v.FragOff, len(v.Options))
	}
	key = model.FlowKey{Src: model.Addr4(v.Src), Dst: model.Addr4(v.Dst), Proto: v.Proto}
	return key, innerHeader{v.TTL, v.TOS >> 2, v.TOS & 3}, v.ID, size, err
}
