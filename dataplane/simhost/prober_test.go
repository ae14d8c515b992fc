package simhost

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/probe"
)

// mirrored attaches mirrors to all switches; take sees what they send.
func mirrored(t *testing.T, n *sim.Network, take func(m *wire.Mirror)) {
	t.Helper()
	m, err := NewManagement(n, DefaultManagementConfig(), func(_ model.Time, _ model.NodeID, datagram []byte) {
		var r dta.Reader
		var rep dta.Report
		for _ = r.Reset(datagram); r.Next(&rep); {
			var one wire.Mirror
			if _, err := one.Parse(rep.Data); err != nil {
				t.Errorf("report %x: %v", rep.Data, err)
			}
			take(&one)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	host := DefaultConfig()
	host.Carrier = m
	for _, id := range n.Fabric().Switches() {
		p, err := mirror.New(Describe(n, id, 0), mirror.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		attach(t, n, id, host, p)
	}
}

// TestProbesAreInjected sends a series from a host in one pod into a spine, to
// a leaf of another pod and back to the spine, and then to a host: mirrors show
// every probe at every switch, at the beat that was asked for.
func TestProbesAreInjected(t *testing.T) {
	n := fatTree(t, sim.DefaultConfig())
	n.SetClock(0, sim.Clock{Offset: time.Millisecond, Drift: 50e-6})
	f := n.Fabric()
	var paths [10][]string
	var first []model.Time
	mirrored(t, n, func(m *wire.Mirror) {
		s, err := probe.FindStamp(m.Frame)
		if err != nil || s.Origin != 0 || s.Series != 77 {
			t.Errorf("mirror of %x: %+v, %v; want a probe of host 0", m.Frame, s, err)
			return
		}
		name := f.Node(m.Switch).Name
		if name == "tor0" {
			first = append(first, m.Time)
		}
		paths[s.Number] = append(paths[s.Number], name)
	})
	own := func(name string) model.Addr {
		id, _ := f.ByName(name)
		return f.Node(id).IPv4
	}
	src := f.Node(0).IPv4
	p := prober.Packet{Key: model.FlowKey{Src: src, Dst: f.Node(15).IPv4, SrcPort: 5, DstPort: 6, Proto: model.UDP}}
	for _, name := range []string{"spine0", "leaf2", "spine0"} {
		p.Tunnels = append(p.Tunnels, prober.Tunnel{Src: src, Dst: own(name)})
	}
	ps := NewProbers(n, nil)
	if err := ps.Inject(0, prober.Series{ID: 77, Patterns: []prober.Packet{p}, Interval: 10 * time.Microsecond, Count: 10}); err != nil {
		t.Fatal(err)
	}
	if err := ps.Inject(f.Switches()[0], prober.Series{}); err == nil {
		t.Error("a switch probes; want an error")
	}
	n.Run(ms)
	for i, path := range paths {
		// Mirrors come in any order: compare what was met, and how often.
		slices.Sort(path)
		want := []string{"leaf0", "leaf2", "leaf6", "spine0", "spine0", "tor0", "tor7"}
		if !slices.Equal(path, want) {
			t.Errorf("probe %d was seen at %v; want %v", i, path, want)
		}
	}
	slices.Sort(first)
	if len(first) != len(paths) {
		t.Errorf("%d probes at tor0; want %d", len(first), len(paths))
	}
	for i := 1; i < len(first); i++ {
		if beat := first[i].Sub(first[i-1]); beat < 9900 || beat > 10100 {
			t.Errorf("probes %d and %d are %v apart; want 10µs", i-1, i, beat)
		}
	}
	if s := ps.Stats(); s.Sent != 10 || s.Delayed != 0 {
		t.Errorf("%+v; want 10 sent", s)
	}
}
