package topo

import (
	"errors"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestRoutesEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFabric(t)
		var down []int
		if len(f.links) > 0 {
			down = rapid.SliceOfNDistinct(rapid.IntRange(0, len(f.links)-1), 0, 2, rapid.ID).Draw(t, "down")
		}
		moved := map[model.Addr]model.NodeID{}
		for _, a := range addrsOf(f) {
			if _, own := f.ByAddr(a); !own && len(f.hosts) > 0 && rapid.Bool().Draw(t, "moved") {
				moved[a] = rapid.SampledFrom(f.hosts).Draw(t, "to")
			}
		}
		r, err := NewRoutes(f, RouteConfig{Seed: rapid.Uint64().Draw(t, "seed"), Down: down, Moved: moved})
		if err != nil {
			t.Fatalf("NewRoutes = %v; want no error", err)
		}
		slow := newSlow(f, down...)
		slow.moved = moved
		for _, a := range addrsOf(f) {
			if got, want := r.Owners(a), slow.owners(a); !slices.Equal(got, want) {
				t.Fatalf("Owners(%v) = %v; want %v", a, got, want)
			}
			if got, want := r.ExpectedLastHops(a), slow.lastHops(a); !slices.Equal(got, want) {
				t.Fatalf("ExpectedLastHops(%v) = %v; want %v", a, got, want)
			}
			for i := range f.nodes {
				from := model.NodeID(i)
				want := slow.nextHops(from, a)
				if got := r.NextHops(from, a); !slices.Equal(got, want) {
					t.Fatalf("NextHops(%d, %v) = %v; want %v", from, a, got, want)
				}
				wantDist := slow.distance(from, a)
				if got, ok := r.Distance(from, a); ok != (wantDist < far) || ok && got != wantDist {
					t.Fatalf("Distance(%d, %v) = %d, %v; want %d", from, a, got, ok, wantDist)
				}
				k := model.FlowKey{Src: ip("10.9.9.9"), Dst: a, SrcPort: rapid.Uint16().Draw(t, "port"), Proto: model.TCP}
				port, ok := r.NextHop(from, k)
				if ok != (len(want) > 0) || ok && !slices.Contains(want, port) {
					t.Fatalf("NextHop(%d, %v) = %d, %v; want one of %v", from, k, port, ok, want)
				}
				checkPath(t, r, k, from, wantDist)
			}
		}
	})
}

// checkPath follows a flow and checks the path's number of links and that it
// passes no node twice.
func checkPath(t *rapid.T, r *Routes, k model.FlowKey, from model.NodeID, links int) {
	hops, err := r.Path(k, from)
	if links >= far {
		if !errors.Is(err, ErrNoRoute) {
			t.Fatalf("Path(%v, %d) = %v, %v; want ErrNoRoute", k, from, hops, err)
		}
		return
	}
	if err != nil || len(hops) != links+1 {
		t.Fatalf("Path(%v, %d) = %v, %v; want %d links", k, from, hops, err, links)
	}
	seen := make(map[model.NodeID]bool)
	for i, h := range hops {
		if seen[h.Node] {
			t.Fatalf("Path(%v, %d) = %v; passes %d twice", k, from, hops, h.Node)
		}
		seen[h.Node] = true
		if i > 0 {
			before := model.Port{Node: hops[i-1].Node, Port: hops[i-1].Out}
			if peer := r.f.Port(before).Peer; peer != (model.Port{Node: h.Node, Port: h.In}) {
				t.Fatalf("Path(%v, %d) = %v; port %v leads to %v", k, from, hops, before, peer)
			}
		}
	}
	if last := hops[len(hops)-1]; last.Out != 0 || !r.Owns(last.Node, k.Dst) {
		t.Fatalf("Path(%v, %d) = %v; want it to end at an owner", k, from, hops)
	}
}

func TestPathsAreAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFabric(t)
		r, err := NewRoutes(f, RouteConfig{})
		if err != nil {
			t.Fatal(err)
		}
		from := model.NodeID(rapid.IntRange(0, len(f.nodes)-1).Draw(t, "from"))
		dst := rapid.SampledFrom(addrsOf(f)).Draw(t, "dst")
		paths, all := r.Paths(from, dst, 1<<16)
		if !all {
			t.Fatalf("Paths(%d, %v) found more than 65536 paths in a fabric of %d nodes", from, dst, len(f.nodes))
		}
		// Count paths by the definition, and compare.
		slow := newSlow(f)
		var count func(model.NodeID) int
		count = func(at model.NodeID) (n int) {
			for _, p := range slow.nextHops(at, dst) {
				if p == 0 {
					return 1
				}
				n += count(f.nodes[at].Ports[p-1].Peer.Node)
			}
			return n
		}
		want := count(from)
		if len(paths) != want {
			t.Fatalf("Paths(%d, %v) = %d paths; want %d", from, dst, len(paths), want)
		}
		if _, all := r.Paths(from, dst, max(want-1, 0)); all && want > 0 {
			t.Fatalf("Paths(%d, %v, limit %d) says that is all; want more", from, dst, want-1)
		}
		for i, p := range paths {
			for _, q := range paths[:i] {
				if slices.Equal(p, q) {
					t.Fatalf("Paths(%d, %v) has %v twice", from, dst, p)
				}
			}
		}
	})
}

func TestPathExample(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	r := mustRoutes(t, f, RouteConfig{})
	hops, err := r.Path(key(t, f, "h0", "h2", 1), id(t, f, "h0"))
	if err != nil {
		t.Fatal(err)
	}
	names := f.names(hops)
	if names != "h0 > tor0 > leaf0 > tor1 > h2" && names != "h0 > tor0 > leaf1 > tor1 > h2" {
		t.Errorf("Path(h0 to h2) = %s; want h0 > tor0 > leaf0 or leaf1 > tor1 > h2", names)
	}
	if p, _ := r.Paths(id(t, f, "h0"), f.Node(id(t, f, "h15")).IPv4, 100); len(p) != 4 {
		t.Errorf("Paths(h0, h15) = %d paths; want 4", len(p))
	}
}

func TestSameSeedSameRoutes(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	a, b := mustRoutes(t, f, RouteConfig{Seed: 7}), mustRoutes(t, f, RouteConfig{Seed: 7})
	c := mustRoutes(t, f, RouteConfig{Seed: 8})
	differ := 0
	for port := range 200 {
		k := key(t, f, "h0", "h15", port)
		pa, _ := a.Path(k, 0)
		pb, _ := b.Path(k, 0)
		pc, _ := c.Path(k, 0)
		if !slices.Equal(pa, pb) {
			t.Fatalf("Path(%v) with seed 7 = %v and %v; want the same", k, pa, pb)
		}
		if !slices.Equal(pa, pc) {
			differ++
		}
	}
	// Three of four flows take another of the four paths.
	if differ < 120 || differ > 180 {
		t.Errorf("with another seed %d of 200 flows take another path; want about 150", differ)
	}
}

// chi2 measures how far counts are from equal shares.
func chi2(counts []int) (x float64) {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	want := float64(sum) / float64(len(counts))
	for _, c := range counts {
		x += (float64(c) - want) * (float64(c) - want) / want
	}
	return x
}

// limit is a bound that chi-square with n-1 degrees of freedom exceeds about
// once in 100,000 times (Wilson and Hilferty's approximation).
func limit(n int) float64 {
	k := float64(n - 1)
	return k * math.Pow(1-2/(9*k)+4.3*math.Sqrt(2/(9*k)), 3)
}

func TestECMPSpreadsFlows(t *testing.T) {
	for name, f := range map[string]*Fabric{
		"8 ports": must(FatTree(16, DefaultLinks())),
		"7 ports": must(LeafSpine(2, 7, 4, DefaultLinks())),
	} {
		t.Run(name, func(t *testing.T) {
			r := mustRoutes(t, f, RouteConfig{Seed: 3})
			tor := f.nodes[f.hosts[0]].Ports[0].Peer.Node
			last := f.nodes[f.hosts[len(f.hosts)-1]].Name
			counts := make(map[model.PortID]int)
			for port := range 20000 {
				p, _ := r.NextHop(tor, key(t, f, "h0", last, port))
				counts[p]++
			}
			want := len(r.NextHops(tor, f.nodes[f.hosts[len(f.hosts)-1]].IPv4))
			all := make([]int, 0, want)
			for _, n := range counts {
				all = append(all, n)
			}
			if x := chi2(all); len(all) != want || x > limit(want) {
				t.Errorf("20000 flows over %d ports: %v, chi-square %.1f; want below %.1f", want, counts, x, limit(want))
			}
		})
	}
}

