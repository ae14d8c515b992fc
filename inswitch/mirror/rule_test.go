package mirror

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
)

// suits is the slow reference of ruleTable: it matches one rule with one packet, key by
// key as SONiC's documentation names them.
func suits(r *Rule, ev *inswitch.Event) bool {
	pkt := ev.Packet
	key, flags, kind, code := *pkt.Key, pkt.TCPFlags, pkt.ICMPType, pkt.ICMPCode
	if r.Outer && pkt.Outer != pkt.Key {
		key, flags, kind, code = *pkt.Outer, 0, 0, 0
	}
	icmp := key.Proto == model.ICMP || key.Proto == model.ICMPv6
	within := func(p netip.Prefix, a model.Addr) bool {
		return !p.IsValid() || p.Addr().Is6() == key.V6 && (key.V6 || a.Is4()) && p.Contains(addrOf(a, key.V6))
	}
	between := func(x PortRange, v uint16) bool { return x == PortRange{} || x.Lo <= v && v <= x.Hi }
	inPort := len(r.InPorts) == 0
	for _, p := range r.InPorts {
		inPort = inPort || p == ev.In
	}
	return inPort &&
		(r.EtherType == 0 || r.EtherType == pkt.EtherType) &&
		(r.Proto == 0 || r.Proto == key.Proto) &&
		within(r.Src, key.Src) && within(r.Dst, key.Dst) &&
		between(r.SrcPorts, key.SrcPort) && between(r.DstPorts, key.DstPort) &&
		(r.VLAN == 0 || r.VLAN == pkt.VLAN) &&
		(!r.ICMPType.Set && !r.ICMPCode.Set || icmp && (!r.ICMPType.Set || kind == r.ICMPType.Value) && (!r.ICMPCode.Set || code == r.ICMPCode.Value)) &&
		(r.TCPMask == 0 || key.Proto == model.TCP && flags&r.TCPMask == r.TCPFlags) &&
		pkt.DSCP&r.DSCPMask == r.DSCP
}

func addrOf(a model.Addr, v6 bool) netip.Addr {
	if v6 {
		return netip.AddrFrom16(a.Netip().As16())
	}
	return a.Netip()
}

// Values are drawn from few, so that rules and packets meet, and from the ends
// of their ranges.
var (
	v4s    = []string{"0.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.1.0", "10.1.0.1", "127.255.255.255", "255.255.255.255"}
	v6s    = []string{"::", "fd00::1", "fd00::2", "fd00:0:0:1::", "::ffff:10.0.0.1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
	ports  = []uint16{0, 1, 179, 4791, 65534, 65535}
	protos = []model.Proto{0, model.TCP, model.UDP, model.IPIP, model.ICMP, model.ICMPv6, 255}
)

func drawAddr(t *rapid.T, v6 bool) netip.Addr {
	if v6 {
		return netip.MustParseAddr(rapid.SampledFrom(v6s).Draw(t, "v6"))
	}
	return netip.MustParseAddr(rapid.SampledFrom(v4s).Draw(t, "v4"))
}

func drawKey(t *rapid.T) (k model.FlowKey) {
	if rapid.IntRange(0, 9).Draw(t, "no IP") == 0 {
		return k
	}
	k.V6 = rapid.Bool().Draw(t, "is v6")
	k.Src, k.Dst = model.AddrOf(drawAddr(t, k.V6)), model.AddrOf(drawAddr(t, k.V6))
	k.SrcPort, k.DstPort = rapid.SampledFrom(ports).Draw(t, "port"), rapid.SampledFrom(ports).Draw(t, "port")
	k.Proto = rapid.SampledFrom(protos).Draw(t, "proto")
	return k
}

func drawRule(t *rapid.T) (r Rule) {
	r.Priority = rapid.IntRange(-1, 2).Draw(t, "priority")
	r.Outer = rapid.Bool().Draw(t, "outer")
	v6 := rapid.Bool().Draw(t, "rule v6")
	prefix := func() (p netip.Prefix) {
		if a := drawAddr(t, v6); rapid.Bool().Draw(t, "has prefix") {
			p, _ = a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
		}
		return p
	}
	span := func() (x PortRange) {
		if rapid.Bool().Draw(t, "has ports") {
			x.Lo, x.Hi = rapid.SampledFrom(ports).Draw(t, "lo"), rapid.SampledFrom(ports).Draw(t, "hi")
		}
		return PortRange{min(x.Lo, x.Hi), max(x.Lo, x.Hi)}
	}
	r.Src, r.Dst, r.SrcPorts, r.DstPorts = prefix(), prefix(), span(), span()
	r.EtherType = rapid.SampledFrom([]uint16{0, 0, 0x0800, 0x86dd, 0xffff}).Draw(t, "type")
	r.Proto = rapid.SampledFrom(protos).Draw(t, "rule proto")
	r.TCPMask = rapid.SampledFrom([]uint8{0, 0, 2, 0x12, 255}).Draw(t, "mask")
	r.TCPFlags = r.TCPMask & rapid.SampledFrom([]uint8{0, 2, 0x12}).Draw(t, "flags")
	if octet := (OptionalByte{rapid.SampledFrom([]uint8{0, 3, 255}).Draw(t, "type"), true}); r.TCPMask == 0 && (r.Proto == 0 || r.Proto == model.ICMP || r.Proto == model.ICMPv6) {
		switch rapid.IntRange(0, 5).Draw(t, "icmp") {
		case 0:
			r.ICMPType = octet
		case 1:
			r.ICMPCode = octet
		case 2:
			r.ICMPType, r.ICMPCode = octet, OptionalByte{1, true}
		}
	}
	r.VLAN = rapid.SampledFrom([]uint16{0, 0, 1, 4094}).Draw(t, "vlan")
	r.DSCPMask = rapid.SampledFrom([]uint8{0, 0, 1, 63}).Draw(t, "dscp mask")
	r.DSCP = r.DSCPMask & rapid.SampledFrom([]uint8{0, 1, 26}).Draw(t, "dscp")
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "in ports") {
		r.InPorts = append(r.InPorts, model.PortID(rapid.IntRange(1, 3).Draw(t, "in")))
	}
	return r
}

func TestTableDecidesAsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := make([]Rule, rapid.IntRange(0, MaxRules).Draw(t, "rules"))
		for i := range rules {
			rules[i] = drawRule(t)
			rules[i].Name = string(rune('A' + i))
		}
		table, err := newRuleTable(rules, 3)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			key := drawKey(t)
			pkt := inswitch.Packet{
				Key: &key, Outer: &key, DSCP: rapid.SampledFrom([]uint8{0, 1, 26, 63}).Draw(t, "packet's DSCP"),
				TCPFlags:  rapid.SampledFrom([]uint8{0, 2, 0x10, 0x12, 255}).Draw(t, "packet's flags"),
				EtherType: rapid.SampledFrom([]uint16{0x0800, 0x86dd, 0x8808, 0xffff}).Draw(t, "packet's type"),
				VLAN:      rapid.SampledFrom([]uint16{0, 1, 2, 4094}).Draw(t, "packet's VLAN"),
				ICMPType:  rapid.SampledFrom([]uint8{0, 3, 8, 255}).Draw(t, "packet's ICMP type"),
				ICMPCode:  rapid.SampledFrom([]uint8{0, 1, 255}).Draw(t, "packet's ICMP code"),
			}
			if rapid.Bool().Draw(t, "in a tunnel") {
				outer := drawKey(t)
				outer.Proto = model.IPIP
				pkt.Outer = &outer
			}
			ev := inswitch.Event{In: model.PortID(rapid.IntRange(0, 5).Draw(t, "in port")), Packet: &pkt}
			want := (*Rule)(nil)
			for i := range rules {
				if suits(&rules[i], &ev) && (want == nil || rules[i].Priority > want.Priority) {
					want = &rules[i]
				}
			}
			got := table.match(&ev)
			if (got == nil) != (want == nil) || got != nil && got.Name != want.Name {
				t.Fatalf("packet %v in %v, type %#x, flags %#x, DSCP %d, port %d meets %+v; want %+v", key, *pkt.Outer, pkt.EtherType, pkt.TCPFlags, pkt.DSCP, ev.In, got, want)
			}
		}
	})
}

func TestRulesThatCannotMatch(t *testing.T) {
	for name, r := range map[string]Rule{
		"ports that descend":  {SrcPorts: PortRange{2, 1}},
		"two families":        {Src: netip.MustParsePrefix("10.0.0.0/8"), Dst: netip.MustParsePrefix("fd00::/8")},
		"flags outside":       {TCPFlags: 3, TCPMask: 2},
		"DSCP too wide":       {DSCPMask: 64},
		"an invalid VLAN":     {VLAN: 4095},
		"ICMP and TCP":        {ICMPType: OptionalByte{8, true}, Proto: model.TCP},
		"ICMP and TCP flags":  {ICMPCode: OptionalByte{0, true}, TCPMask: 2, TCPFlags: 2},
		"a port not there":    {InPorts: []model.PortID{4}},
		"skips one in so few": {Skip: true, OneIn: 2},
	} {
		if _, err := newRuleTable([]Rule{r}, 3); err == nil {
			t.Errorf("%s: %+v was taken", name, r)
		}
	}
	if _, err := newRuleTable(make([]Rule, MaxRules+1), 3); err == nil {
		t.Errorf("%d rules were taken; want at most %d", MaxRules+1, MaxRules)
	}
}
