package topo

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// problems lists the problems of findings, for comparison.
func problems(found []Finding) (out []Problem) {
	for _, f := range found {
		out = append(out, f.Problem)
	}
	return out
}

func TestGeneratedFabricsAreSound(t *testing.T) {
	for name, f := range fabrics() {
		found := Check(mustRoutes(t, f, RouteConfig{}))
		want := []Problem(nil)
		if name == "ring" {
			want = []Problem{BufferCycle, BufferCycle} // one in each direction, by nature
		}
		if got := problems(found); !slices.Equal(got, want) {
			t.Errorf("Check(%s) = %v; want %v", name, found, want)
		}
	}
}

// TestFatTreeHasNoBufferCycle: shortest paths in a fat-tree go up and then
// down, so no cycle of links can depend on itself.
func TestFatTreeHasNoBufferCycle(t *testing.T) {
	for _, k := range []int{2, 4, 6, 8} {
		found := Check(mustRoutes(t, must(FatTree(k, DefaultLinks())), RouteConfig{}))
		if len(found) != 0 {
			t.Errorf("Check(fat-tree k=%d) = %v; want nothing", k, found)
		}
	}
}

// TestBouncedPathsMakeCycles: when links fail, shortest paths may go down
// and up again, and such bounces can close a cycle. Check must agree with the
// reference search for cycles on fat-trees with random failures.
func TestBouncedPathsMakeCycles(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	cyclic := 0
	for seed := range uint64(60) {
		rnd := rng(seed)
		var down []int
		for i := range f.links {
			if !f.isHostLink(i) && rnd.IntN(4) == 0 {
				down = append(down, i)
			}
		}
		r := mustRoutes(t, f, RouteConfig{Down: down})
		got := slices.Contains(problems(Check(r)), BufferCycle)
		if want := slowCycle(r); got != want {
			t.Fatalf("links %v down: Check finds a cycle: %v; want %v", down, got, want)
		}
		if got {
			cyclic++
		}
	}
	if cyclic == 0 || cyclic == 60 {
		t.Errorf("%d of 60 fat-trees with failed links have cycles; want some with and some without", cyclic)
	}
}

func (f *Fabric) isHostLink(i int) bool {
	l := &f.links[i]
	return !f.nodes[l.A.Node].Role.IsSwitch() || !f.nodes[l.B.Node].Role.IsSwitch()
}

// slowCycle is the reference implementation: walk all paths between all hosts,
// record which port follows which, and search for a port that follows itself.
func slowCycle(r *Routes) bool {
	follows := make(map[model.Port]map[model.Port]bool)
	for _, src := range r.f.hosts {
		for _, dst := range r.f.hosts {
			if src == dst {
				continue
			}
			for _, a := range []model.Addr{r.f.nodes[dst].IPv4, r.f.nodes[dst].IPv6} {
				paths, _ := r.Paths(src, a, 1<<20)
				for _, p := range paths {
					for i := 1; i+2 < len(p); i++ {
						x, y := model.Port{Node: p[i].Node, Port: p[i].Out}, model.Port{Node: p[i+1].Node, Port: p[i+1].Out}
						if follows[x] == nil {
							follows[x] = make(map[model.Port]bool)
						}
						follows[x][y] = true
					}
				}
			}
		}
	}
	for start := range follows {
		seen := make(map[model.Port]bool)
		queue := []model.Port{start}
		for len(queue) > 0 {
			for next := range follows[queue[0]] {
				if next == start {
					return true
				}
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
			queue = queue[1:]
		}
	}
	return false
}

// randomOverrides draws static routes to hosts, by any port.
func randomOverrides(t *rapid.T, f *Fabric) (out []Override) {
	seen := make(map[[2]model.NodeID]bool)
	for range rapid.IntRange(0, 4).Draw(t, "overrides") {
		if len(f.switches) == 0 || len(f.hosts) == 0 {
			return nil
		}
		at := rapid.SampledFrom(f.switches).Draw(t, "at")
		to := rapid.SampledFrom(f.hosts).Draw(t, "to")
		n := len(f.nodes[at].Ports)
		if n == 0 || seen[[2]model.NodeID{at, to}] {
			continue
		}
		seen[[2]model.NodeID{at, to}] = true
		routes := f.RouteTo(at, to, model.PortID(rapid.IntRange(1, n).Draw(t, "port")))
		out = append(out, routes[:rapid.IntRange(1, 2).Draw(t, "families")]...)
	}
	return out
}

func TestCyclesEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFabric(t)
		r, err := NewRoutes(f, RouteConfig{Overrides: randomOverrides(t, f)})
		if err != nil {
			t.Fatal(err)
		}
		found := problems(Check(r))
		// The reference omits paths that do not arrive, and has no nets.
		if slices.Contains(found, Loop) || slices.Contains(found, Unreachable) ||
			slices.ContainsFunc(f.nodes, func(n Node) bool { return len(n.Nets) > 0 }) {
			return
		}
		if got, want := slices.Contains(found, BufferCycle), slowCycle(r); got != want {
			t.Fatalf("Check finds a cycle: %v; want %v", got, want)
		}
	})
}