// TestNoHashPolarization takes flows that differ in their source port alone, as
// those between two hosts do, and checks that the choices of the ToR and of the
// leaf are independent for every seed of the fabric.
func TestNoHashPolarization(t *testing.T) {
	f := must(FatTree(8, DefaultLinks()))
	dst := f.Node(id(t, f, "h127")).IPv4
	tor, leaf := id(t, f, "tor0"), id(t, f, "leaf0")
	const up = 4 // ports 5 to 8 of both
	for seed := range uint64(50) {
		r := mustRoutes(t, f, RouteConfig{Seed: seed})
		joint := make([]int, up*up)
		for port := range 1 << 14 {
			k := model.FlowKey{Src: f.nodes[0].IPv4, Dst: dst, SrcPort: uint16(port), DstPort: 4791, Proto: model.UDP}
			a, _ := r.NextHop(tor, k)
			b, _ := r.NextHop(leaf, k)
			joint[int(a-5)*up+int(b-5)]++
		}
		if x := chi2(joint); x > limit(len(joint)) {
			t.Errorf("seed %d: choices of ToR and leaf for 16384 flows: chi-square %.1f; want below %.1f", seed, x, limit(len(joint)))
		}
	}
}

// TestHashIsPluggable imitates a switch that takes the remainder of the source
// port, for sets of sizes that are powers of two and others.
func TestHashIsPluggable(t *testing.T) {
	for _, spines := range []int{4, 7} {
		f := must(LeafSpine(2, spines, 1, DefaultLinks()))
		r := mustRoutes(t, f, RouteConfig{Hash: func(k model.FlowKey, node model.NodeID, _ uint64) uint64 {
			return uint64(k.SrcPort) + uint64(node)
		}})
		leaf := id(t, f, "leaf0")
		ports := r.NextHops(leaf, f.Node(id(t, f, "h1")).IPv4)
		for port := range 100 {
			want := ports[(port+int(leaf))%spines]
			if got, _ := r.NextHop(leaf, key(t, f, "h0", "h1", port)); got != want {
				t.Errorf("NextHop of source port %d over %d spines = %d; want %d", port, spines, got, want)
			}
		}
	}
}

func TestOverrides(t *testing.T) {
	// h0 - s0 - s1 - h1, and s2 beside them.
	f := lab(t, [2]string{"h0", "s0"}, [2]string{"s0", "s1"}, [2]string{"s1", "h1"}, [2]string{"s0", "s2"}, [2]string{"s2", "s1"})
	s0, s1, h1 := id(t, f, "s0"), id(t, f, "s1"), id(t, f, "h1")
	detour := f.RouteTo(s0, h1, 3)

	r := mustRoutes(t, f, RouteConfig{Overrides: detour})
	for _, v6 := range []bool{false, true} {
		k := key(t, f, "h0", "h1", 1)
		if v6 {
			k.Src, k.Dst, k.V6 = f.nodes[0].IPv6, f.Node(h1).IPv6, true
		}
		hops, err := r.Path(k, 0)
		if got := f.names(hops); got != "h0 > s0 > s2 > s1 > h1" || err != nil {
			t.Errorf("Path with a detour = %s, %v; want h0 > s0 > s2 > s1 > h1", got, err)
		}
	}

	// A prefix takes precedence over the computed route to an address inside it,
	// a longer one over that, and the switch's own address is still delivered.
	r = mustRoutes(t, f, RouteConfig{Overrides: []Override{
		{At: s0, To: netip.MustParsePrefix("0.0.0.0/0"), Ports: []model.PortID{3}},
		{At: s0, To: netip.PrefixFrom(f.Node(s1).IPv4.Netip(), 32), Ports: []model.PortID{2}},
	}})
	for dst, want := range map[string]model.PortID{"h1": 3, "h0": 3, "s1": 2, "s0": 0} {
		if got, ok := r.NextHop(s0, key(t, f, "h0", dst, 1)); got != want || !ok {
			t.Errorf("NextHop(s0, to %s) = %d, %v; want %d", dst, got, ok, want)
		}
	}

	// An override may cause a loop or a dead end; the path reports it.
	loop := mustRoutes(t, f, RouteConfig{Overrides: slices.Concat(f.RouteTo(s0, h1, 2), f.RouteTo(s1, h1, 1))})
	hops, err := loop.Path(key(t, f, "h0", "h1", 1), 0)
	if !errors.Is(err, ErrLoop) || !strings.Contains(err.Error(), "s0 > s1 > s0") || f.names(hops) != "h0 > s0 > s1 > s0" {
		t.Errorf("Path = %s, %v; want h0 > s0 > s1 > s0, a loop s0 > s1 > s0", f.names(hops), err)
	}
	wrong := mustRoutes(t, f, RouteConfig{Overrides: f.RouteTo(s0, h1, 1)})
	if hops, err := wrong.Path(key(t, f, "s2", "h1", 1), s0); !errors.Is(err, ErrNoRoute) || f.names(hops) != "s0 > h0" {
		t.Errorf("Path = %s, %v; want s0 > h0, no route", f.names(hops), err)
	}
}

