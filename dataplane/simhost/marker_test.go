package simhost

import (
	"fmt"
	"testing"

	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	wire "github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// TestHostsMark has two of three hosts mark what goes to one host: these packets
// and no others are mirrored, at every switch of their path.
func TestHostsMark(t *testing.T) {
	n := fatTree(t, sim.DefaultConfig())
	seen := map[string]int{}
	mirrored(t, n, func(m *wire.Mirror) {
		var p packet.Packet
		if err := p.Parse(m.Frame); err != nil || m.Reasons != wire.Debug || p.Outer.DSCP()&1 == 0 {
			t.Errorf("mirror for %v of %x: %v; want marked ones only", m.Reasons, m.Frame, err)
		}
		seen[fmt.Sprint(p.Outer.Key.Src, " > ", p.Outer.Key.Dst)]++
	})
	var flows []traffic.Flow
	for src := range model.NodeID(3) {
		flows = append(flows, traffic.Flow{Src: src, Dst: 14, Bytes: 10 * 1024, Transport: traffic.UDP, Rate: model.Gbps},
			traffic.Flow{Src: src, Dst: 13, Bytes: 10 * 1024, Transport: traffic.UDP, Rate: model.Gbps})
	}
	add(t, n, flows...)
	to := n.Fabric().Node(14).IPv4
	chosen, err := headers.Schema(nil).Parse(fmt.Sprintf("ip.dst == %v", to))
	if err != nil {
		t.Fatal(err)
	}
	marks := NewMarkers(n)
	for host := range model.NodeID(2) {
		if err := marks.Mark(host, chosen); err != nil {
			t.Fatal(err)
		}
	}
	n.Run(ms)
	want := map[string]int{}
	for host := range model.NodeID(2) {
		want[fmt.Sprint(n.Fabric().Node(host).IPv4, " > ", to)] = 10 * 5 // packets and switches
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("mirrors %v; want %v", seen, want)
	}
	if s := marks.Stats(); s.Marked != 20 || s.Seen < 40 {
		t.Errorf("%+v; want 20 packets marked of at least 40", s)
	}
	if marks.Mark(n.Fabric().Switches()[0], chosen) == nil {
		t.Error("a switch marks; want an error")
	}
	if err := marks.Unmark(0, chosen); err != nil {
		t.Error(err)
	}
	if marks.Unmark(0, chosen) == nil || marks.Unmark(5, chosen) == nil {
		t.Error("a host unmarks what it does not mark; want an error")
	}
}
