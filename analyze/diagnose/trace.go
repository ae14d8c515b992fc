package diagnose

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/internal/scc"
)

// relation says who waits for whom among the queues of a graph. There are two:
// that of the snapshots, and that of the epochs before them.
type relation struct {
	nodes int
	waits func(n int) bool              // for its neighbour; else it sends, and what is in it competes
	out   func(n int) []provenance.Edge // what the neighbour holds of it, weighted
}

// end is a place where waiting ends.
type end struct {
	node  int
	blame float64 // share of the waiting that ends here
	via   []int   // nodes from a start to here, both included
}

// tracing is what waiting for some queues comes to.
type tracing struct {
	ends  []end   // queues that send or that wait for nothing known, heaviest blame first
	loops []cycle // queues that wait for each other
}

// cycle is a strongly connected part of the relation with more than one queue.
type cycle struct {
	nodes []int // in the order of waiting, as far as there is one
	blame float64
	entry []int // nodes from a start to the first of the loop that is met
	ends  []end // where waiting goes on to outside of it
}

// trace follows the waiting from some queues, each with a weight, to where it
// ends. A queue's waiting is shared among those it waits for by their weights;
// a loop passes on what enters it to what it waits for outside.
func (r *relation) trace(starts []provenance.Edge) tracing {
	parts := r.components(starts)
	mass := make([]float64, len(parts.list))
	total := 0.0
	for _, s := range starts {
		total += s.Weight
	}
	for _, s := range starts {
		mass[parts.of[s.To]] += s.Weight / total
	}
	paths := r.paths(starts)
	var t tracing
	// Components are found in the order of their ends: the last one waits for
	// those before it.
	for i := len(parts.list) - 1; i >= 0; i-- {
		members := parts.list[i]
		leave := r.leaving(parts, i)
		sum := 0.0
		for _, e := range leave {
			sum += e.Weight
		}
		for _, e := range leave {
			if sum > 0 {
				mass[parts.of[e.To]] += mass[i] * e.Weight / sum
			}
		}
		switch {
		case len(members) > 1:
			t.loops = append(t.loops, cycle{nodes: r.around(members), blame: mass[i], entry: nearest(members, paths)})
		case len(leave) == 0:
			t.ends = append(t.ends, end{node: members[0], blame: mass[i], via: paths[members[0]]})
		}
	}
	for i := range t.loops {
		t.loops[i].ends = r.beyond(t.loops[i].nodes)
	}
	heavier := func(a, b end) int { return cmp.Or(cmp.Compare(b.blame, a.blame), cmp.Compare(a.node, b.node)) }
	slices.SortFunc(t.ends, heavier)
	slices.SortFunc(t.loops, func(a, b cycle) int {
		return cmp.Or(cmp.Compare(b.blame, a.blame), cmp.Compare(a.nodes[0], b.nodes[0]))
	})
	return t
}

// beyond returns where the waiting of a loop ends outside of it. Nothing there
// waits for the loop, or it would be a part of it.
func (r *relation) beyond(loop []int) []end {
	var starts []provenance.Edge
	for _, n := range loop {
		for _, e := range r.next(n) {
			if e.Weight > 0 && !slices.Contains(loop, e.To) {
				starts = append(starts, e)
			}
		}
	}
	if len(starts) == 0 {
		return nil
	}
	return r.trace(starts).ends
}

// further follows what another relation found to where waiting ends in this one,
// in which more queues wait. The loops stay as they are.
func (r *relation) further(t tracing) tracing {
	for i := range t.loops {
		t.loops[i].ends = r.beyond(t.loops[i].nodes)
	}
	var ends []end
	for _, e := range t.ends {
		on := r.trace([]provenance.Edge{{From: -1, To: e.node, Weight: 1}})
		if len(on.loops) > 0 {
			ends = append(ends, e)
			continue
		}
		for _, o := range on.ends {
			ends = append(ends, end{node: o.node, blame: e.blame * o.blame, via: append(slices.Clone(e.via), o.via[1:]...)})
		}
	}
	t.ends = ends
	return t
}

// next returns what a queue waits for.
func (r *relation) next(n int) []provenance.Edge {
	if !r.waits(n) {
		return nil
	}
	return r.out(n)
}

// leaving returns the edges of a component to others.
func (r *relation) leaving(p components, i int) (list []provenance.Edge) {
	for _, n := range p.list[i] {
		for _, e := range r.next(n) {
			if p.of[e.To] != i && e.Weight > 0 {
				list = append(list, e)
			}
		}
	}
	return list
}

// components are the strongly connected parts, each before those that wait for
// it.
type components struct {
	list [][]int
	of   []int // by node; -1: not reached
}

// components finds them from the starts on.
func (r *relation) components(starts []provenance.Edge) components {
	p := components{of: make([]int, r.nodes)}
	for i := range p.of {
		p.of[i] = -1
	}
	from := func(yield func(int) bool) {
		for _, s := range starts {
			if !yield(s.To) {
				return
			}
		}
	}
	p.list = scc.Components(r.nodes, from, func(n int, list []int) []int {
		for _, e := range r.next(n) {
			if e.Weight > 0 {
				list = append(list, e.To)
			}
		}
		return list
	})
	for i, part := range p.list {
		for _, n := range part {
			p.of[n] = i
		}
	}
	return p
}

// paths returns a way with the fewest hops from a start to every node that is
// reached; of equal ones that by heavier edges.
func (r *relation) paths(starts []provenance.Edge) map[int][]int {
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
		for _, e := range heaviest(r.next(n)) {
			if e.Weight > 0 && found[e.To] == nil {
				found[e.To] = append(slices.Clone(found[n]), e.To)
				queue = append(queue, e.To)
			}
		}
	}
	return found
}

// nearest returns the shortest of the ways to some nodes.
func nearest(nodes []int, paths map[int][]int) (best []int) {
	for _, n := range nodes {
		if p := paths[n]; p != nil && (best == nil || len(p) < len(best)) {
			best = p
		}
	}
	return best
}

// around puts the queues of a loop into the order of waiting: from the least
// on, always to the heaviest not yet listed; those off that way follow.
func (r *relation) around(members []int) (walk []int) {
	left := map[int]bool{}
	for _, m := range members {
		left[m] = true
	}
	for at := members[0]; at >= 0; {
		walk = append(walk, at)
		delete(left, at)
		next, weight := -1, 0.0
		for _, e := range r.next(at) {
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
