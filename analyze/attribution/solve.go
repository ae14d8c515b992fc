package attribution

import (
	"slices"

	"github.com/weft-telemetry/weft/internal/scc"
)

// rootShare is the share of something that is due to a root; sure is what is so
// whatever the clocks' errors.
type rootShare struct {
	root        int32
	share, sure float64
}

// shareSum adds up shares by root.
type shareSum struct {
	share, sure []float64 // by root
	touched     []int32
}

func (s *shareSum) add(root int32, share, sure float64) {
	for int(root) >= len(s.share) {
		s.share, s.sure = append(s.share, 0), append(s.sure, 0)
	}
	if s.share[root] == 0 && share > 0 {
		s.touched = append(s.touched, root)
	}
	s.share[root] += share
	s.sure[root] += sure
}

// addEdge adds a share of something that is due to an edge's end.
func (s *shareSum) addEdge(e *engine, n *edge, share float64, sure bool) {
	certain := 0.0
	if sure && n.sure {
		certain = 1
	}
	if n.root >= 0 {
		s.add(n.root, share, share*certain)
		return
	}
	for _, r := range e.states[n.state].shares {
		s.add(r.root, share*r.share, share*r.sure*certain)
	}
}

// take returns the sums and starts anew.
func (s *shareSum) take() []rootShare {
	list := make([]rootShare, len(s.touched))
	for i, r := range s.touched {
		list[i] = rootShare{r, s.share[r], s.sure[r]}
		s.share[r], s.sure[r] = 0, 0
	}
	s.touched = s.touched[:0]
	slices.SortFunc(list, func(a, b rootShare) int { return int(a.root - b.root) })
	return list
}

// solve computes what all states are due to. Slices lead back in time, so only
// pauses that overlap can lead to each other. Such pauses form a component,
// with all of their slices.
func (e *engine) solve() {
	e.components = e.components[:0]
	for order, pauses := range e.pauseComponents() {
		var members []int32
		for _, p := range pauses {
			members = append(members, e.statesOf[p]...)
		}
		slices.Sort(members)
		for _, m := range members {
			e.states[m].order = order
		}
		c := component{members: members, pauses: len(pauses), steps: 1, cycle: -1}
		if len(pauses) > 1 || e.leadToEachOther(members) {
			e.solveCycle(&c)
		} else {
			for _, m := range members {
				s := &e.states[m]
				for i := range s.edges {
					e.sum.addEdge(e, &s.edges[i], s.edges[i].share, true)
				}
				s.shares = e.sum.take()
			}
		}
		e.components = append(e.components, c)
	}
}

// component is slices of pauses that lead to each other, or of one pause.
type component struct {
	members   []int32 // ascending
	pauses    int     // whose slices they are
	steps     int     // that a share passes inside until it has returned
	cycle     int     // in engine.cycles, -1: none
	shortened bool    // too large: solved with fewer steps
}

// pauseComponents returns the strongly connected components of the pauses, each
// after those that it waits for.
func (e *engine) pauseComponents() [][]int32 {
	index := map[[2]int32]int32{}
	e.statesOf = e.statesOf[:0]
	pauseOf := make([]int32, len(e.states))
	for i := range e.states {
		key := [2]int32{e.states[i].queue, e.states[i].pause}
		n, ok := index[key]
		if !ok {
			n = int32(len(e.statesOf))
			index[key] = n
			e.statesOf = append(e.statesOf, nil)
		}
		pauseOf[i] = n
		e.statesOf[n] = append(e.statesOf[n], int32(i))
	}
	all := func(yield func(int32) bool) {
		for i := range e.statesOf {
			if !yield(int32(i)) {
				return
			}
		}
	}
	return scc.Components(len(e.statesOf), all, func(n int32, list []int32) []int32 {
		for _, s := range e.statesOf[n] {
			for i := range e.states[s].edges {
				if to := e.states[s].edges[i].state; to >= 0 {
					list = append(list, pauseOf[to])
				}
			}
		}
		return list
	})
}

func (e *engine) leadToEachOther(members []int32) bool {
	return slices.ContainsFunc(members, func(m int32) bool {
		return slices.ContainsFunc(e.states[m].edges, func(n edge) bool {
			return n.state >= 0 && e.states[n.state].order == e.states[m].order
		})
	})
}

// maxCycleWork bounds the steps over edges with which a component is solved: a
// large one in fewer steps.
const maxCycleWork = 1 << 18

// solveCycle computes what the slices of a component are due to. From each of
// them shares pass along the edges, once around: what leaves the component is
// due to what it leaves for, what returns is due to the deadlock cycle. If the
// pauses never held all at once there is no deadlock: shares pass on until they
// have left, and what has left after maxSlices steps stands for all.
func (e *engine) solveCycle(c *component) {
	members := c.members
	queues := e.queuesOf(members)
	closed := e.closed(members, queues)
	deadlock := int32(-1)
	c.steps = min(len(members), maxSlices)
	if closed != No {
		deadlock = e.addCycle(members, queues)
		c.steps, c.cycle = c.pauses, e.roots[deadlock].cycle
	}
	edges := 0
	for _, m := range members {
		edges += len(e.states[m].edges)
	}
	if most := max(1, maxCycleWork/max(edges, 1)); c.steps > most {
		c.steps, c.shortened = most, true
	}
	// Backwards: what a slice is due to after n steps follows from what those that
	// it leads to are due to after n-1.
	for _, m := range members {
		e.states[m].shares = nil
		if deadlock >= 0 {
			sure := 0.0
			if closed == Yes {
				sure = 1
			}
			e.states[m].shares = []rootShare{{deadlock, 1, sure}}
		}
	}
	next := make([][]rootShare, len(members))
	for range c.steps {
		for i, m := range members {
			next[i] = e.stepShares(&e.states[m])
		}
		for i, m := range members {
			e.states[m].shares = next[i]
		}
	}
	if deadlock < 0 {
		for _, m := range members {
			e.states[m].shares = e.normalized(m)
		}
	}
}

// stepShares returns what a slice of a component is due to, by what those are due
// to now that it leads to. What passes on inside is as sure as what it comes to.
func (e *engine) stepShares(s *state) []rootShare {
	for j := range s.edges {
		n := &s.edges[j]
		if n.state < 0 || e.states[n.state].order != s.order {
			e.sum.addEdge(e, n, n.share, true)
			continue
		}
		for _, r := range e.states[n.state].shares {
			e.sum.add(r.root, n.share*r.share, n.share*r.sure)
		}
	}
	return e.sum.take()
}

// normalized returns the shares of a slice that have left its component, as if
// they were all.
func (e *engine) normalized(member int32) []rootShare {
	s := &e.states[member]
	left := 0.0
	for _, r := range s.shares {
		left += r.share
	}
	if left == 0 {
		r := e.addRoot(rootKey{queue: s.queue, kind: Unexplained, reason: NoBacklog}, s.from)
		return []rootShare{{r, 1, 1}}
	}
	for i := range s.shares {
		s.shares[i].share /= left
	}
	return s.shares
}