func TestOverrideErrors(t *testing.T) {
	f := lab(t, [2]string{"h0", "s0"}, [2]string{"s0", "s1"})
	p := netip.MustParsePrefix("10.0.0.0/8")
	for want, o := range map[string][]Override{
		"which is a host":                {{At: 0, To: p, Ports: []model.PortID{1}}},
		"want a node from 0 to 2":        {{At: 9, To: p, Ports: []model.PortID{1}}},
		"has no next hop":                {{At: 1, To: p}},
		"want a port from 1 to 2":        {{At: 1, To: p, Ports: []model.PortID{3}}},
		"names port 1 twice":             {{At: 1, To: p, Ports: []model.PortID{1, 1}}},
		"want a prefix":                  {{At: 1, Ports: []model.PortID{1}}},
		"want one with all its next hop": {{At: 1, To: p, Ports: []model.PortID{1}}, {At: 1, To: p, Ports: []model.PortID{2}}},
	} {
		if _, err := NewRoutes(f, RouteConfig{Overrides: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewRoutes(%+v) = %v; want an error with %q", o, err, want)
		}
	}
	if _, err := NewRoutes(f, RouteConfig{Down: []int{2}}); err == nil {
		t.Error("NewRoutes(Down: 2) of a fabric with 2 links = nil; want an error")
	}
}

// TestExpectedLastHops: an outside address belongs to the owner of 0.0.0.0/0, so
// the borders are valid last hops of packets to it.
func TestExpectedLastHops(t *testing.T) {
	b := NewBuilder("outside")
	h := b.AddNode(NodeSpec{Name: "h0", Pod: NoPod})
	out := b.AddNode(NodeSpec{Name: "out", Pod: NoPod, Nets: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}})
	tor := b.AddNode(NodeSpec{Name: "tor0", Role: ToR, Pod: NoPod})
	b0 := b.AddNode(NodeSpec{Name: "border0", Role: Border, Pod: NoPod})
	b1 := b.AddNode(NodeSpec{Name: "border1", Role: Border, Pod: NoPod})
	for _, l := range [][2]model.NodeID{{h, tor}, {tor, b0}, {tor, b1}, {b0, out}, {b1, out}} {
		b.Connect(l[0], l[1], DefaultLinks().Fabric)
	}
	r := mustRoutes(t, must(b.Build()), RouteConfig{})
	for addr, want := range map[string][]model.NodeID{
		"203.0.113.9":                {b0, b1},
		r.f.nodes[h].IPv4.String():   {tor},
		r.f.nodes[b1].IPv4.String():  {b1},
		"2001:db8::1":                nil,
		r.f.nodes[tor].IPv6.String(): {tor},
		r.f.nodes[out].IPv6.String(): {b0, b1},
	} {
		if got := r.ExpectedLastHops(ip(addr)); !slices.Equal(got, want) {
			t.Errorf("ExpectedLastHops(%s) = %v; want %v", addr, got, want)
		}
	}
}

