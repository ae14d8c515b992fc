package topo

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func itoa(n int) string { return strconv.Itoa(n) }

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// must is for fabrics that tests know to be valid.
func must(f *Fabric, err error) *Fabric {
	if err != nil {
		panic(err)
	}
	return f
}

func mustRoutes(t testing.TB, f *Fabric, cfg RouteConfig) *Routes {
	t.Helper()
	r, err := NewRoutes(f, cfg)
	if err != nil {
		t.Fatalf("NewRoutes(%s) = %v; want no error", f.Name(), err)
	}
	return r
}

func id(t testing.TB, f *Fabric, name string) model.NodeID {
	t.Helper()
	n, ok := f.ByName(name)
	if !ok {
		t.Fatalf("fabric %s has no node %s", f.Name(), name)
	}
	return n
}

func ip(s string) model.Addr { return model.AddrOf(netip.MustParseAddr(s)) }

// key is a flow between two nodes; port distinguishes flows.
func key(t testing.TB, f *Fabric, src, dst string, port int) model.FlowKey {
	t.Helper()
	return model.FlowKey{
		Src: f.Node(id(t, f, src)).IPv4, Dst: f.Node(id(t, f, dst)).IPv4,
		SrcPort: uint16(port), DstPort: 4791, Proto: model.UDP,
	}
}

// fabrics is one small fabric of each kind.
func fabrics() map[string]*Fabric {
	out := make(map[string]*Fabric)
	for _, k := range Kinds() {
		out[k.Name] = must(Generate(Spec{Kind: k.Name}))
	}
	return out
}

// lab builds a fabric from a list of links; names starting with h are hosts,
// with b borders, others switches.
func lab(t testing.TB, links ...[2]string) *Fabric {
	t.Helper()
	b := NewBuilder("lab")
	node := func(name string) model.NodeID {
		if n, ok := b.ByName(name); ok {
			return n
		}
		role := Switch
		switch name[0] {
		case 'h':
			role = Host
		case 'b':
			role = Border
		}
		return b.AddNode(NodeSpec{Name: name, Role: role, Pod: NoPod})
	}
	for _, l := range links {
		b.Connect(node(l[0]), node(l[1]), DefaultLinks().Fabric)
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// randomFabric draws small fabrics with everything that routing must handle:
// hosts without links or with several, parallel links, hosts next to hosts,
// parts without connection, prefixes with several owners, hosts and switches
// among them.
func randomFabric(t *rapid.T) *Fabric {
	b := NewBuilder("random")
	nets := []string{"0.0.0.0/0", "::/0", "192.0.2.0/24", "192.0.2.128/25", "192.0.2.200/32", "2001:db8::/32"}
	var all []model.NodeID
	n := rapid.IntRange(1, 12).Draw(t, "nodes")
	for i := range n {
		s := NodeSpec{Name: fmt.Sprintf("n%d", i), Pod: NoPod, Role: rapid.SampledFrom([]Role{Host, Switch, Switch}).Draw(t, "role")}
		if rapid.IntRange(0, 3).Draw(t, "owns nets") == 0 {
			for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(nets), 1, 3, rapid.ID).Draw(t, "nets") {
				s.Nets = append(s.Nets, netip.MustParsePrefix(p))
			}
		}
		all = append(all, b.AddNode(s))
	}
	for range rapid.IntRange(0, 2*n).Draw(t, "links") {
		x := rapid.SampledFrom(all).Draw(t, "a")
		y := rapid.SampledFrom(all).Draw(t, "b")
		if x == y {
			continue
		}
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "parallel") {
			b.Connect(x, y, DefaultLinks().Fabric)
		}
	}
	return must(b.Build())
}

// addrsOf are addresses worth routing to: every node's, and some in each net.
func addrsOf(f *Fabric) []model.Addr {
	out := []model.Addr{ip("192.0.2.1"), ip("192.0.2.129"), ip("192.0.2.200"), ip("198.51.100.1"), ip("2001:db8::1"), ip("2001:db9::1")}
	for i := range f.nodes {
		out = append(out, f.nodes[i].IPv4, f.nodes[i].IPv6)
	}
	return out
}

// slowRoutes is the reference implementation of Routes: Floyd and Warshall's
// distances with only switches in the middle, and the definition of an
// equal-cost next hop.
type slowRoutes struct {
	f    *Fabric
	down []int
	dist [][]int

	moved map[model.Addr]model.NodeID
}

const far = 1 << 20

func newSlow(f *Fabric, down ...int) *slowRoutes {
	s := &slowRoutes{f: f, down: down}
	for i := range f.nodes {
		row := slices.Repeat([]int{far}, len(f.nodes))
		row[i] = 0
		s.dist = append(s.dist, row)
	}
	for i, l := range f.links {
		if !slices.Contains(down, i) {
			s.dist[l.A.Node][l.B.Node], s.dist[l.B.Node][l.A.Node] = 1, 1
		}
	}
	for _, k := range f.switches {
		for i := range s.dist {
			for j := range s.dist {
				s.dist[i][j] = min(s.dist[i][j], s.dist[i][k]+s.dist[k][j])
			}
		}
	}
	return s
}

// owners tries all prefixes.
func (s *slowRoutes) owners(a model.Addr) (out []model.NodeID) {
	if id, moved := s.moved[a]; moved {
		return []model.NodeID{id}
	}
	best := -1
	for i := range s.f.nodes {
		n := &s.f.nodes[i]
		if a == n.IPv4 || a == n.IPv6 {
			return []model.NodeID{n.ID}
		}
		for _, p := range n.Nets {
			if p.Contains(a.Netip()) && p.Bits() > best {
				best = p.Bits()
			}
		}
	}
	for i := range s.f.nodes {
		n := &s.f.nodes[i]
		if slices.ContainsFunc(n.Nets, func(p netip.Prefix) bool { return p.Contains(a.Netip()) && p.Bits() == best }) {
			out = append(out, n.ID)
		}
	}
	return out
}

func (s *slowRoutes) distance(from model.NodeID, a model.Addr) int {
	d := far
	for _, o := range s.owners(a) {
		d = min(d, s.dist[from][o])
	}
	return d
}

func (s *slowRoutes) nextHops(from model.NodeID, a model.Addr) (out []model.PortID) {
	d := s.distance(from, a)
	if d == 0 {
		return []model.PortID{0}
	}
	if d >= far {
		return nil
	}
	for i := range s.f.nodes[from].Ports {
		p := &s.f.nodes[from].Ports[i]
		peer := &s.f.nodes[p.Peer.Node]
		if slices.Contains(s.down, p.Link) {
			continue
		}
		rest := s.distance(peer.ID, a)
		if rest == 0 && d == 1 || peer.Role.IsSwitch() && rest+1 == d {
			out = append(out, p.ID)
		}
	}
	return out
}

func (s *slowRoutes) lastHops(a model.Addr) (out []model.NodeID) {
	owners := s.owners(a)
	for _, sw := range s.f.switches {
		ok := slices.Contains(owners, sw)
		for i := range s.f.nodes[sw].Ports {
			p := &s.f.nodes[sw].Ports[i]
			host := !s.f.nodes[p.Peer.Node].Role.IsSwitch()
			ok = ok || host && !slices.Contains(s.down, p.Link) && slices.Contains(owners, p.Peer.Node)
		}
		if ok {
			out = append(out, sw)
		}
	}
	return out
}
