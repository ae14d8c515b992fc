package topo

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestBuilderErrors(t *testing.T) {
	good := DefaultLinks().Fabric
	addr := netip.MustParseAddr
	nets := func(s ...string) (out []netip.Prefix) {
		for _, p := range s {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	for want, declare := range map[string]func(b *Builder){
		`node name "", want`:                       func(b *Builder) { b.AddNode(NodeSpec{}) },
		`node name "a b", want`:                    func(b *Builder) { b.AddNode(NodeSpec{Name: "a b"}) },
		`node name "-a", want`:                     func(b *Builder) { b.AddNode(NodeSpec{Name: "-a"}) },
		`node name "x" is taken`:                   func(b *Builder) { b.AddNode(NodeSpec{Name: "x"}) },
		`want a known role`:                        func(b *Builder) { b.AddNode(NodeSpec{Name: "n", Role: 99}) },
		`pod -2, want 0 to`:                        func(b *Builder) { b.AddNode(NodeSpec{Name: "n", Pod: -2}) },
		`address 10.0.0.1 belongs to x`:            func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv4: addr("10.0.0.1")}) },
		`address fd00::9 belongs to x`:             func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv6: addr("fd00::9")}) },
		`address 192.0.2.9 is a net of x`:          func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv4: addr("192.0.2.9")}) },
		`net 10.0.0.1/32 is the address of node x`: func(b *Builder) { b.AddNode(NodeSpec{Name: "n", Nets: nets("10.0.0.1/32")}) },
		`net 10.0.0.7/32 is the address of node n`: func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv4: addr("10.0.0.7"), Nets: nets("10.0.0.7/32")}) },
		`net 10.0.0.1/8 is listed twice`:           func(b *Builder) { b.AddNode(NodeSpec{Name: "n", Nets: nets("10.0.0.0/8", "10.0.0.1/8")}) },
		`net ::ffff:10.0.0.0/104, want`:            func(b *Builder) { b.AddNode(NodeSpec{Name: "n", Nets: nets("::ffff:10.0.0.0/104")}) },
		`net invalid Prefix, want`:                 func(b *Builder) { b.AddNode(NodeSpec{Name: "n", Nets: []netip.Prefix{{}}}) },
		`address fd00::1, want an IPv4`:            func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv4: addr("fd00::1")}) },
		`address 10.0.0.3, want an IPv6`:           func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv6: addr("10.0.0.3")}) },
		`address ::ffff:10.0.0.3, want an IPv6`:    func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv6: addr("::ffff:10.0.0.3")}) },
		`address fe80::1%eth0, want`:               func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv6: addr("fe80::1%eth0")}) },
		`address 224.0.0.1, want a unicast`:        func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv4: addr("224.0.0.1")}) },
		`address 0.0.0.0, want a unicast`:          func(b *Builder) { b.AddNode(NodeSpec{Name: "n", IPv4: addr("0.0.0.0")}) },
		`link x - x joins a node to itself`:        func(b *Builder) { b.Connect(0, 0, good) },
		`link names node 7, want`:                  func(b *Builder) { b.Connect(0, 7, good) },
		`rate 0b/s, want above 0`:                  func(b *Builder) { b.Connect(0, 1, LinkSpec{}) },
		`delay -1ns, want at least 0`:              func(b *Builder) { b.Connect(0, 1, LinkSpec{Rate: 1, Delay: -1}) },
		`error rate 1.1, want 0 to 1`:              func(b *Builder) { b.Connect(0, 1, LinkSpec{Rate: 1, ErrorRate: 1.1}) },
		`error rate -0.1, want 0 to 1`:             func(b *Builder) { b.Connect(0, 1, LinkSpec{Rate: 1, ErrorRate: -0.1}) },
		`error rate NaN, want 0 to 1`:              func(b *Builder) { b.Connect(0, 1, LinkSpec{Rate: 1, ErrorRate: math.NaN()}) },
		`port name "a:b", want`:                    func(b *Builder) { b.AddLink(End{0, "a:b"}, End{1, ""}, good) },
		`port x:e0 is taken`: func(b *Builder) {
			b.AddLink(End{0, "e0"}, End{1, ""}, good)
			b.AddLink(End{0, "e0"}, End{1, ""}, good)
		},
		`has 65536 ports, want at most 65535`: func(b *Builder) {
			for range 65536 {
				b.Connect(0, 1, good)
			}
		},
		`is one too many, want at most 131072 nodes`: func(b *Builder) {
			for i := range MaxNodes {
				b.AddNode(NodeSpec{Name: "m" + itoa(i)})
			}
		},
	} {
		b := NewBuilder("")
		b.AddNode(NodeSpec{Name: "x", IPv4: addr("10.0.0.1"), IPv6: addr("fd00::9"), Nets: nets("192.0.2.9/32")})
		b.AddNode(NodeSpec{Name: "y", Role: Switch})
		if err := b.Err(); err != nil {
			t.Fatalf("Err() of a good start = %v; want nil", err)
		}
		declare(b)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err() = %v; want %q", err, want)
		}
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Build() = %v; want %q", err, want)
		}
	}
	if _, err := NewBuilder("").Build(); err == nil {
		t.Error("Build() of nothing = nil; want an error")
	}
	if _, err := NewBuilder("a\nb").Build(); err == nil || !strings.Contains(err.Error(), "fabric name") {
		t.Errorf("Build() of a fabric named with a line break = %v; want an error", err)
	}
}

