package packet

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/roce"
)

func ether(typ uint16) []byte {
	return Ethernet{Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1}, Type: typ}.AppendTo(nil)
}

// ip4 appends an IPv4 packet around a payload.
func ip4(b []byte, proto model.Proto, src, dst string, payload []byte) []byte {
	s, d := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	h := IPv4{
		TOS: 0x2a, ID: 77, TTL: 63, Proto: proto, Length: uint16(IPv4Size + len(payload)),
		Src: model.AddrOf(s).V4(), Dst: model.AddrOf(d).V4(),
	}
	h.Checksum = h.Sum()
	return append(h.AppendTo(b), payload...)
}

func ip6(b []byte, next model.Proto, src, dst string, payload []byte) []byte {
	return append(IPv6{
		TrafficClass: 0x2a, NextHeader: next, HopLimit: 63, Length: uint16(len(payload)),
		Src: model.AddrOf(netip.MustParseAddr(src)), Dst: model.AddrOf(netip.MustParseAddr(dst)),
	}.AppendTo(b), payload...)
}

func udp(src, dst uint16, payload []byte) []byte {
	return append(UDP{SrcPort: src, DstPort: dst, Length: uint16(UDPSize + len(payload))}.AppendTo(nil), payload...)
}

func tcp(src, dst uint16, flags TCPFlags) []byte {
	return TCP{SrcPort: src, DstPort: dst, Seq: 9, Flags: uint16(flags)}.AppendTo(nil)
}

