package engine

import "fmt"

// Origin is when an event was scheduled, and by which node. It orders events of
// one time where nodes run one after the other: the order in which two nodes
// ran must not matter.
type Origin struct {
	Asked Time
	By    int32 // a node; below 0: no node, which comes first
}

// Before reports whether events of this origin come first. Events of one origin
// are ordered by Push.
func (o Origin) Before(p Origin) bool {
	return o.Asked < p.Asked || o.Asked == p.Asked && o.By < p.By
}

// Queue holds pending events and returns them in order of (time, origin, order
// of Push): a total order, so a run replays exactly. The zero value is an empty
// queue at time 0. A Queue belongs to one goroutine.
type Queue[E any] struct {
	heap []entry[E] // binary, by before
	seq  uint64     // of the last Push
	last Time       // of the event popped last
}

// entry is an event, its time, and its order among those of the same time.
type entry[E any] struct {
	at   Time
	from Origin
	seq  uint64
	ev   E
}

func (a *entry[E]) before(b *entry[E]) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.from != b.from {
		return a.from.Before(b.from)
	}
	return a.seq < b.seq
}

// Len returns the number of pending events.
func (q *Queue[E]) Len() int { return len(q.heap) }

// Next returns the time of the earliest event, if there is one.
func (q *Queue[E]) Next() (Time, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// Push adds an event. A time before the last popped event's is a bug of the
// simulation: Push panics. Before the first Pop, that time is 0.
func (q *Queue[E]) Push(at Time, from Origin, ev E) {
	if at < q.last {
		panic(fmt.Sprintf("engine: event pushed for %v, before the last popped at %v", at, q.last))
	}
	q.seq++
	q.heap = append(q.heap, entry[E]{at, from, q.seq, ev})
	h := q.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// Pop removes and returns the earliest event, if its time is at most limit.
func (q *Queue[E]) Pop(limit Time) (at Time, ev E, ok bool) {
	if len(q.heap) == 0 || q.heap[0].at > limit {
		return at, ev, false
	}
	top, end := q.heap[0], len(q.heap)-1
	q.heap[0], q.heap[end] = q.heap[end], entry[E]{} // so that the queue does not keep it alive
	q.heap = q.heap[:end]
	h := q.heap
	for i := 0; ; {
		c := 2*i + 1
		if c >= end {
			break
		}
		if c+1 < end && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&h[i]) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	q.last = top.at
	return top.at, top.ev, true
}
