package scenario

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	rules "github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestMirrorsOfAPacketMeet runs a sample over RDMA, TCP and labels: each packet
// that one switch on its path selected was selected by all, and its mirrors
// arrive on one list.
func TestMirrorsOfAPacketMeet(t *testing.T) {
	s := mustParse(t, `duration: 1ms
topology:
  generate: {kind: fat-tree, k: 4}
traffic:
  - {kind: persistent, pairs: [h0>h15, h1>h14], rate: 2Gb/s}
  - {kind: persistent, pairs: [h2>h13], rate: 2Gb/s, transport: tcp}
telemetry:
  - {kind: epoch}
  - {kind: mirror, every: 4, lists: 5}
  - {kind: label, interval: 50us}
`)
	type id struct {
		key     model.FlowKey
		ip, seq uint32
	}
	type seen struct {
		lists map[dta.ListID]bool
		ttls  map[uint8]model.NodeID
	}
	packets := map[id]*seen{}
	_, err := Run(t.Context(), s, Options{Sink: func(_ model.Time, from model.NodeID, datagram []byte) {
		var read dta.Reader
		_ = read.Reset(datagram)
		for rep := (dta.Report{}); read.Next(&rep); {
			var m mirror.Mirror
			if rep.List == 0 || rep.List > 5 { // epoch has the first
				continue
			}
			if _, err := m.Parse(rep.Data); err != nil || m.Switch != from {
				t.Fatalf("report %x of %d: %v", rep.Data, from, err)
			}
			var p packet.Packet
			if err := p.Parse(m.Frame); err != nil {
				t.Fatalf("frame %x: %v", m.Frame, err)
			}
			in := p.Innermost()
			one := packets[id{in.Key, in.ID, in.Seq}]
			if one == nil {
				one = &seen{map[dta.ListID]bool{}, map[uint8]model.NodeID{}}
				packets[id{in.Key, in.ID, in.Seq}] = one
			}
			one.lists[rep.List], one.ttls[p.Outer.TTL] = true, from
		}
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	lists := map[dta.ListID]bool{}
	for id, one := range packets {
		for l := range one.lists {
			lists[l] = true
		}
		if len(one.lists) != 1 {
			t.Errorf("mirrors of %v came to lists %v; want one", id, one.lists)
		}
		if len(one.ttls) == 5 { // the others were in flight when the run ended
			whole++
		}
	}
	if whole < len(packets)*8/10 || len(lists) < 3 || len(packets) < 50 {
		t.Errorf("%d of %d packets seen at five hops, in lists %v; want most", whole, len(packets), lists)
	}
}

func TestMirrorRules(t *testing.T) {
	spec := ruleSpec{
		Name: "web", Priority: 3, EtherType: "0x0800", Src: "10.0.0.0/8", Dst: "10.1.2.3", Proto: "tcp", SrcPorts: "1024-65535", DstPorts: "80",
		TCPFlags: "0x02/0x12", DSCP: "26", InPorts: []int{1, 2}, Every: 10,
	}
	want := rules.Rule{
		Name: "web", Priority: 3, EtherType: 0x800, Src: netip.MustParsePrefix("10.0.0.0/8"), Dst: netip.MustParsePrefix("10.1.2.3/32"), Proto: model.TCP,
		SrcPorts: rules.PortRange{Lo: 1024, Hi: 65535}, DstPorts: rules.PortRange{Lo: 80, Hi: 80}, TCPFlags: 2, TCPMask: 0x12, DSCP: 26, DSCPMask: 63, InPorts: []model.PortID{1, 2}, OneIn: 10,
	}
	got, err := spec.rule()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); err != nil || diff != "" {
		t.Errorf("rule %+v: %v\n%s", spec, err, diff)
	}
	ping := ruleSpec{VLAN: "12", ICMPType: "8", ICMPCode: "0"}
	if got, err := ping.rule(); err != nil || got.VLAN != 12 || got.ICMPType != (rules.OptionalByte{Value: 8, Set: true}) || got.ICMPCode != (rules.OptionalByte{Set: true}) {
		t.Errorf("rule %+v: %+v, %v", ping, got, err)
	}
	for name, bad := range map[string]ruleSpec{
		"prefix": {Src: "10.0.0.0/33"}, "ports": {DstPorts: "80-"}, "ports descend": {DstPorts: "90-80"}, "flags": {TCPFlags: "0x3/0x2"},
		"dscp": {DSCP: "64"}, "vlan": {VLAN: "4095"}, "icmp": {ICMPType: "256"}, "icmp of TCP": {ICMPCode: "0", Proto: "tcp"}, "in port": {InPorts: []int{0}}, "every": {Every: -1}, "proto": {Proto: "quic"}, "type": {EtherType: "ip"},
	} {
		if r, err := bad.rule(); err == nil {
			t.Errorf("%s: %+v was taken as %+v", name, bad, r)
		}
	}
}
