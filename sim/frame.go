package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/pfc"
	"github.com/weft-telemetry/weft/wire/roce"
)

// AppendFrame appends the bytes of a packet that leaves a port: real headers,
// correct checksums and invariant CRC, its labels, and a payload of zeros.
// Where a configuration sets header sizes (HPCC's), the frame still has real
// headers, and its length differs from Packet.Size.
func (n *Network) AppendFrame(b []byte, p *Packet, from *Port) []byte {
	src := model.MAC(n.fabric.Port(model.Port{Node: from.Node, Port: from.ID}).MAC)
	dst := model.MAC(n.fabric.Port(model.Port{Node: from.peer.Node, Port: from.peer.ID}).MAC)
	if p.Kind == KindPFC {
		q := pfc.MaxQuanta
		if d := p.pauseFor().Duration(); d < time.Second {
			q = pfc.QuantaOf(d, from.rate)
		}
		return pfc.Pause(src, p.Priority, q).AppendTo(b)
	}
	eth := packet.Ethernet{Dst: dst, Src: src, Type: packet.TypeIPv4}
	if p.Extra != nil && p.Extra.EtherType != 0 {
		eth.Type = p.Extra.EtherType
		return pad(append(eth.AppendTo(b), p.Extra.Content...), len(b))
	}
	if outermost := p.outermost(); outermost.V6 {
		eth.Type = packet.TypeIPv6
	}
	start := len(b)
	b = eth.AppendTo(b)
	tunnel := len(b)
	b = p.appendOuter(b)
	ip := len(b)
	b = appendIP(b, &p.Key, p.header(p.depth()), p.IPID)
	l4 := len(b)
	b = n.appendTransport(b, p)
	setLengths(b[ip:], l4-ip, p)
	switch {
	case p.Kind <= KindTrimmed:
		// The invariant CRC covers the finished packet.
		b, _ = roce.AppendICRC(b, b[ip:])
	case p.Kind == KindTCP:
		putSum(b[l4+16:], packet.TransportChecksum(p.Key.Src, p.Key.Dst, p.Key.V6, model.TCP, b[l4:]))
	}
	if p.Key.Proto == model.UDP && p.Key.V6 || p.Kind == KindUDP {
		putSum(b[l4+6:], packet.TransportChecksum(p.Key.Src, p.Key.Dst, p.Key.V6, model.UDP, b[l4:]))
	}
	p.finishOuter(b[tunnel:])
	b = pad(b, start)
	if p.Extra != nil && len(p.Extra.Labels) > 0 {
		b = insertLabels(b, tunnel, p.Extra.Labels, p.outermost())
	}
	return b
}

// insertLabels inserts the label block after the first IP header, as switches
// do: into a packet that was complete before.
func insertLabels(b []byte, ip int, block []byte, key *model.FlowKey) []byte {
	header := b[ip:]
	if key.V6 {
		header[6] = uint8(label.Proto)
		putSum(header[4:], binary.BigEndian.Uint16(header[4:])+uint16(len(block)))
	} else {
		header[9] = uint8(label.Proto)
		setLength(header, false, int(binary.BigEndian.Uint16(header[2:]))+len(block))
	}
	return slices.Insert(b, ip+int(ipSize(key)), block...)
}

// pad fills a frame to Ethernet's minimum length.
func pad(b []byte, start int) []byte {
	for len(b)-start < minFrame {
		b = append(b, 0)
	}
	return b
}

func putSum(b []byte, sum uint16) { b[0], b[1] = byte(sum>>8), byte(sum) }

// outermost returns the key of the first IP header.
func (p *Packet) outermost() *model.FlowKey {
	if p.tunnelled() {
		return &p.Extra.Outer[0]
	}
	return &p.Key
}

// depth returns the number of outer headers.
func (p *Packet) depth() int {
	if p.Extra == nil {
		return 0
	}
	return len(p.Extra.Outer)
}

// appendOuter appends the outer headers, without their lengths. They may not be
// fragmented, so they need no IPID.
func (p *Packet) appendOuter(b []byte) []byte {
	for i := range p.depth() {
		b = appendIP(b, &p.Extra.Outer[i], p.header(i), 0)
	}
	return b
}

// finishOuter completes the outer headers of a packet that is otherwise
// complete.
func (p *Packet) finishOuter(ip []byte) {
	for i := range p.depth() {
		key := &p.Extra.Outer[i]
		setLength(ip, key.V6, len(ip))
		ip = ip[ipSize(key):]
	}
}

func appendIP(b []byte, key *model.FlowKey, h innerHeader, id uint16) []byte {
	tos := h.dscp<<2 | h.ecn
	if key.V6 {
		return packet.IPv6{TrafficClass: tos, NextHeader: key.Proto, HopLimit: h.ttl, Src: key.Src, Dst: key.Dst}.AppendTo(b)
	}
	return packet.IPv4{
		TOS: tos, ID: id, Flags: packet.DontFragment, TTL: h.ttl, Proto: key.Proto,
		Src: key.Src.V4(), Dst: key.Dst.V4(),
	}.AppendTo(b)
}

