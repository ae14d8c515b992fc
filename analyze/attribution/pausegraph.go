package attribution

import (
	"container/heap"
)

// The work of one account is bounded: a slice of a pause is followed if at least
// a share of smallestShare of the lateness is due to it, the longest first, and
// maxStates slices at most; a pause has at most maxSlices of them. What is not
// followed is unexplained. BenchmarkAttribute measures a k=16 fabric in which
// every queue waits for every other.
const (
	smallestShare = 1.0 / 8192
	maxStates     = 1 << 13
	maxSlices     = 64
)

// stateKey names a slice of a pause of a queue.
type stateKey struct{ queue, pause, slice int32 }

// state is a slice of a pause, and what it is due to.
type state struct {
	stateKey
	from, to float64
	reach    float64 // nanoseconds that are due to it, as far as was followed
	followed bool    // edges are those of edgesOf
	edges    []edge
	shares   []rootShare // what it is due to in the end; sums to 1
	order    int         // of its component: those that it waits for have lower ones
	mass     float64     // nanoseconds of the lateness that pass through it
}

// edge leads from a slice to what it is due to: an earlier slice of a pause, or
// a root.
type edge struct {
	state, root int32   // one of them, the other is -1
	share       float64 // of the slice
	sure        bool    // whatever the clocks' errors
}

// root is where a chain of pauses ends.
type root struct {
	rootKey
	until float64 // the latest instant at which it counted
	cycle int     // of a deadlock, in engine.cycles
}

// rootKey identifies a root. Contentions of one queue differ by the time since
// when it was not empty, pauses by a host by their start, deadlock cycles by
// their number.
type rootKey struct {
	queue  int32
	kind   Kind
	reason Reason
	since  float64
}

// addRoot returns the number of a root.
func (e *engine) addRoot(k rootKey, at float64) int32 {
	i, ok := e.rootIndex[k]
	if !ok {
		i = int32(len(e.roots))
		e.rootIndex[k] = i
		e.roots = append(e.roots, root{rootKey: k, until: at, cycle: -1})
	}
	e.roots[i].until = max(e.roots[i].until, at)
	return i
}

// addState returns the number of a slice, or -1 if there are too many.
func (e *engine) addState(k stateKey, from, to float64) int32 {
	i, ok := e.stateIndex[k]
	if ok {
		return i
	}
	if len(e.states) >= maxStates {
		return -1
	}
	i = int32(len(e.states))
	e.stateIndex[k] = i
	e.states = append(e.states, state{stateKey: k, from: from, to: to})
	return i
}

// reached notes that part of the lateness is due to a state.
func (e *engine) reached(s int32, time float64) {
	if s >= 0 {
		e.states[s].reach += time
		heap.Push(&e.ahead, candidate{s, e.states[s].reach})
	}
}

// follow computes the edges of the states that matter, those to which most of
// the lateness is due first; the others lead to what is unexplained.
func (e *engine) follow(late float64) {
	for len(e.ahead) > 0 {
		c := heap.Pop(&e.ahead).(candidate)
		s := &e.states[c.state]
		if s.followed {
			continue
		}
		if c.reach < late*smallestShare {
			break
		}
		s.followed = true
		edges := e.edgesOf(*s)
		e.states[c.state].edges = edges // s may have moved
		for _, n := range edges {
			e.reached(n.state, c.reach*n.share)
		}
	}
	for i := range e.states {
		if s := &e.states[i]; !s.followed {
			s.edges = []edge{{-1, e.addRoot(rootKey{queue: s.queue, kind: Unexplained, reason: NotFollowed}, s.from), 1, true}}
		}
	}
}

// candidate is a state that may be followed next.
type candidate struct {
	state int32
	reach float64
}

// candidates is a heap, the longest first.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].reach > c[j].reach || c[i].reach == c[j].reach && c[i].state < c[j].state
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