// TestLoopsEqualReference: there is a loop exactly if some switch can be reached
// from itself by packets to some address.
func TestLoopsEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFabric(t)
		r, err := NewRoutes(f, RouteConfig{Overrides: randomOverrides(t, f)})
		if err != nil {
			t.Fatal(err)
		}
		want := false
		for _, a := range addrsOf(f) {
			for _, sw := range f.switches {
				want = want || slowReaches(r, a, sw, sw, map[model.NodeID]bool{})
			}
		}
		if got := slices.Contains(problems(Check(r)), Loop); got != want {
			t.Fatalf("Check finds a loop: %v; want %v", got, want)
		}
	})
}

// slowReaches reports whether packets to a may get from one switch to another in
// one or more hops.
func slowReaches(r *Routes, a model.Addr, from, to model.NodeID, seen map[model.NodeID]bool) bool {
	for _, p := range r.NextHops(from, a) {
		if p == 0 {
			continue
		}
		peer := r.f.nodes[from].Ports[p-1].Peer.Node
		if peer == to {
			return true
		}
		if r.f.nodes[peer].Role.IsSwitch() && !seen[peer] {
			seen[peer] = true
			if slowReaches(r, a, peer, to, seen) {
				return true
			}
		}
	}
	return false
}

// clockwise makes every switch of a ring forward all packets that are not for
// its own hosts to its next neighbour.
func clockwise(f *Fabric) (out []Override) {
	for i, at := range f.switches {
		next := f.nodes[at].PortsTo(f.switches[(i+1)%len(f.switches)])
		for _, h := range f.hosts {
			if f.nodes[h].Ports[0].Peer.Node != at {
				out = append(out, f.RouteTo(at, h, next...)...)
			}
		}
	}
	return out
}

// TestRingsDeadlock: a triangle has direct links between all switches and no
// cycle; with static routes that all turn in the same direction it has one, and
// the finding names the ports in order.
func TestRingsDeadlock(t *testing.T) {
	f := must(Ring(3, 1, DefaultLinks()))
	if found := Check(mustRoutes(t, f, RouteConfig{})); len(found) != 0 {
		t.Errorf("Check(triangle) = %v; want nothing", found)
	}
	found := Check(mustRoutes(t, f, RouteConfig{Overrides: clockwise(f)}))
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Problem == BufferCycle })
	if i < 0 {
		t.Fatalf("Check(triangle, clockwise) = %v; want a cycle", found)
	}
	const want = "of 3 ports: s0 Ethernet4 → s1, s1 Ethernet8 → s2, s2 Ethernet8 → s0;"
	if !strings.Contains(found[i].Text, want) {
		t.Errorf("finding %q; want it to name %s", found[i].Text, want)
	}
	for n := range found[i].Ports {
		here, next := found[i].Ports[n], found[i].Ports[(n+1)%len(found[i].Ports)]
		if f.Port(here).Peer.Node != next.Node {
			t.Errorf("cycle %v: port %v leads to node %d; want %d", found[i].Ports, here, f.Port(here).Peer.Node, next.Node)
		}
	}
	if problems(found)[0] == Loop || slices.ContainsFunc(found, func(f Finding) bool { return f.Severity == Fault }) {
		t.Errorf("Check(triangle, clockwise) = %v; want no fault, all packets arrive", found)
	}
}

func TestCheckNamesLoops(t *testing.T) {
	f := must(Ring(4, 1, DefaultLinks()))
	s1, s2, h0 := id(t, f, "s1"), id(t, f, "s2"), id(t, f, "h0")
	r := mustRoutes(t, f, RouteConfig{Overrides: slices.Concat(
		f.RouteTo(s1, h0, f.Node(s1).PortsTo(s2)...),
		f.RouteTo(s2, h0, f.Node(s2).PortsTo(s1)...),
	)})
	found := Check(r)
	if found[0].Problem != Loop || found[0].Severity != Fault ||
		!strings.Contains(found[0].Text, "s1 > s2 > s1") || !strings.Contains(found[0].Text, "h0") {
		t.Errorf("Check = %v; want first a loop s1 > s2 > s1 for packets to h0", found)
	}
	// h1 and h2 reach h0 no more; h3 is next to it.
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Problem == Unreachable })
	if i < 0 || !strings.HasPrefix(found[i].Text, "no route for 2 ordered host pairs") {
		t.Errorf("Check = %v; want 2 ordered host pairs unreachable", found)
	}
}

