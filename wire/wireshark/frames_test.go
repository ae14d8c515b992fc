package wireshark

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

var (
	macA, macB = model.MAC{2, 0, 0, 1, 0, 3}, model.MAC{2, 0, 0, 2, 0, 4}
	key4       = must(model.ParseFlowKey("udp 10.0.0.2:49152 > 10.1.0.3:4791"))
	key6       = must(model.ParseFlowKey("tcp [fd00::2]:40000 > [fd00::3]:80"))
	hostA      = netip.MustParseAddr("10.0.0.2")
	hostB      = netip.MustParseAddr("10.1.0.3")
	hostA6     = netip.MustParseAddr("fd00::2")
	hostB6     = netip.MustParseAddr("fd00::3")
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ethernet(typ uint16, payload []byte) []byte {
	return append(packet.Ethernet{Dst: macB, Src: macA, Type: typ}.AppendTo(nil), payload...)
}

// ip wraps a payload into an IP packet of the addresses' family.
func ip(src, dst netip.Addr, proto model.Proto, payload []byte) []byte {
	if src.Is6() {
		h := packet.IPv6{TrafficClass: 0x68, Length: uint16(len(payload)), NextHeader: proto, HopLimit: 63, Src: model.AddrOf(src), Dst: model.AddrOf(dst)}
		return append(h.AppendTo(nil), payload...)
	}
	h := packet.IPv4{TOS: 0x68, Length: uint16(packet.IPv4Size + len(payload)), ID: 0x1234, TTL: 63, Proto: proto, Src: model.AddrOf(src).V4(), Dst: model.AddrOf(dst).V4()}
	h.Checksum = h.Sum()
	return append(h.AppendTo(nil), payload...)
}

// frame puts an IP packet into Ethernet.
func frame(pkt []byte) []byte {
	if pkt[0]>>4 == 6 {
		return ethernet(packet.TypeIPv6, pkt)
	}
	return ethernet(packet.TypeIPv4, pkt)
}

// udp makes a datagram with a correct checksum.
func udp(src, dst netip.Addr, srcPort, dstPort uint16, payload []byte) []byte {
	h := packet.UDP{SrcPort: srcPort, DstPort: dstPort, Length: uint16(packet.UDPSize + len(payload))}
	seg := append(h.AppendTo(nil), payload...)
	h.Checksum = packet.TransportChecksum(model.AddrOf(src), model.AddrOf(dst), src.Is6(), model.UDP, seg)
	return ip(src, dst, model.UDP, append(h.AppendTo(nil), payload...))
}

// tcp makes a SYN with a correct checksum.
func tcp(src, dst netip.Addr) []byte {
	h := packet.TCP{SrcPort: 40000, DstPort: 80, Seq: 7, Flags: uint16(packet.SYN), Window: 1000, Options: []byte{2, 4, 5, 0xb4}}
	h.Checksum = packet.TransportChecksum(model.AddrOf(src), model.AddrOf(dst), src.Is6(), model.TCP, h.AppendTo(nil))
	return ip(src, dst, model.TCP, h.AppendTo(nil))
}

// rdma makes a RoCEv2 packet with its invariant CRC, which does not cover the
// UDP checksum. That is zero in IPv4, as NICs send it; IPv6 does not
// permit that.
func rdma(src, dst netip.Addr, p roce.Packet) []byte {
	payload := append(p.AppendTo(nil), 0, 0, 0, 0)
	h := packet.UDP{SrcPort: 49152, DstPort: roce.Port, Length: uint16(packet.UDPSize + len(payload))}
	pkt := ip(src, dst, model.UDP, append(h.AppendTo(nil), payload...))
	pkt = pkt[:len(pkt)-roce.ICRCSize]
	pkt = must(roce.AppendICRC(pkt, pkt))
	if src.Is6() {
		seg := pkt[packet.IPv6Size:]
		sum := packet.TransportChecksum(model.AddrOf(src), model.AddrOf(dst), true, model.UDP, seg)
		seg[6], seg[7] = byte(sum>>8), byte(sum)
	}
	return pkt
}