func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func TestParse(t *testing.T) {
	syn := tcp(40000, 80, SYN)
	bth := roce.BTH{Opcode: roce.WriteOnly, DestQP: 0xabcdef, PSN: 0x123456}.AppendTo(nil)
	rdma := udp(49152, roce.Port, append(bth, make([]byte, 24)...))
	inner4 := ip4(nil, model.TCP, "10.0.0.9", "10.0.9.9", syn)
	ext := func(next byte, words byte) []byte {
		return append([]byte{next, words}, make([]byte, int(words)*8+6)...)
	}
	for name, tc := range map[string]struct {
		in   []byte
		want string // what brief prints
	}{
		"TCP in IPv4":       {ip4(ether(TypeIPv4), model.TCP, "10.0.0.2", "10.0.1.2", syn), "tcp 10.0.0.2:40000 > 10.0.1.2:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=54"},
		"TCP in IPv6":       {ip6(ether(TypeIPv6), model.TCP, "fd00::2", "fd00::3", syn), "tcp [fd00::2]:40000 > [fd00::3]:80 id=0 ttl=63 dscp=10 ecn=2 syn seq=9 payload=74"},
		"RoCEv2":            {ip4(ether(TypeIPv4), model.UDP, "10.0.0.2", "10.0.1.2", rdma), "udp 10.0.0.2:49152 > 10.0.1.2:4791 id=77 ttl=63 dscp=10 ecn=2 roce op=0xa qp=0xabcdef psn=0x123456 payload=54"},
		"RoCEv2 in IPv6":    {ip6(ether(TypeIPv6), model.UDP, "fd00::2", "fd00::3", rdma), "udp [fd00::2]:49152 > [fd00::3]:4791 id=0 ttl=63 dscp=10 ecn=2 roce op=0xa qp=0xabcdef psn=0x123456 payload=74"},
		"ICMP":              {ip4(ether(TypeIPv4), model.ICMP, "10.0.0.2", "10.0.1.2", []byte{3, 4, 0, 0, 0, 0, 0, 0}), "icmp 10.0.0.2:0 > 10.0.1.2:0 id=77 ttl=63 dscp=10 ecn=2 type=3 code=4 payload=42"},
		"VLAN twice":        {join(ether(TypeQinQ), unhex("a00a 8100 0014 0800"), ip4(nil, model.TCP, "10.0.0.2", "10.0.1.2", syn)), "tags=2 vlan=10/5 tcp 10.0.0.2:40000 > 10.0.1.2:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=62"},
		"not IP":            {append(ether(TypeMACControl), make([]byte, 46)...), "ethertype=0x8808"},
		"LLC":               {append(ether(38), make([]byte, 46)...), "ethertype=0x26"},
		"Ethernet padding":  {append(ip4(ether(TypeIPv4), model.UDP, "10.0.0.2", "10.0.1.2", udp(1, 2, nil)), make([]byte, 18)...), "udp 10.0.0.2:1 > 10.0.1.2:2 id=77 ttl=63 dscp=10 ecn=2 payload=42"},
		"IP in IP":          {ip4(ether(TypeIPv4), model.IPIP, "10.0.0.1", "10.0.0.5", inner4), "ipip 10.0.0.1:0 > 10.0.0.5:0 id=77 ttl=63 dscp=10 ecn=2 payload=34 | encap=1 depth=2 tcp 10.0.0.9:40000 > 10.0.9.9:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=74"},
		"IPv4 in IPv6":      {ip6(ether(TypeIPv6), model.IPIP, "fd00::1", "fd00::5", inner4), "ipip [fd00::1]:0 > [fd00::5]:0 id=0 ttl=63 dscp=10 ecn=2 payload=54 | encap=1 depth=2 tcp 10.0.0.9:40000 > 10.0.9.9:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=94"},
		"IPv6 in IPv4":      {ip4(ether(TypeIPv4), model.IPv6, "10.0.0.1", "10.0.0.5", ip6(nil, model.TCP, "fd00::2", "fd00::3", syn)), "ipv6 10.0.0.1:0 > 10.0.0.5:0 id=77 ttl=63 dscp=10 ecn=2 payload=34 | encap=1 depth=2 tcp [fd00::2]:40000 > [fd00::3]:80 id=0 ttl=63 dscp=10 ecn=2 syn seq=9 payload=94"},
		"GRE":               {ip4(ether(TypeIPv4), model.GRE, "10.0.0.1", "10.0.0.5", join(unhex("2000 0800 00000007"), inner4)), "gre 10.0.0.1:0 > 10.0.0.5:0 id=77 ttl=63 dscp=10 ecn=2 payload=34 | encap=2 depth=2 tcp 10.0.0.9:40000 > 10.0.9.9:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=82"},
		"GRE bridging":      {ip4(ether(TypeIPv4), model.GRE, "10.0.0.1", "10.0.0.5", join(unhex("0000 6558"), ether(TypeVLAN), unhex("0001 0800"), inner4)), "gre 10.0.0.1:0 > 10.0.0.5:0 id=77 ttl=63 dscp=10 ecn=2 payload=34 | encap=2 depth=2 tcp 10.0.0.9:40000 > 10.0.9.9:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=96"},
		"a mirror":          {ip4(ether(TypeIPv4), model.GRE, "10.0.0.1", "10.0.0.5", join(unhex("0000 88be"), ether(TypeIPv4), inner4)), "gre 10.0.0.1:0 > 10.0.0.5:0 id=77 ttl=63 dscp=10 ecn=2 payload=34 | encap=4 depth=1"},
		"VXLAN":             {ip4(ether(TypeIPv4), model.UDP, "10.0.0.1", "10.0.0.5", udp(5, VXLANPort, join(unhex("08000000 00000700"), ether(TypeIPv4), inner4))), "udp 10.0.0.1:5 > 10.0.0.5:4789 id=77 ttl=63 dscp=10 ecn=2 payload=42 | encap=3 depth=2 tcp 10.0.0.9:40000 > 10.0.9.9:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=104"},
		"VXLAN of ARP":      {ip4(ether(TypeIPv4), model.UDP, "10.0.0.1", "10.0.0.5", udp(5, VXLANPort, join(unhex("08000000 00000700"), ether(TypeARP), make([]byte, 28)))), "udp 10.0.0.1:5 > 10.0.0.5:4789 id=77 ttl=63 dscp=10 ecn=2 payload=42"},
		"inner nonsense":    {ip4(ether(TypeIPv4), model.IPIP, "10.0.0.1", "10.0.0.5", make([]byte, 40)), "ipip 10.0.0.1:0 > 10.0.0.5:0 id=77 ttl=63 dscp=10 ecn=2 malformed payload=34"},
		"extension headers": {ip6(ether(TypeIPv6), 0, "fd00::2", "fd00::3", join(ext(60, 1), ext(43, 0), ext(6, 2), syn)), "tcp [fd00::2]:40000 > [fd00::3]:80 id=0 ttl=63 dscp=10 ecn=2 syn seq=9 payload=122"},
		"authentication":    {ip6(ether(TypeIPv6), 51, "fd00::2", "fd00::3", join([]byte{6, 4}, make([]byte, 22), syn)), "tcp [fd00::2]:40000 > [fd00::3]:80 id=0 ttl=63 dscp=10 ecn=2 syn seq=9 payload=98"},
		"too many of them":  {ip6(ether(TypeIPv6), 60, "fd00::2", "fd00::3", join(ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(6, 0), syn)), "60 [fd00::2]:0 > [fd00::3]:0 id=0 ttl=63 dscp=10 ecn=2 no-ports too-deep payload=118"},
		"IPv6 fragments":    {ip6(ether(TypeIPv6), 44, "fd00::2", "fd00::3", join(unhex("1100 0008 00000063"), make([]byte, 8))), "udp [fd00::2]:0 > [fd00::3]:0 id=99 ttl=63 dscp=10 ecn=2 fragment no-ports payload=62"},
		"atomic fragment":   {ip6(ether(TypeIPv6), 44, "fd00::2", "fd00::3", join(unhex("1100 0000 00000063"), udp(1, 2, nil))), "udp [fd00::2]:1 > [fd00::3]:2 id=99 ttl=63 dscp=10 ecn=2 payload=70"},
		"no next header":    {ip6(ether(TypeIPv6), 59, "fd00::2", "fd00::3", nil), "59 [fd00::2]:0 > [fd00::3]:0 id=0 ttl=63 dscp=10 ecn=2 payload=54"},
		"TSO capture": {func() []byte {
			b := ip4(ether(TypeIPv4), model.TCP, "10.0.0.2", "10.0.1.2", syn)
			b[16], b[17] = 0, 0
			return b
		}(), "tcp 10.0.0.2:40000 > 10.0.1.2:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 payload=54"},
		"tiny TCP header": {func() []byte {
			b := ip4(ether(TypeIPv4), model.TCP, "10.0.0.2", "10.0.1.2", syn)
			b[46] = 0x40
			return b
		}(), "tcp 10.0.0.2:40000 > 10.0.1.2:80 id=77 ttl=63 dscp=10 ecn=2 syn seq=9 malformed payload=54"},
		"other experiment": {ip4(ether(TypeIPv4), label.Proto, "10.0.0.2", "10.0.1.2", make([]byte, 8)), "253 10.0.0.2:0 > 10.0.1.2:0 id=77 ttl=63 dscp=10 ecn=2 payload=34"},
	} {
		t.Run(name, func(t *testing.T) {
			p := dirty()
			if err := p.Parse(tc.in); err != nil {
				t.Fatalf("Parse(%x) = %v; want nil", tc.in, err)
			}
			if got := brief(&p); got != tc.want {
				t.Errorf("Parse(%x)\n got %s\nwant %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestParseFragments(t *testing.T) {
	whole := ip4(ether(TypeIPv4), model.UDP, "10.0.0.2", "10.0.1.2", udp(7, 8, make([]byte, 40)))
	for name, tc := range map[string]struct {
		word  uint16
		ports bool
		flags Flags
	}{
		"whole, DF set": {0x4000, true, 0},
		"first":         {0x2000, true, Fragment},
		"middle":        {0x2003, false, Fragment | NoPorts},
		"last":          {0x0003, false, Fragment | NoPorts},
	} {
		t.Run(name, func(t *testing.T) {
			b := append([]byte{}, whole...)
			b[20], b[21] = byte(tc.word>>8), byte(tc.word)
			var p Packet
			if err := p.Parse(b); err != nil {
				t.Fatal(err)
			}
			if p.Outer.Flags != tc.flags || (p.Outer.Key.DstPort == 8) != tc.ports || p.Outer.ID != 77 {
				t.Errorf("Parse = %v; want ports %v, flags %#x", brief(&p), tc.ports, tc.flags)
			}
		})
	}
}

// TestParseTruncated cuts a tunnelled packet at every length: what is still
// there is parsed, what is missing is not invented, and a cut is not called a
// fault.
func TestParseTruncated(t *testing.T) {
	inner := ip4(nil, model.TCP, "10.0.0.9", "10.0.9.9", tcp(40000, 80, SYN))
	frame := ip4(ether(TypeIPv4), model.UDP, "10.0.0.1", "10.0.0.5", udp(5, VXLANPort, join(unhex("08000000 00000700"), ether(TypeIPv4), inner)))
	var whole Packet
	if err := whole.Parse(frame); err != nil {
		t.Fatal(err)
	}
	for n := range frame {
		p := dirty()
		err := p.Parse(frame[:n])
		switch {
		case n < EthernetSize+IPv4Size:
			if err != ErrShort {
				t.Errorf("Parse of %d bytes = %v; want ErrShort", n, err)
			}
			continue
		case err != nil:
			t.Errorf("Parse of %d bytes = %v; want nil", n, err)
			continue
		}
		if !p.Outer.Flags.Has(Truncated) || p.Outer.Flags.Has(Malformed) || p.Inner.Flags.Has(Malformed) {
			t.Errorf("Parse of %d bytes: flags %#x and %#x; want truncated, not malformed", n, p.Outer.Flags, p.Inner.Flags)
		}
		if ports := n >= 38; p.Outer.Flags.Has(NoPorts) == ports || (p.Outer.Key == whole.Outer.Key) != ports {
			t.Errorf("Parse of %d bytes: %v; want ports: %v", n, brief(&p), ports)
		}
		if found := n >= len(frame)-TCPSize; (p.Depth == 2) != found {
			t.Errorf("Parse of %d bytes: depth %d; want the inner header: %v", n, p.Depth, found)
		}
		if full := n >= len(frame)-TCPSize+4; (p.Inner.Key == whole.Inner.Key) != full {
			t.Errorf("Parse of %d bytes: inner key %v; want it whole: %v", n, p.Inner.Key, full)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":          {nil, ErrShort},
		"short VLAN":     {append(ether(TypeVLAN), 0, 1), ErrShort},
		"five VLAN tags": {join(ether(TypeVLAN), unhex("00018100 00018100 00018100 00018100 00010800")), ErrHeader},
		"version 5":      {append(ether(TypeIPv4), make([]byte, 40)...), ErrHeader},
		"length below the header": {func() []byte {
			b := ip4(ether(TypeIPv4), model.TCP, "1.1.1.1", "2.2.2.2", tcp(1, 2, 0))
			b[17] = 19
			return b
		}(), ErrHeader},
		"options cut off":         {append(ether(TypeIPv4), unhex("4f00005000000000400600000a0000010a000002")...), ErrShort},
		"IPv6 claimed, IPv4 sent": {ip4(ether(TypeIPv6), model.TCP, "1.1.1.1", "2.2.2.2", make([]byte, 40)), ErrHeader},
	} {
		t.Run(name, func(t *testing.T) {
			p := dirty()
			if err := p.Parse(tc.in); err != tc.want || !p.Outer.Key.IsZero() || p.Depth != 0 {
				t.Errorf("Parse(%x) = %v, %v; want %v and no key", tc.in, p.Outer.Key, err, tc.want)
			}
		})
	}
}

// TestParseNestedProbe holds that a probe through seven switches is followed
// to its end, and that one header more is reported, not followed.
func TestParseNestedProbe(t *testing.T) {
	pkt := ip4(nil, model.TCP, "10.0.0.9", "10.0.9.9", tcp(40000, 80, SYN))
	for depth := 2; depth <= MaxDepth+1; depth++ {
		pkt = ip4(nil, model.IPIP, "10.0.0.1", "10.255.0.1", pkt)
		var p Packet
		if err := p.ParseIP(pkt); err != nil {
			t.Fatal(err)
		}
		followed := p.Innermost().Key.Proto == model.TCP
		if want := depth <= MaxDepth; followed != want || int(p.Depth) != min(depth, MaxDepth) || p.Inner.Flags.Has(TooDeep) == want {
			t.Errorf("ParseIP of %d headers: depth %d, innermost %v, flags %#x; want followed: %v", depth, p.Depth, p.Innermost().Key, p.Innermost().Flags, want)
		}
	}
}

// TestParseReadsThroughLabels holds that a label changes nothing a switch
// hashes or counts by.
func TestParseReadsThroughLabels(t *testing.T) {
	for name, pkt := range map[string][]byte{
		"IPv4 TCP": ip4(nil, model.TCP, "10.0.0.2", "10.0.1.2", tcp(40000, 80, SYN)),
		"IPv4 fragment": func() []byte {
			b := ip4(nil, model.UDP, "10.0.0.2", "10.0.1.2", make([]byte, 16))
			b[7] = 3
			b[10], b[11] = 0, 0
			fix4(b)
			return b
		}(),
		"IPv6 RoCEv2":    ip6(nil, model.UDP, "fd00::2", "fd00::3", udp(49152, roce.Port, make([]byte, 40))),
		"IPv6 extension": ip6(nil, 60, "fd00::2", "fd00::3", join([]byte{6, 0, 0, 0, 0, 0, 0, 0}, tcp(1, 2, ACK))),
	} {
		t.Run(name, func(t *testing.T) {
			var plain, labelled Packet
			if err := plain.ParseIP(pkt); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, len(pkt), len(pkt)+200)
			copy(buf, pkt)
			for range 3 {
				var err error
				if buf, err = label.Push(buf, &label.Item{Switch: 1}, label.Params{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := labelled.ParseIP(buf); err != nil {
				t.Fatal(err)
			}
			if !labelled.Outer.Flags.Has(Labelled) || labelled.Outer.Key != plain.Outer.Key || labelled.Outer.Seq != plain.Outer.Seq {
				t.Errorf("labelled: %s\nplain: %s", brief(&labelled), brief(&plain))
			}
			if got, want := labelled.Outer.Payload-plain.Outer.Payload, uint32(len(buf)-len(pkt)); got != want {
				t.Errorf("payload moved by %d bytes; want %d", got, want)
			}
		})
	}
}

func fix4(b []byte) {
	var h IPv4
	h.Parse(b)
	h.Checksum = h.Sum()
	copy(b, h.AppendTo(nil))
}

func TestParseAllocs(t *testing.T) {
	frames := [][]byte{
		tcpFrame(),
		ip6(ether(TypeIPv6), model.UDP, "fd00::2", "fd00::3", udp(49152, roce.Port, make([]byte, 40))),
		ip4(ether(TypeIPv4), model.IPIP, "10.0.0.1", "10.0.0.5", ip4(nil, model.TCP, "10.0.0.9", "10.0.9.9", tcp(1, 2, 0))),
		{1, 2, 3},
	}
	var p Packet
	if n := testing.AllocsPerRun(100, func() {
		for _, f := range frames {
			_ = p.Parse(f)
		}
	}); n != 0 {
		t.Errorf("Parse allocates %v times; want 0", n)
	}
}

// TestParseEqualsGopacket builds random ordinary packets with gopacket's
// encoder and compares what both find in them.
func TestParseEqualsGopacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, want := gopacketFrame(t)
		got := dirty()
		if err := got.Parse(frame); err != nil {
			t.Fatalf("Parse(%x) = %v; want nil", frame, err)
		}
		if got.Innermost().Key != want {
			t.Fatalf("Parse(%x) = %s; want innermost %v", frame, brief(&got), want)
		}
		var slow Packet
		_ = slow.parseAny(frame)
		if diff := cmp.Diff(slow, got); diff != "" {
			t.Fatalf("the ordinary path and parseAny differ on %x:\n%s", frame, diff)
		}
	})
}

// gopacketFrame draws a frame and returns the key of its innermost flow.
func gopacketFrame(t *rapid.T) ([]byte, model.FlowKey) {
	addr := func(name string, n int) net.IP {
		return net.IP(rapid.SliceOfN(rapid.ByteRange(1, 254), n, n).Draw(t, name))
	}
	v6 := rapid.Bool().Draw(t, "v6")
	isTCP := rapid.Bool().Draw(t, "tcp")
	sport, dport := rapid.Uint16().Draw(t, "sport"), rapid.Uint16Range(1, 4000).Draw(t, "dport")
	var ls []gopacket.SerializableLayer
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	ls = append(ls, eth)
	next := layers.EthernetTypeIPv4
	if rapid.Bool().Draw(t, "tagged") {
		eth.EthernetType = layers.EthernetTypeDot1Q
		ls = append(ls, &layers.Dot1Q{VLANIdentifier: 7})
	}
	tunnel := rapid.SampledFrom([]string{"none", "ipip", "gre", "vxlan"}).Draw(t, "tunnel")
	inner := layers.EthernetTypeIPv4
	if v6 {
		inner = layers.EthernetTypeIPv6
	}
	if tunnel != "none" {
		outer := &layers.IPv4{Version: 4, TTL: 9, SrcIP: addr("osrc", 4), DstIP: addr("odst", 4)}
		ls = append(ls, outer)
		switch tunnel {
		case "ipip":
			outer.Protocol = layers.IPProtocolIPv4
			if v6 {
				outer.Protocol = layers.IPProtocolIPv6
			}
		case "gre":
			outer.Protocol = layers.IPProtocolGRE
			ls = append(ls, &layers.GRE{Protocol: inner, KeyPresent: rapid.Bool().Draw(t, "key"), Key: 3})
		case "vxlan":
			outer.Protocol = layers.IPProtocolUDP
			u := &layers.UDP{SrcPort: 9, DstPort: VXLANPort}
			_ = u.SetNetworkLayerForChecksum(outer)
			ls = append(ls, u, &layers.VXLAN{ValidIDFlag: true, VNI: 4}, &layers.Ethernet{SrcMAC: eth.SrcMAC, DstMAC: eth.DstMAC, EthernetType: inner})
		}
	} else {
		next = inner
	}
	if len(ls) > 1 && ls[1].LayerType() == layers.LayerTypeDot1Q {
		ls[1].(*layers.Dot1Q).Type = next
	} else {
		eth.EthernetType = next
	}
	var network gopacket.NetworkLayer
	proto := layers.IPProtocolUDP
	if isTCP {
		proto = layers.IPProtocolTCP
	}
	var src, dst net.IP
	if v6 {
		src, dst = addr("src", 16), addr("dst", 16)
		ip := &layers.IPv6{Version: 6, HopLimit: 5, SrcIP: src, DstIP: dst, NextHeader: proto}
		network, ls = ip, append(ls, ip)
	} else {
		src, dst = addr("src", 4), addr("dst", 4)
		ip := &layers.IPv4{Version: 4, TTL: 5, SrcIP: src, DstIP: dst, Protocol: proto}
		if rapid.Bool().Draw(t, "options") {
			ip.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 1}}
		}
		network, ls = ip, append(ls, ip)
	}
	if isTCP {
		seg := &layers.TCP{SrcPort: layers.TCPPort(sport), DstPort: layers.TCPPort(dport), SYN: true}
		_ = seg.SetNetworkLayerForChecksum(network)
		ls = append(ls, seg)
	} else {
		seg := &layers.UDP{SrcPort: layers.UDPPort(sport), DstPort: layers.UDPPort(dport)}
		_ = seg.SetNetworkLayerForChecksum(network)
		ls = append(ls, seg)
	}
	ls = append(ls, gopacket.Payload(rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "payload")))
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		t.Fatal(err)
	}
	s, _ := netip.AddrFromSlice(src)
	d, _ := netip.AddrFromSlice(dst)
	return buf.Bytes(), model.NewFlowKey(netip.AddrPortFrom(s, sport), netip.AddrPortFrom(d, dport), model.Proto(proto))
}
