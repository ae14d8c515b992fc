package topo

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// movable is a leaf-spine of two racks with an extra address on h0.
func movable(t *testing.T) (f *Fabric, vm model.Addr) {
	t.Helper()
	b := NewBuilder("movable")
	net := netip.MustParsePrefix("10.9.9.9/32")
	h0 := b.AddNode(NodeSpec{Name: "h0", Pod: NoPod, Nets: []netip.Prefix{net}})
	h1 := b.AddNode(NodeSpec{Name: "h1", Pod: NoPod})
	tor0, tor1 := b.AddNode(NodeSpec{Name: "tor0", Role: ToR, Pod: NoPod}), b.AddNode(NodeSpec{Name: "tor1", Role: ToR, Pod: NoPod})
	s0, s1 := b.AddNode(NodeSpec{Name: "s0", Role: Spine, Pod: NoPod}), b.AddNode(NodeSpec{Name: "s1", Role: Spine, Pod: NoPod})
	for _, l := range [][2]model.NodeID{{h0, tor0}, {h1, tor1}, {tor0, s0}, {tor0, s1}, {tor1, s0}, {tor1, s1}} {
		b.Connect(l[0], l[1], DefaultLinks().Fabric)
	}
	return must(b.Build()), model.AddrOf(net.Addr())
}

// TestMovedAddressHasHistory asks, for each side of two moves, where packets to
// the address may end and who owns it.
func TestMovedAddressHasHistory(t *testing.T) {
	f, vm := movable(t)
	h0, h1, tor0, tor1 := id(t, f, "h0"), id(t, f, "h1"), id(t, f, "tor0"), id(t, f, "tor1")
	in := NewIntent(mustRoutes(t, f, RouteConfig{}))
	if err := in.Set(100, mustRoutes(t, f, RouteConfig{Moved: map[model.Addr]model.NodeID{vm: h1}})); err != nil {
		t.Fatal(err)
	}
	if err := in.Set(200, mustRoutes(t, f, RouteConfig{})); err != nil { // home again
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at    model.Time
		owner model.NodeID
		last  model.NodeID
	}{{0, h0, tor0}, {99, h0, tor0}, {100, h1, tor1}, {199, h1, tor1}, {200, h0, tor0}} {
		r := in.At(tc.at)
		if got := r.ExpectedLastHops(vm); !slices.Equal(got, []model.NodeID{tc.last}) {
			t.Errorf("at %d: ExpectedLastHops(%v) = %v; want %d", tc.at, vm, got, tc.last)
		}
		if !r.Owns(tc.owner, vm) || r.Owns(h0+h1-tc.owner, vm) || !slices.Equal(r.Owners(vm), []model.NodeID{tc.owner}) {
			t.Errorf("at %d: Owners(%v) = %v; want %d", tc.at, vm, r.Owners(vm), tc.owner)
		}
		k := model.FlowKey{Src: f.nodes[h0+h1-tc.owner].IPv4, Dst: vm, Proto: model.UDP}
		hops, err := r.Path(k, h0+h1-tc.owner)
		if err != nil || hops[len(hops)-1].Node != tc.owner {
			t.Errorf("at %d: Path(%v) = %v, %v; want one to %d", tc.at, k, hops, err, tc.owner)
		}
		if bad := Check(r); len(bad) != 0 {
			t.Errorf("at %d: Check = %v; want nothing", tc.at, bad)
		}
	}
}

// TestMovedAddressTakesTheHostsPath: static routes to the host's own address
// apply to what has moved there, those to the address itself do not.
func TestMovedAddressTakesTheHostsPath(t *testing.T) {
	f, vm := movable(t)
	h1, tor0, s1 := id(t, f, "h1"), id(t, f, "tor0"), id(t, f, "s1")
	up := f.Node(tor0).PortsTo(s1)
	cfg := RouteConfig{Overrides: f.RouteTo(tor0, h1, up...), Moved: map[model.Addr]model.NodeID{vm: h1}}
	cfg.Overrides = append(cfg.Overrides, Override{At: s1, To: netip.PrefixFrom(vm.Netip(), 32), Ports: f.Node(s1).PortsTo(tor0)})
	r := mustRoutes(t, f, cfg)
	for _, at := range f.switches {
		if got, want := r.NextHops(at, vm), r.NextHops(at, f.nodes[h1].IPv4); !slices.Equal(got, want) {
			t.Errorf("NextHops(%s, %v) = %v; want those to h1, %v", f.nodes[at].Name, vm, got, want)
		}
	}
	if got := r.NextHops(tor0, vm); !slices.Equal(got, up) {
		t.Errorf("NextHops(tor0, %v) = %v; want the static route's %v", vm, got, up)
	}
}

func TestMovedErrors(t *testing.T) {
	f, vm := movable(t)
	for want, moved := range map[string]map[model.Addr]model.NodeID{
		"address 10.9.9.9 moved to node 2, want a host":                                                         {vm: id(t, f, "tor0")},
		"address 10.9.9.9 moved to node 99, want a host":                                                        {vm: 99},
		"address " + f.nodes[1].IPv4.String() + " moved, but it is the address of h1 itself, want one of a net": {f.nodes[1].IPv4: 0},
	} {
		if _, err := NewRoutes(f, RouteConfig{Moved: moved}); err == nil || err.Error() != want {
			t.Errorf("NewRoutes with %v moved = %v; want %s", moved, err, want)
		}
	}
}