func TestBuildCompletes(t *testing.T) {
	b := NewBuilder("")
	spec := LinkSpec{Rate: 25 * model.Gbps, Delay: 3 * time.Microsecond, ErrorRate: 0.5}
	// Addresses and port names that Build assigns do not clash with given ones,
	// also with later ones.
	h := b.AddNode(NodeSpec{Name: "h", Pod: NoPod})
	s := b.AddNode(NodeSpec{Name: "s", Role: Switch, Pod: NoPod})
	b.AddNode(NodeSpec{Name: "g", Role: Spine, Pod: 3, IPv4: netip.MustParseAddr("10.0.0.1")})
	b.AddNode(NodeSpec{Name: "v", Pod: NoPod, Nets: []netip.Prefix{netip.MustParsePrefix("10.0.0.4/32")}})
	b.AddNode(NodeSpec{Name: "w", Pod: NoPod, IPv6: netip.MustParseAddr("fd00::a00:2")})
	b.AddLink(End{Node: h}, End{Node: s, Port: "Ethernet4"}, spec)
	b.AddLink(End{Node: h, Port: "eth1"}, End{Node: s}, spec)
	b.AddLink(End{Node: s}, End{Node: 2}, spec)
	f := must(b.Build())

	for i, want := range []struct{ v4, v6 string }{
		{"10.0.0.2", "fd00:0:0:1::a00:2"},
		{"10.0.0.3", "fd00::a00:3"},
		{"10.0.0.1", "fd00::a00:1"},
		{"10.0.0.5", "fd00::a00:5"},
		{"10.0.0.6", "fd00::a00:2"},
	} {
		n := f.Node(model.NodeID(i))
		if n.IPv4 != ip(want.v4) || n.IPv6 != ip(want.v6) {
			t.Errorf("node %s has %v and %v; want %v and %v", n.Name, n.IPv4, n.IPv6, want.v4, want.v6)
		}
		for _, a := range []model.Addr{n.IPv4, n.IPv6} {
			if got, ok := f.ByAddr(a); got != n.ID || !ok {
				t.Errorf("ByAddr(%v) = %d, %v; want %d", a, got, ok, n.ID)
			}
		}
	}
	var names []string
	for _, n := range f.Nodes() {
		for i, p := range n.Ports {
			names = append(names, f.PortRef(model.Port{Node: n.ID, Port: p.ID}))
			if int(p.ID) != i+1 || p.LinkSpec != spec {
				t.Errorf("port %d of %s = %+v; want number %d and %+v", i, n.Name, p, i+1, spec)
			}
		}
	}
	if want := []string{"h:eth2", "h:eth1", "s:Ethernet4", "s:Ethernet8", "s:Ethernet12", "g:Ethernet0"}; !slices.Equal(names, want) {
		t.Errorf("ports are %v; want %v", names, want)
	}
	if got := f.PortRef(model.Port{Node: s}); got != "s:cpu" {
		t.Errorf("PortName(s, 0) = %s; want s:cpu", got)
	}
	if s, g := f.Node(s).Tier, f.Node(2).Tier; s != 1 || g != 3 {
		t.Errorf("tiers of s and g = %d, %d; want 1 (distance from hosts), 3 (spine)", s, g)
	}
	if p := f.Node(s).PortByName("Ethernet8"); p == nil || p.ID != 2 {
		t.Errorf("PortByName(Ethernet8) = %+v; want port 2", p)
	}
}