func TestRoutesAllocs(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	r := mustRoutes(t, f, RouteConfig{Overrides: f.RouteTo(20, 3, 1), Moved: map[model.Addr]model.NodeID{ip("192.0.2.9"): 5}})
	k, k6 := key(t, f, "h0", "h15", 1), key(t, f, "h0", "h15", 1)
	k6.Dst, k6.V6 = f.nodes[15].IPv6, true
	tor, ip9 := id(t, f, "tor0"), ip("192.0.2.9")
	hops := make([]Hop, 0, 16)
	for name, run := range map[string]func(){
		"NextHop of a switch": func() { r.NextHop(tor, k) },
		"NextHop, IPv6":       func() { r.NextHop(tor, k6) },
		"NextHop, overrides":  func() { r.NextHop(20, k) },
		"NextHop of a host":   func() { r.NextHop(0, k) },
		"NextHops":            func() { r.NextHops(tor, k.Dst) },
		"AppendPath":          func() { hops, _ = r.AppendPath(hops[:0], k, 0) },
		"ExpectedLastHops":    func() { r.ExpectedLastHops(k.Dst) },
		"Distance":            func() { r.Distance(0, k.Dst) },
		"ByAddr":              func() { f.ByAddr(k.Dst) },
		"ByName":              func() { f.ByName("tor0") },
		"ByMAC":               func() { f.ByMAC(f.nodes[3].Ports[0].MAC) },
		"Owners":              func() { f.Owners(k.Dst) },
		"Owners, moved":       func() { r.Owners(ip9) },
		"NextHops, moved":     func() { r.NextHops(tor, ip9) },
	} {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times; want 0", name, n)
		}
	}
}

// TestLargeFabricFitsInMemory checks the promise of compact routes: a fat-tree
// of 8,192 hosts and 1,280 switches in less than 500 MB.
func TestLargeFabricFitsInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a fat-tree of k=32")
	}
	before := liveHeap()
	r := mustRoutes(t, must(FatTree(32, DefaultLinks())), RouteConfig{})
	live := liveHeap() - before
	if n, sw := len(r.f.hosts), len(r.f.switches); n != 8192 || sw != 1280 || r.classes != 1280 {
		t.Errorf("fat-tree k=32 has %d hosts, %d switches, %d classes; want 8192, 1280, 1280", n, sw, r.classes)
	}
	if live > 500e6 {
		t.Errorf("fat-tree k=32 with routes keeps %d bytes; want less than 500 MB", live)
	}
	runtime.KeepAlive(r)
}

func TestIntent(t *testing.T) {
	f := must(Ring(3, 1, DefaultLinks()))
	a, b, c := mustRoutes(t, f, RouteConfig{Seed: 1}), mustRoutes(t, f, RouteConfig{Seed: 2}), mustRoutes(t, f, RouteConfig{Seed: 3})
	in := NewIntent(a)
	for _, step := range []struct {
		from model.Time
		r    *Routes
	}{{100, b}, {200, c}} {
		if err := in.Set(step.from, step.r); err != nil {
			t.Fatalf("Set(%v) = %v; want no error", step.from, err)
		}
	}
	for at, want := range map[model.Time]*Routes{math.MinInt64: a, 99: a, 100: b, 199: b, 200: c, math.MaxInt64: c} {
		if got := in.At(at); got != want {
			t.Errorf("At(%d) = routes of seed %d; want seed %d", at, got.cfg.Seed, want.cfg.Seed)
		}
	}
	if err := in.Set(150, a); err == nil {
		t.Error("Set(150) after 200 = nil; want an error")
	}
	if err := in.Set(200, a); err != nil || in.At(200) != a || in.At(199) != b {
		t.Errorf("Set(200) again = %v, then seeds %d and %d; want no error, and the newer routes from 200 on", err, in.At(199).cfg.Seed, in.At(200).cfg.Seed)
	}
	if err := in.Set(300, mustRoutes(t, must(Ring(3, 1, DefaultLinks())), RouteConfig{})); err == nil {
		t.Error("Set of another fabric's routes = nil; want an error")
	}
}

func TestRoutesKeepTheirConfig(t *testing.T) {
	f := must(Ring(3, 1, DefaultLinks()))
	cfg := RouteConfig{Seed: 9, Overrides: f.RouteTo(4, 0, 2), Down: []int{1}}
	if got := mustRoutes(t, f, cfg).Config(); !cmp.Equal(got, cfg, cmpopts.EquateComparable(netip.Prefix{})) {
		t.Errorf("Config() = %+v; want %+v", got, cfg)
	}
}