// setLengths completes the IP and UDP headers of a packet that lacks only its
// invariant CRC.
func setLengths(ip []byte, header int, p *Packet) {
	total := len(ip)
	if p.Kind <= KindTrimmed {
		total += roce.ICRCSize
	}
	if p.Key.Proto == model.UDP {
		putSum(ip[header+4:], uint16(total-header))
	}
	setLength(ip, p.Key.V6, total)
}

// setLength completes an IP header.
func setLength(ip []byte, v6 bool, total int) {
	if v6 {
		putSum(ip[4:], uint16(total-packet.IPv6Size))
		return
	}
	putSum(ip[2:], uint16(total))
	var h packet.IPv4
	if _, err := h.Parse(ip); err == nil {
		putSum(ip[10:], h.Sum())
	}
}

func (n *Network) appendTransport(b []byte, p *Packet) []byte {
	if p.Kind == KindTCP {
		h := packet.TCP{SrcPort: p.Key.SrcPort, DstPort: p.Key.DstPort, Flags: uint16(p.TCPFlags), Window: 0xffff}
		h.Seq, h.Ack = p.TCPNumbers()
		return appendPayload(h.AppendTo(b), p)
	}
	if p.Key.Proto == model.UDP {
		b = packet.UDP{SrcPort: p.Key.SrcPort, DstPort: p.Key.DstPort}.AppendTo(b)
	}
	switch p.Kind {
	case KindData, KindAck, KindNack, KindCNP, KindTrimmed:
		r := n.rocePacket(p)
		return r.AppendTo(b)
	}
	return appendPayload(b, p)
}

func appendPayload(b []byte, p *Packet) []byte {
	if p.Extra != nil && len(p.Extra.Content) > 0 {
		return append(b, p.Extra.Content...)
	}
	return append(b, make([]byte, p.Payload)...)
}

// TCPNumbers returns the sequence and acknowledgement numbers of a TCP segment.
// A SYN takes number 0 in both directions, so payload starts at 1; the FIN's
// number follows the last byte.
func (p *Packet) TCPNumbers() (seq, ack uint32) {
	flags := packet.TCPFlags(p.TCPFlags)
	syn := flags&packet.SYN != 0
	switch {
	case p.direction == 0 && syn:
		return 0, 0
	case p.direction == 0 && p.Extra != nil:
		return uint32(p.Seq) + 1, p.Extra.TCPAcked + 1
	case p.direction == 0:
		return uint32(p.Seq) + 1, 1
	case syn:
		return 0, 1
	}
	ack = uint32(p.Seq) + 1
	if flags&packet.FIN != 0 {
		ack++
	}
	return 1, ack
}

// zeros is the content of payloads; nothing writes to it. A packet has at most
// maxMTU bytes of payload, and padding.
var zeros [maxMTU + 3]byte

// firstQP avoids the queue pairs that InfiniBand reserves.
const firstQP = 0x100

// rocePacket returns the base transport header and the headers of its opcode. A
// flow is one RDMA write; its packets are numbered from 0.
func (n *Network) rocePacket(p *Packet) roce.Packet {
	mtu := int64(n.cfg.MTU)
	r := roce.Packet{BTH: roce.BTH{
		MigReq: true, PKey: roce.DefaultPKey, DestQP: roce.QPN(p.flow+firstQP) & 0xffffff,
		PSN: roce.PSN(p.Seq/mtu) & 0xffffff,
	}}
	switch p.Kind {
	case KindAck, KindNack:
		r.BTH.Opcode = roce.Acknowledge
		r.AETH = roce.AETH{Syndrome: roce.Ack(31), MSN: uint32(p.Seq/mtu) & 0xffffff}
		if p.Kind == KindNack {
			r.AETH.Syndrome = roce.NakSequence
		}
	case KindCNP:
		r.BTH.Opcode, r.BTH.BECN = roce.CNP, true
		r.Payload = zeros[:16]
	default:
		var size int64 = 1 << 62
		if p.flow >= 0 {
			if f := n.flowOf(p); f != nil {
				size = f.size
			}
		}
		payload := p.Payload
		if p.Kind == KindTrimmed {
			payload = int32(min(mtu, size-p.Seq))
		}
		first, last := p.Seq == 0, p.Seq+int64(payload) >= size
		switch {
		case first && last:
			r.BTH.Opcode = roce.WriteOnly
		case first:
			r.BTH.Opcode = roce.WriteFirst
		case last:
			r.BTH.Opcode = roce.WriteLast
		default:
			r.BTH.Opcode = roce.WriteMiddle
		}
		if first {
			r.RETH = roce.RETH{VA: uint64(p.flow+1) << 32, RKey: uint32(p.flow + 1), Length: uint32(min(size, 1<<31))}
		}
		padding := -p.Payload & 3
		r.BTH.PadCount = uint8(padding)
		r.BTH.AckReq = last
		r.Payload = zeros[:p.Payload+padding]
	}
	return r
}