func TestMACs(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	if got := f.Node(20).Port(3).MAC.String(); got != "02:00:00:14:00:03" {
		t.Errorf("MAC of port 3 of node 20 = %s; want 02:00:00:14:00:03", got)
	}
	for i := range f.nodes {
		for j := range f.nodes[i].Ports {
			p := &f.nodes[i].Ports[j]
			want := model.Port{Node: model.NodeID(i), Port: p.ID}
			if got, ok := f.ByMAC(p.MAC); got != want || !ok {
				t.Errorf("ByMAC(%v) = %v, %v; want %v", p.MAC, got, ok, want)
			}
			if f.Port(p.Peer).Peer != want {
				t.Errorf("port %v has peer %v, whose peer is %v", want, p.Peer, f.Port(p.Peer).Peer)
			}
		}
	}
	for _, m := range []model.MAC{{}, {0x02, 0, 0, 99, 0, 1}, {0x02, 0, 0, 0, 0, 9}, {0x02, 0, 0, 0, 0, 0}, {0x00, 0, 0, 0, 0, 1}} {
		if p, ok := f.ByMAC(m); ok {
			t.Errorf("ByMAC(%v) = %v, true; want none", m, p)
		}
	}
}

// TestAddrIndexEqualsMap fills the index with addresses close together and far
// apart.
func TestAddrIndexEqualsMap(t *testing.T) {
	genAddr := rapid.Custom(func(t *rapid.T) model.Addr {
		lo := rapid.OneOf(rapid.Uint64Range(1, 40), rapid.Uint64()).Draw(t, "lo")
		if rapid.Bool().Draw(t, "v4") {
			return model.Addr4(uint32(lo))
		}
		return model.Addr{Hi: rapid.OneOf(rapid.Uint64Range(1<<63, 1<<63+3), rapid.Uint64Min(1)).Draw(t, "hi"), Lo: lo}
	})
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]model.Addr {
			return [2]model.Addr{
				genAddr.Filter(func(a model.Addr) bool { return a.Is4() }).Draw(t, "v4"),
				genAddr.Filter(func(a model.Addr) bool { return !a.Is4() }).Draw(t, "v6"),
			}
		}), 1, 50).Draw(t, "addresses")
		want := make(map[model.Addr]model.NodeID)
		var nodes []Node
		for _, p := range pairs {
			_, taken4 := want[p[0]]
			_, taken6 := want[p[1]]
			if taken4 || taken6 {
				continue
			}
			n := Node{ID: model.NodeID(len(nodes)), IPv4: p[0], IPv6: p[1]}
			nodes = append(nodes, n)
			want[p[0]], want[p[1]] = n.ID, n.ID
		}
		x := newAddrIndex(nodes)
		for range 30 {
			a := genAddr.Draw(t, "ask")
			got, ok := x.lookup(a)
			if id, has := want[a]; ok != has || ok && got != id {
				t.Fatalf("get(%v) = %d, %v; want %d, %v", a, got, ok, id, has)
			}
		}
		for a, id := range want {
			if got, ok := x.lookup(a); !ok || got != id {
				t.Fatalf("get(%v) = %d, %v; want %d", a, got, ok, id)
			}
		}
	})
}

func TestRoleNames(t *testing.T) {
	for r := Host; r <= Switch; r++ {
		if got, err := ParseRole(r.String()); got != r || err != nil {
			t.Errorf("ParseRole(%v) = %v, %v; want it back", r, got, err)
		}
	}
	for in, want := range map[string]Role{"Edge": ToR, "agg": Leaf, "core": Spine, "TOR": ToR} {
		if got, err := ParseRole(in); got != want || err != nil {
			t.Errorf("ParseRole(%s) = %v, %v; want %v", in, got, err, want)
		}
	}
	if _, err := ParseRole("king"); err == nil || !strings.Contains(err.Error(), "host, mux, tor") {
		t.Errorf("ParseRole(king) = %v; want an error that lists the roles", err)
	}
	for r, want := range map[Role]bool{Host: false, Mux: false, ToR: true, Leaf: true, Spine: true, Border: true, Switch: true} {
		if r.IsSwitch() != want {
			t.Errorf("%v.IsSwitch() = %v; want %v", r, r.IsSwitch(), want)
		}
	}
}
