package headers

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

func ipv4(proto model.Proto, src, dst uint32, payload []byte) []byte {
	h := packet.IPv4{Length: uint16(20 + len(payload)), TOS: 26<<2 | 3, ID: 77, TTL: 61, Proto: proto, Src: src, Dst: dst}
	return append(h.AppendTo(nil), payload...)
}

func ethernet(typ uint16, payload []byte) []byte {
	return append(packet.Ethernet{Dst: model.MAC{2}, Src: model.MAC{2, 0, 0, 0, 0, 9}, Type: typ}.AppendTo(nil), payload...)
}

func udp(dst uint16, payload []byte) []byte {
	return append(packet.UDP{SrcPort: 5000, DstPort: dst, Length: uint16(8 + len(payload))}.AppendTo(nil), payload...)
}

const ten = 10 << 24

var (
	tcpBytes = packet.TCP{SrcPort: 40000, DstPort: 80, Seq: 5, Flags: uint16(packet.SYN | packet.ACK)}.AppendTo(nil)
	plain    = ethernet(packet.TypeIPv4, ipv4(model.TCP, ten|1, ten|2, tcpBytes))
	wrapped  = ethernet(packet.TypeIPv4, ipv4(model.IPIP, ten|100, ten|101, ipv4(model.TCP, ten|1, ten|2, tcpBytes)))
	vxlan    = ethernet(packet.TypeIPv4, ipv4(model.UDP, ten|100, ten|101, udp(packet.VXLANPort, append(packet.VXLAN{Flags: 8, VNI: 5001}.AppendTo(nil), plain...))))
	rdma     = ethernet(packet.TypeIPv4, ipv4(model.UDP, ten|1, ten|2, udp(4791, append(roce.BTH{Opcode: 4, DestQP: 300, PSN: 9}.AppendTo(nil), make([]byte, 20)...))))
	tagged   = ethernet(packet.TypeVLAN, packet.VLAN{ID: 12, Type: 0x0806}.AppendTo(nil))
	v6       = ethernet(packet.TypeIPv6, append(packet.IPv6{
		Length: 8, TrafficClass: 10 << 2, NextHeader: model.ICMPv6, HopLimit: 60, Src: model.Addr{Hi: 0x2001_0db8 << 32, Lo: 1}, Dst: model.Addr{Hi: 0x2001_0db8 << 32, Lo: 2},
	}.AppendTo(nil), 128, 3, 0, 0, 0, 0, 0, 0))
)

func TestFields(t *testing.T) {
	s := Schema(nil)
	for name, tc := range map[string]struct {
		frame   []byte
		yes, no []string
	}{
		"plain": {
			plain,
			[]string{
				"ip", "tcp", "ip.src == 10.0.0.1", "outer.ip.src == 10.0.0.1", "ip.addr == 10.0.0.2", "ip.proto == tcp", "ip.proto == 6", "ip.ttl == 61", "ip.id == 77", "ip.len == 40",
				"ip.dsfield.dscp == 26", "ip.dsfield.ecn == 3", "tcp.srcport == 40000", "tcp.port == 80", "tcp.port == 40000", "tcp.flags.syn", "tcp.flags.ack", "!tcp.flags.fin", "tcp.flags == 0x12",
				"tcp.seq == 5", "eth.src == 02:00:00:00:00:09", "eth.dst == 02:00:00:00:00:00", "eth.type == 0x800", "frame.len == 1500", "tunnel.depth == 1",
			},
			[]string{"inner.ip", "inner.ip.src == 10.0.0.1", "udp", "ipv6", "icmp", "infiniband", "vlan.id", "vxlan.vni", "udp.port == 80", "ip.src != 10.0.0.1", "tcp.flags.reset"},
		},
		"wrapped": {
			wrapped,
			[]string{
				"ip.src == 10.0.0.1", "ip.src == 10.0.0.100", "ip.src == 10.0.0.100,10.0.0.1", "inner.tcp.dstport == 80", "tcp.dstport == 80", "outer.ip.proto == ipip", "inner.ip.proto == tcp",
				"tunnel.depth == 2", "!outer.tcp",
			},
			[]string{"ip.src == 10.0.0.1,10.0.0.100", "outer.ip.src == 10.0.0.1", "ip.src != 10.0.0.1", "outer.tcp.dstport"},
		},
		"vxlan": {vxlan, []string{"vxlan.vni == 5001", "inner.tcp.port in {80}", "outer.udp.dstport == 4789"}, []string{"inner.udp", "vxlan.vni == 5002"}},
		"rdma": {
			rdma,
			[]string{"infiniband", "infiniband.bth.opcode == 4", "infiniband.bth.psn == 9", "infiniband.bth.destqp == 300", "udp.dstport == 4791"},
			[]string{"inner.infiniband", "tcp"},
		},
		"tagged, not IP": {tagged, []string{"vlan.id == 12", "eth.type == 0x806"}, []string{"ip", "ip.addr", "tunnel.depth", "tcp.flags.syn", "ip.proto"}},
		"IPv6": {
			v6,
			[]string{"ipv6", "ipv6.src == 2001:db8::1", "ipv6.addr == 2001:db8::2", "ipv6.hlim == 60", "ipv6.tclass.dscp == 10", "ipv6.nxt == icmpv6", "icmpv6.type == 128", "icmpv6.code == 3"},
			[]string{"ip", "ip.ttl", "icmp", "ip.dsfield.dscp"},
		},
		"nothing":       {nil, []string{"frame.len == 1500"}, []string{"eth.src", "ip", "vlan.id"}},
		"cut in VXLAN":  {vxlan[:52], nil, []string{"vxlan.vni", "inner.ip"}},
		"cut in the IP": {plain[:20], []string{"eth.type == 0x800"}, []string{"ip"}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Frame
			f.Read(plain, 0) // must not leave stale fields
			f.Read(tc.frame, 1500)
			for i, text := range append(append([]string{}, tc.yes...), tc.no...) {
				one, err := s.Parse(text)
				if err != nil {
					t.Errorf("%v\n%v", err, text)
					continue
				}
				if got := one.Match(&f); got != (i < len(tc.yes)) {
					t.Errorf("%q: %v", text, got)
				}
			}
		})
	}
}

// TestEveryFieldAnswers asks each field for values until there are no more, of
// every frame, cut at every length.
func TestEveryFieldAnswers(t *testing.T) {
	s := Schema(nil)
	for _, frame := range [][]byte{plain, wrapped, vxlan, rdma, tagged, v6} {
		for n := range len(frame) + 1 {
			var f Frame
			f.Read(frame[:n], len(frame))
			for _, field := range s.Fields() {
				i := 0
				for ok := true; ok && i < 10; i++ {
					_, ok = field.Get(&f, i)
				}
				if i == 10 {
					t.Fatalf("%s has no end of values", field.Name)
				}
			}
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	one, err := Schema(nil).Parse("ip.src == 10.0.0.100,10.0.0.1 && tcp.port == 80 && !(vxlan.vni == 5) && eth.src == 02:00:00:00:00:09")
	if err != nil {
		t.Fatal(err)
	}
	f := &Frame{}
	if n := testing.AllocsPerRun(100, func() {
		f.Read(wrapped, len(wrapped))
		if !one.Match(f) {
			t.Error("no match")
		}
	}); n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}
