package truth

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// anyGraph draws a graph of queues and flows that no network need have.
func anyGraph(rt *rapid.T, f *topo.Fabric) *Graph {
	g := &Graph{fabric: f}
	queues := rapid.IntRange(1, 12).Draw(rt, "queues")
	for i := range queues {
		g.Nodes = append(g.Nodes, State{
			Node:   QueueNode(model.Port{Node: model.NodeID(4 + i%4), Port: 1}, model.Priority(i/4)),
			Paused: rapid.IntRange(0, 4).Draw(rt, "paused") > 0,
		})
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "flows") {
		g.Nodes = append(g.Nodes, State{Node: FlowNode(i, false)})
	}
	index := rapid.IntRange(0, len(g.Nodes)-1)
	seen := map[[2]int]bool{}
	for range rapid.IntRange(0, 30).Draw(rt, "edges") {
		a, b := index.Draw(rt, "from"), index.Draw(rt, "to")
		if a != b && !seen[[2]int{a, b}] {
			seen[[2]int{a, b}] = true
			g.Edges = append(g.Edges, Edge{From: g.Nodes[a].Node, To: g.Nodes[b].Node})
		}
	}
	g.finish()
	return g
}

// reachable is the slow, obvious reference: the relation is extended until
// nothing changes. via says which nodes a path may lead through.
func reachable(g *Graph, via func(State) bool) map[[2]Node]bool {
	r := map[[2]Node]bool{}
	for _, e := range g.Edges {
		r[[2]Node{e.From, e.To}] = true
	}
	for {
		before := len(r)
		for _, a := range g.Nodes {
			for _, m := range g.Nodes {
				for _, b := range g.Nodes {
					if via(m) && r[[2]Node{a.Node, m.Node}] && r[[2]Node{m.Node, b.Node}] {
						r[[2]Node{a.Node, b.Node}] = true
					}
				}
			}
		}
		if len(r) == before {
			return r
		}
	}
}

func TestClosureMatchesReference(t *testing.T) {
	f := fabric(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := anyGraph(rt, f)
		r := reachable(g, func(s State) bool { return s.Kind != KindFlow })
		for _, from := range g.Nodes {
			c := g.Closure(from.Node)
			for _, to := range g.Nodes {
				want := from.Node == to.Node || r[[2]Node{from.Node, to.Node}]
				if got := c.Has(to.Node); got != want {
					rt.Fatalf("closure of %+v has %+v: %v; want %v\n%+v", from.Node, to.Node, got, want, g.Edges)
				}
			}
		}
	})
}

func TestCyclesMatchReference(t *testing.T) {
	f := fabric(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := anyGraph(rt, f)
		paused := func(s State) bool { return s.Kind == KindQueue && s.Paused }
		r := reachable(g, paused)
		loops := g.Cycles()
		in := func(n Node) int {
			return slices.IndexFunc(loops, func(l []Node) bool { return slices.Contains(l, n) })
		}
		members := 0
		for _, a := range g.Nodes {
			if in(a.Node) >= 0 {
				members++
			}
			for _, b := range g.Nodes {
				together := a.Node != b.Node && paused(a) && paused(b) && r[[2]Node{a.Node, b.Node}] && r[[2]Node{b.Node, a.Node}]
				if got := a.Node != b.Node && in(a.Node) >= 0 && in(a.Node) == in(b.Node); got != together {
					rt.Fatalf("%+v and %+v in one cycle of %+v: %v; want %v\n%+v", a.Node, b.Node, loops, got, together, g.Edges)
				}
			}
		}
		for _, l := range loops {
			members -= len(l)
			if len(l) < 2 || l[0] != slices.MinFunc(l, compareNodes) {
				rt.Fatalf("cycle %+v; want two or more, the least first", l)
			}
		}
		if members != 0 {
			rt.Fatalf("cycles %+v list a node twice", loops)
		}
	})
}

func fabric(t *testing.T) *topo.Fabric {
	f, err := topo.Ring(4, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return f
}
