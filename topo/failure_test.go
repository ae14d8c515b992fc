package topo

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// TestFailuresOfCleanFabrics: no single failure of a fabric with spare paths
// closes a cycle or parts hosts that it does not cut off itself.
func TestFailuresOfCleanFabrics(t *testing.T) {
	for name, f := range map[string]*Fabric{
		"fat-tree":   must(FatTree(6, DefaultLinks())),
		"leaf-spine": must(LeafSpine(5, 3, 3, DefaultLinks())),
		"clos":       must(Clos(DefaultClos(), DefaultLinks())),
	} {
		fc := NewFailureCheck(mustRoutes(t, f, RouteConfig{}))
		for _, x := range f.SingleFailures() {
			out, err := fc.After(x)
			if err != nil || len(out.Cycles) > 0 || out.LostPairs > 0 {
				t.Errorf("%s without %s: %d cycles, %d pairs lost, %v; want nothing", name, f.FailureName(x), len(out.Cycles), out.LostPairs, err)
			}
		}
	}
}

// TestFailuresEqualReference compares what two failures of a fat-tree lead to
// with an exhaustive search of all paths.
func TestFailuresEqualReference(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	fc := NewFailureCheck(mustRoutes(t, f, RouteConfig{}))
	cyclic, lost := 0, 0
	for _, x := range f.DoubleFailures(120, 1) {
		out, err := fc.After(x)
		if err != nil {
			t.Fatal(err)
		}
		r := mustRoutes(t, f, RouteConfig{Down: x.Links})
		if got, want := len(out.Cycles) > 0, slowCycle(r); got != want {
			t.Fatalf("%s: a cycle: %v; want %v", f.FailureName(x), got, want)
		}
		pairs := slowLostPairs(r)
		if out.LostPairs != pairs {
			t.Fatalf("%s: %d pairs lost; want %d", f.FailureName(x), out.LostPairs, pairs)
		}
		if len(out.Cycles) > 0 {
			cyclic++
		}
		if pairs > 0 {
			lost++
			if _, err := out.Routes.Path(model.FlowKey{Src: f.Node(out.Src).IPv4, Dst: f.Node(out.Dst).IPv4}, out.Src); err == nil {
				t.Errorf("%s: %s still has a route to %s", f.FailureName(x), f.Node(out.Src).Name, f.Node(out.Dst).Name)
			}
		}
	}
	if cyclic == 0 || lost == 0 {
		t.Errorf("of 120 double failures %d close a cycle and %d part hosts; want some of each", cyclic, lost)
	}
}

// slowLostPairs counts ordered pairs of hosts with a link and without a route.
func slowLostPairs(r *Routes) (n int) {
	attached := func(id model.NodeID) bool {
		return slices.ContainsFunc(r.f.nodes[id].Ports, func(p Port) bool { return !r.down[p.Link] })
	}
	for _, a := range r.f.hosts {
		for _, b := range r.f.hosts {
			if a != b && attached(a) && attached(b) && len(r.NextHops(a, r.f.nodes[b].IPv4)) == 0 {
				n++
			} else if a != b && attached(a) && attached(b) {
				if paths, _ := r.Paths(a, r.f.nodes[b].IPv4, 1); len(paths) == 0 {
					n++
				}
			}
		}
	}
	return n
}

// TestStaticRoutesDoNotReact: a static route into a link that fails loses its
// packets, though other paths are left.
func TestStaticRoutesDoNotReact(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	tor, _ := f.ByName("tor0")
	leaf, _ := f.ByName("leaf0")
	h, _ := f.ByName("h15")
	up := f.Node(tor).PortsTo(leaf)[0]
	fc := NewFailureCheck(mustRoutes(t, f, RouteConfig{Overrides: f.RouteTo(tor, h, up)}))
	out, err := fc.After(f.LinkFailure(f.Node(tor).Port(up).Link))
	if err != nil || out.LostPairs != 2 || out.Stops != tor || out.Dst != h {
		t.Errorf("without the link of a static route: %d pairs lost at node %d to %d, %v; want the 2 of tor0's hosts to h15", out.LostPairs, out.Stops, out.Dst, err)
	}
}

// TestCycleThatExistsAnywayIsNotNew: a ring has its cycles without a failure.
func TestCycleThatExistsAnywayIsNotNew(t *testing.T) {
	f := must(Ring(6, 1, DefaultLinks()))
	fc := NewFailureCheck(mustRoutes(t, f, RouteConfig{}))
	for _, x := range f.SingleFailures() {
		if out, err := fc.After(x); err != nil || len(out.Cycles) > 0 || out.LostPairs > 0 {
			t.Errorf("%s: cycles %v, %d pairs lost, %v; want nothing new", f.FailureName(x), out.Cycles, out.LostPairs, err)
		}
	}
}

func BenchmarkSingleFailures(b *testing.B) {
	f := must(FatTree(16, DefaultLinks()))
	r, err := NewRoutes(f, RouteConfig{})
	if err != nil {
		b.Fatal(err)
	}
	all := f.SingleFailures()
	for b.Loop() {
		fc := NewFailureCheck(r)
		for _, x := range all {
			if _, err := fc.After(x); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(all)), "failures")
}
