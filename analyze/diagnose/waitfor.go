package diagnose

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/internal/scc"
)

// waitForGraph says which queues of a provenance graph wait for which. There
// are two: that of the snapshots, and that of the epochs before them.
type waitForGraph struct {
	nodes    int
	blocked  func(n int) bool              // it waits for its neighbour; otherwise it sends, and its flows contend
	blockers func(n int) []provenance.Edge // queues of the neighbour that hold its packets, weighted
}

// terminal is a queue where a wait-for path ends.
type terminal struct {
	node  int
	share float64 // of the waiting that ends here
	path  []int   // nodes from a start to here, both included
}

// traceResult is where the wait-for paths from some queues lead.
type traceResult struct {
	terminals []terminal // queues that send or whose blocker is unknown, largest share first
	cycles    []cycle    // queues that wait for each other
}

// cycle is a strongly connected component with more than one queue.
type cycle struct {
	nodes     []int // in wait-for order, as far as there is one
	share     float64
	entry     []int      // nodes from a start to the first one of the cycle
	terminals []terminal // where its wait-for paths end outside of it
}

// trace follows the wait-for paths from some queues, each with a weight, to
// where they end. A queue's weight is shared among those it waits for by their
// weights; a cycle passes on what enters it to what it waits for outside.
func (r *waitForGraph) trace(starts []provenance.Edge) traceResult {
	parts := r.components(starts)
	mass := make([]float64, len(parts.list))
	total := 0.0
	for _, s := range starts {
		total += s.Weight
	}
	for _, s := range starts {
		mass[parts.index[s.To]] += s.Weight / total
	}
	paths := r.paths(starts)
	var t traceResult
	// Components come in reverse topological order: the last one waits for
	// those before it.
	for i := len(parts.list) - 1; i >= 0; i-- {
		members := parts.list[i]
		leave := r.leavingEdges(parts, i)
		sum := 0.0
		for _, e := range leave {
			sum += e.Weight
		}
		for _, e := range leave {
			if sum > 0 {
				mass[parts.index[e.To]] += mass[i] * e.Weight / sum
			}
		}
		switch {
		case len(members) > 1:
			t.cycles = append(t.cycles, cycle{nodes: r.orderCycle(members), share: mass[i], entry: shortestPath(members, paths)})
		case len(leave) == 0:
			t.terminals = append(t.terminals, terminal{node: members[0], share: mass[i], path: paths[members[0]]})
		}
	}
	for i := range t.cycles {
		t.cycles[i].terminals = r.terminalsOutside(t.cycles[i].nodes)
	}
	heavier := func(a, b terminal) int { return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.node, b.node)) }
	slices.SortFunc(t.terminals, heavier)
	slices.SortFunc(t.cycles, func(a, b cycle) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.nodes[0], b.nodes[0]))
	})
	return t
}

// terminalsOutside returns where the wait-for paths of a cycle end outside of
// it. Nothing there waits for the cycle, or it would be part of it.
func (r *waitForGraph) terminalsOutside(cycle []int) []terminal {
	var starts []provenance.Edge
	for _, n := range cycle {
		for _, e := range r.blockersOf(n) {
			if e.Weight > 0 && !slices.Contains(cycle, e.To) {
				starts = append(starts, e)
			}
		}
	}
	if len(starts) == 0 {
		return nil
	}
	return r.trace(starts).terminals
}

// extend follows the result of another graph to the terminals of this one, in
// which more queues are blocked. The cycles stay as they are.
func (r *waitForGraph) extend(t traceResult) traceResult {
	for i := range t.cycles {
		t.cycles[i].terminals = r.terminalsOutside(t.cycles[i].nodes)
	}
	var ends []terminal
	for _, e := range t.terminals {
		on := r.trace([]provenance.Edge{{From: -1, To: e.node, Weight: 1}})
		if len(on.cycles) > 0 {
			ends = append(ends, e)
			continue
		}
		for _, o := range on.terminals {
			ends = append(ends, terminal{
				node: o.node, share: e.share * o.share,
				path: append(slices.Clone(e.path), o.path[1:]...),
			})
		}
	}
	t.terminals = ends
	return t
}

// blockersOf returns what a queue waits for.
func (r *waitForGraph) blockersOf(n int) []provenance.Edge {
	if !r.blocked(n) {
		return nil
	}
	return r.blockers(n)
}

// leavingEdges returns the edges of a component to others.
func (r *waitForGraph) leavingEdges(p components, i int) (list []provenance.Edge) {
	for _, n := range p.list[i] {
		for _, e := range r.blockersOf(n) {
			if p.index[e.To] != i && e.Weight > 0 {
				list = append(list, e)
			}
		}
	}
	return list
}

// components are the strongly connected components, each before those that
// wait for it.
type components struct {
	list  [][]int
	index []int // by node; -1: not reached
}

// components finds the strongly connected components that the starts reach.
func (r *waitForGraph) components(starts []provenance.Edge) components {
	p := components{index: make([]int, r.nodes)}
	for i := range p.index {
		p.index[i] = -1
	}
	from := func(yield func(int) bool) {
		for _, s := range starts {
			if !yield(s.To) {
				return
			}
		}
	}
	p.list = scc.Components(r.nodes, from, func(n int, list []int) []int {
		for _, e := range r.blockersOf(n) {
			if e.Weight > 0 {
				list = append(list, e.To)
			}
		}
		return list
	})
	for i, part := range p.list {
		for _, n := range part {
			p.index[n] = i
		}
	}
	return p
}

// paths returns a path with the fewest hops from a start to every node that is
// reached; of equal ones that with heavier edges.
func (r *waitForGraph) paths(starts []provenance.Edge) map[int][]int {
	found := map[int][]int{}
	heaviest := func(list []provenance.Edge) []provenance.Edge {
		return slices.SortedFunc(slices.Values(list), func(a, b provenance.Edge) int {
			return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.To, b.To))
		})
	}
	var queue []int
	for _, s := range heaviest(starts) {
		if found[s.To] == nil {
			found[s.To] = []int{s.To}
			queue = append(queue, s.To)
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, e := range heaviest(r.blockersOf(n)) {
			if e.Weight > 0 && found[e.To] == nil {
				found[e.To] = append(slices.Clone(found[n]), e.To)
				queue = append(queue, e.To)
			}
		}
	}
	return found
}

// shortestPath returns the shortest of the paths to some nodes.
func shortestPath(nodes []int, paths map[int][]int) (best []int) {
	for _, n := range nodes {
		if p := paths[n]; p != nil && (best == nil || len(p) < len(best)) {
			best = p
		}
	}
	return best
}

// orderCycle puts the queues of a cycle into wait-for order: from the lowest
// on, always to the heaviest one not yet listed; those off that path follow.
func (r *waitForGraph) orderCycle(members []int) (walk []int) {
	left := map[int]bool{}
	for _, m := range members {
		left[m] = true
	}
	for at := members[0]; at >= 0; {
		walk = append(walk, at)
		delete(left, at)
		next, weight := -1, 0.0
		for _, e := range r.blockersOf(at) {
			if left[e.To] && e.Weight > weight {
				next, weight = e.To, e.Weight
			}
		}
		at = next
	}
	for _, m := range members {
		if left[m] {
			walk = append(walk, m)
		}
	}
	return walk
}
