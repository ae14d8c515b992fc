package truth

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// TestPathsGoThroughMuxes follows packets to a virtual address and checks the
// counts while the mux holds many of them.
func TestPathsGoThroughMuxes(t *testing.T) {
	vip := netip.MustParseAddr("192.0.2.10")
	fb := topo.NewBuilder("mux")
	node := func(name string, role topo.Role, nets ...netip.Prefix) model.NodeID {
		return fb.AddNode(topo.NodeSpec{Name: name, Role: role, Pod: topo.NoPod, Nets: nets})
	}
	h0, h1 := node("h0", topo.Host), node("h1", topo.Host)
	mux := node("mux", topo.Mux, netip.PrefixFrom(vip, 32))
	s0, s1 := node("s0", topo.ToR), node("s1", topo.ToR)
	link := topo.DefaultLinks().Host
	fb.Connect(s0, h0, link)
	fb.Connect(s0, mux, link)
	fb.Connect(s0, s1, link)
	fb.Connect(s1, h1, link)
	f, err := fb.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := lay(t, f, nil, topo.RouteConfig{Seed: 1}, sim.DefaultConfig(), All())
	if err := b.EnableBGP(10 * time.Microsecond); err != nil {
		t.Fatal(err)
	}
	if err := b.AddService(sim.Service{VIP: model.AddrOf(vip), Backends: []model.Addr{f.Node(h1).IPv4}, Delay: 200 * time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	b.add(traffic.Flow{Src: h0, To: model.AddrOf(vip), Bytes: 2_000_000, Priority: 3, Start: 1000})
	b.inject(sim.Injection{At: 100_000, For: 100 * time.Microsecond, Fault: sim.MisdirectingMux{Host: mux, Share: 1}})
	b.inject(sim.Injection{At: 100_000, For: 100 * time.Microsecond, Fault: sim.SlowMux{Host: mux, Delay: time.Millisecond}})
	for at := engine.Time(0); at < 2*engine.Millisecond; at += 10 * engine.Microsecond {
		b.run(at.Duration())
	}
	b.run(50 * time.Millisecond)
	want := []Hop{{s0, 1, 2}, {s0, 2, 3}, {s1, 1, 2}}
	var delivered int64
	for _, p := range b.r.Paths(0, false) {
		switch {
		case cmp.Equal(p.Hops, want):
			delivered = p.Delivered
		case !cmp.Equal(p.Hops, want[:1]) || p.Delivered != 0 || p.Dropped == 0:
			t.Errorf("path %+v; want %+v, or its first hop where the mux dropped packets", p, want)
		}
	}
	total := b.r.Flow(0, false)
	if r := b.Records()[0]; !r.Finished || delivered != 1954 || total.Delivered != delivered || total.Dropped == 0 || total.Payload < 2_000_000 {
		t.Errorf("flow %+v, %d packets on the path, totals %+v; want all of 2 MB delivered once the mux was mended", r, delivered, total)
	}
	if back := b.r.Paths(0, true); len(back) != 1 || !cmp.Equal(back[0].Hops, []Hop{{s1, 2, 1}, {s0, 3, 1}}) {
		t.Errorf("answers took %+v; want the direct path", back)
	}
	if c := b.r.Causes(); len(c) != 2 || c[0].Kind != "wrong-mux" || c[1].Kind != "slow-mux" || c[1].Nodes[0] != mux {
		t.Errorf("causes %+v; want the wrong and the slow mux", c)
	}
}
