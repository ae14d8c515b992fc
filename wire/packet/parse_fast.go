package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// fastSize is where the last header that parseFast reads may end: a TCP header,
// or UDP and the base transport header of RoCEv2. Both have the same length,
// and every Ethernet frame is longer.
const fastSize = EthernetSize + IPv4Size + TCPSize

// parseFast parses the frames of nearly all traffic: TCP, UDP and RoCEv2 in
// IPv4 without VLAN tag, option, fragment, tunnel or truncation. It returns
// false for others, and then sets nothing. On a 100-byte TCP frame it takes
// about half of parseAny's time (BenchmarkParse): the headers have fixed
// offsets, so one length check covers all loads.
func (p *Packet) parseFast(b []byte) bool {
	be := binary.BigEndian
	if len(b) < fastSize {
		return false
	}
	f := (*[fastSize]byte)(b)
	length := int(be.Uint16(f[16:]))
	switch {
	case be.Uint32(f[12:])>>8 != TypeIPv4<<8|0x45, // IPv4, five words of header
		be.Uint16(f[20:])&(MoreFragments<<13|0x1fff) != 0,
		length < fastSize-EthernetSize, length > len(b)-EthernetSize:
		return false
	}
	proto := model.Proto(f[23])
	srcPort, dstPort := be.Uint16(f[34:]), be.Uint16(f[36:])
	payload := uint32(EthernetSize + IPv4Size + UDPSize)
	var seq, qp uint32
	var flags Flags
	var tcpFlags TCPFlags
	var opcode uint8
	switch proto {
	case model.TCP:
		size := int(f[46]>>4) * 4
		if size < TCPSize || size > length-IPv4Size {
			return false
		}
		payload = uint32(EthernetSize + IPv4Size + size)
		seq, tcpFlags = be.Uint32(f[38:]), TCPFlags(f[47])
	case model.UDP:
		switch dstPort {
		case VXLANPort:
			return false
		case roce.Port:
			flags, opcode = RoCE, f[42]
			qp, seq = be.Uint32(f[46:])&0xffffff, be.Uint32(f[50:])&0xffffff
			payload += roce.BTHSize
		}
	default:
		return false
	}

	// Every field is written once, without clearing the whole Packet first:
	// Inner is half of it, and only a tunnelled packet leaves data there.
	if p.Depth > 1 {
		p.Inner = IP{}
	}
	p.Dst, p.Src = model.MAC(f[0:6]), model.MAC(f[6:12])
	p.EtherType, p.Tags, p.VLAN, p.Encap, p.Depth = TypeIPv4, 0, VLAN{}, None, 1
	h := &p.Outer
	h.Key.Src, h.Key.Dst = model.Addr4(be.Uint32(f[26:])), model.Addr4(be.Uint32(f[30:]))
	h.Key.SrcPort, h.Key.DstPort, h.Key.Proto, h.Key.V6 = srcPort, dstPort, proto, false
	h.Length, h.ID, h.Seq, h.QP = uint32(length), uint32(be.Uint16(f[18:])), seq, qp
	h.Start, h.Transport, h.Payload = EthernetSize, EthernetSize+IPv4Size, payload
	h.TTL, h.TOS, h.TCPFlags, h.Type, h.Code, h.Flags = f[22], f[15], tcpFlags, opcode, 0, flags
	return true
}
