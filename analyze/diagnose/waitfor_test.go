package diagnose

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/provenance"
)

// randomGraph is a random wait-for graph.
type randomGraph struct {
	n      int
	waits  []bool
	edges  []provenance.Edge // by From
	starts []provenance.Edge
}

func drawGraph(rt *rapid.T) randomGraph {
	m := randomGraph{n: rapid.IntRange(1, 9).Draw(rt, "nodes")}
	for from := range m.n {
		m.waits = append(m.waits, rapid.IntRange(0, 3).Draw(rt, "waits") > 0)
		for to := range m.n {
			if to != from && rapid.IntRange(0, 3).Draw(rt, "edge") == 0 {
				m.edges = append(m.edges, provenance.Edge{
					From: from, To: to,
					Weight: float64(rapid.IntRange(0, 4).Draw(rt, "weight")),
				})
			}
		}
	}
	for i := range m.n {
		if i == 0 || rapid.IntRange(0, 4).Draw(rt, "start") == 0 {
			m.starts = append(m.starts, provenance.Edge{
				From: -1, To: i,
				Weight: float64(rapid.IntRange(1, 5).Draw(rt, "weight")),
			})
		}
	}
	return m
}

func (m *randomGraph) waitFor() *waitForGraph {
	return &waitForGraph{
		nodes:    m.n,
		blocked:  func(n int) bool { return m.waits[n] },
		blockers: func(n int) []provenance.Edge { return provenance.EdgesFrom(m.edges, n) },
	}
}

// reference is the same by brute force: which node reaches which, by repeating
// until nothing changes.
type reference struct {
	*randomGraph
	reach [][]bool // by from, to: one step at least
}

func newReference(m *randomGraph) *reference {
	t := &reference{randomGraph: m, reach: make([][]bool, m.n)}
	for i := range t.reach {
		t.reach[i] = make([]bool, m.n)
	}
	for _, e := range m.edges {
		if m.waits[e.From] && e.Weight > 0 {
			t.reach[e.From][e.To] = true
		}
	}
	for range m.n {
		for i := range m.n {
			for j := range m.n {
				for k := range m.n {
					t.reach[i][k] = t.reach[i][k] || t.reach[i][j] && t.reach[j][k]
				}
			}
		}
	}
	return t
}

// reachable returns the nodes that some nodes wait for, those included.
func (t *reference) reachable(from []int) map[int]bool {
	out := map[int]bool{}
	for _, f := range from {
		out[f] = true
		for to := range t.n {
			if t.reach[f][to] {
				out[to] = true
			}
		}
	}
	return out
}

// component returns the nodes that wait for each other with one, itself included.
func (t *reference) component(n int) (list []int) {
	for m := range t.n {
		if m == n || t.reach[n][m] && t.reach[m][n] {
			list = append(list, m)
		}
	}
	return list
}

// distribute shares out a mass along every path.
func (t *reference) distribute(n int, mass float64, ends, cycles map[int]float64) {
	group := t.component(n)
	var leave []provenance.Edge
	sum := 0.0
	for _, e := range t.edges {
		if t.waits[e.From] && e.Weight > 0 && slices.Contains(group, e.From) && !slices.Contains(group, e.To) {
			leave = append(leave, e)
			sum += e.Weight
		}
	}
	if len(group) > 1 {
		cycles[group[0]] += mass
	} else if len(leave) == 0 {
		ends[n] += mass
	}
	for _, e := range leave {
		t.distribute(e.To, mass*e.Weight/sum, ends, cycles)
	}
}

func TestTraceEqualsTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawGraph(rt)
		w := newReference(&m)
		got := m.waitFor().trace(m.starts)
		ends, cycles := map[int]float64{}, map[int]float64{}
		total := 0.0
		for _, s := range m.starts {
			total += s.Weight
		}
		for _, s := range m.starts {
			w.distribute(s.To, s.Weight/total, ends, cycles)
		}
		gotEnds := map[int]float64{}
		for i, e := range got.terminals {
			gotEnds[e.node] = e.share
			if i > 0 && got.terminals[i-1].share < e.share {
				rt.Fatalf("terminals %+v; want the heaviest first", got.terminals)
			}
			m.checkPath(rt, e.path, e.node)
		}
		sameMap(rt, "terminals", gotEnds, ends)
		gotCycles := map[int]float64{}
		for _, l := range got.cycles {
			nodes := slices.Sorted(slices.Values(l.nodes))
			gotCycles[nodes[0]] = l.share
			if want := w.component(nodes[0]); !slices.Equal(nodes, want) {
				rt.Fatalf("cycle %v; want %v", nodes, want)
			}
			m.checkPath(rt, l.entry, l.entry[len(l.entry)-1])
			w.checkOutside(rt, l)
		}
		sameMap(rt, "cycles", gotCycles, cycles)
	})
}

// checkPath checks that a path begins at a start, follows edges and ends where
// it should.
func (m *randomGraph) checkPath(rt *rapid.T, via []int, end int) {
	if len(via) == 0 || via[len(via)-1] != end ||
		!slices.ContainsFunc(m.starts, func(e provenance.Edge) bool { return e.To == via[0] }) {
		rt.Fatalf("path %v to %d; want one from a start", via, end)
	}
	for i := 1; i < len(via); i++ {
		if !m.waits[via[i-1]] || !slices.ContainsFunc(m.edges,
			func(e provenance.Edge) bool { return e.From == via[i-1] && e.To == via[i] && e.Weight > 0 }) {
			rt.Fatalf("path %v; there is no edge from %d to %d", via, via[i-1], via[i])
		}
	}
}

// checkOutside checks where the wait-for paths of a cycle end outside of it.
func (t *reference) checkOutside(rt *rapid.T, l cycle) {
	want := map[int]bool{}
	for n := range t.reachable(l.nodes) {
		ends := !slices.ContainsFunc(t.edges, func(e provenance.Edge) bool {
			return e.From == n && t.waits[n] &&
				e.Weight > 0
		})
		if ends && !slices.Contains(l.nodes, n) {
			want[n] = true
		}
	}
	got := map[int]bool{}
	for _, e := range l.terminals {
		got[e.node] = true
	}
	if !maps.Equal(got, want) {
		rt.Fatalf("cycle %v ends at %v; want %v", l.nodes, got, want)
	}
}

func sameMap(rt *rapid.T, what string, got, want map[int]float64) {
	ok := len(got) == len(want)
	for n, b := range want {
		g, there := got[n]
		ok = ok && there && math.Abs(g-b) < 1e-9
	}
	if !ok {
		rt.Fatalf("%s %v; want %v", what, got, want)
	}
}