// TestHalfOfTheFlowsLoop: one of two equal-cost paths returns.
func TestHalfOfTheFlowsLoop(t *testing.T) {
	// h0 - s0 - {s1, s2} - s3 - h1; s1 sends packets for h1 back.
	f := lab(t, [2]string{"h0", "s0"}, [2]string{"s0", "s1"}, [2]string{"s0", "s2"}, [2]string{"s1", "s3"}, [2]string{"s2", "s3"}, [2]string{"s3", "h1"})
	s1 := id(t, f, "s1")
	found := Check(mustRoutes(t, f, RouteConfig{Overrides: f.RouteTo(s1, id(t, f, "h1"), 1)}))
	text := ""
	for _, x := range found {
		text += x.String() + "\n"
	}
	for _, want := range []string{
		"fault: forwarding loop s0 > s1 > s0 for packets to h1",
		"fault: no route for some flows of 1 ordered host pair, for example h0 → h1",
		"warning: 2 of 2 static routes leave the shortest paths, for example s1 forwards packets to",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("Check =\n%swant a line with %q", text, want)
		}
	}
}

func TestCheckFindsBrokenFabrics(t *testing.T) {
	b := NewBuilder("broken")
	spec := DefaultLinks().Fabric
	lossy, slow := spec, spec
	lossy.ErrorRate, slow.Rate = 0.01, model.Gbps
	names := []string{"h0", "h1", "h2", "s0", "s1", "s2", "s3", "alone"}
	ids := make(map[string]model.NodeID)
	for _, n := range names {
		role := Switch
		if n[0] == 'h' {
			role = Host
		}
		s := NodeSpec{Name: n, Role: role, Pod: NoPod}
		if n == "h2" {
			s.Nets = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		}
		ids[n] = b.AddNode(s)
	}
	b.Connect(ids["h0"], ids["s0"], lossy)
	b.Connect(ids["s0"], ids["s1"], spec)
	b.Connect(ids["s0"], ids["s1"], slow)
	b.Connect(ids["h1"], ids["s1"], spec)
	b.Connect(ids["h2"], ids["s2"], spec)
	b.Connect(ids["s2"], ids["s3"], spec)
	found := Check(mustRoutes(t, must(b.Build()), RouteConfig{}))
	var text []string
	for _, f := range found {
		text = append(text, f.String())
	}
	want := []string{
		"fault: 1 node without links: alone",
		"fault: fabric is partitioned into 2 parts: 4 nodes with h0, 3 nodes with h2",
		"fault: no route for 4 ordered host pairs, for example h2 → h0: packets are dropped at h2",
		"fault: some hosts cannot reach 0.0.0.0/0",
		"warning: ECMP spreads flows evenly over links of different rates on s0, s1, for example s0 Ethernet8 → s1 (1 Gb/s) and s0 Ethernet4 → s1 (100 Gb/s)",
		"warning: packet loss on 1 link; the worst is h0 eth1 → s0 (1 % lost)",
	}
	if !slices.Equal(text, want) {
		t.Errorf("Check =\n%s\nwant\n%s", strings.Join(text, "\n"), strings.Join(want, "\n"))
	}
}

// TestReachEqualsReference counts pairs of hosts by following real flows.
func TestReachEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFabric(t)
		// Static routes to one address only would count a pair twice.
		over := slices.DeleteFunc(randomOverrides(t, f), func(o Override) bool { return o.To.Addr().Is6() })
		for _, o := range slices.Clone(over) {
			dst, _ := f.ByAddr(model.AddrOf(o.To.Addr()))
			over = append(over, f.RouteTo(o.At, dst, o.Ports...)[1])
		}
		r, err := NewRoutes(f, RouteConfig{Overrides: over})
		if err != nil {
			t.Fatal(err)
		}
		lost := 0
		for _, src := range f.hosts {
			for _, dst := range f.hosts {
				if paths, _ := r.Paths(src, f.nodes[dst].IPv4, 1); len(paths) == 0 {
					lost++
				}
			}
		}
		got := 0
		for _, x := range Check(r) {
			rest, routed := strings.CutPrefix(x.Text, "no route for ")
			if n, rest, _ := strings.Cut(rest, " "); routed && strings.HasPrefix(rest, "ordered host pair") {
				for _, c := range n {
					got = 10*got + int(c-'0')
				}
			}
		}
		if got != lost {
			t.Fatalf("Check counts %d pairs without a route; want %d", got, lost)
		}
	})
}
