package engine

import (
	"fmt"
	"math/bits"
)

// Queue holds the events to come and gives them back in order of (time, order
// of Push): a total order, so a run replays exactly. The zero value is ready to
// use. A Queue belongs to one goroutine.
//
// Memory that a popped event lay in is reused, not cleared: a pointer inside E
// stays reachable until another event takes its place.
type Queue[E any] struct {
	// home[n] names the rung of an event whose time differs from base in n low
	// bits; 0 means near.
	home [64]uint8

	// base is the start of the bucket that near was filled from; base <= last.
	base Time
	last Time // time of the last popped event

	near []entry[E] // sorted; near[head:] are still to come
	head int

	rungs [maxRungs]rung // rungs[1:depth+1] are in use, coarse to fine
	depth int
	store store[E]

	// first is the earliest time on the rungs, or unknown.
	first Time

	pushed, popped int64

	// Where the pop rate was last measured, and the bucket width it asks for.
	markTime   Time
	markPopped int64
	rateShift  uint8
}

// entry is an event with its time.
type entry[E any] struct {
	at Time
	ev E
}

const (
	// spillDistance is how many later events an insertion into near may pass
	// before near is found too wide.
	spillDistance = 16

	unknown Time = -1
)

// Len returns the number of events to come.
func (q *Queue[E]) Len() int { return int(q.pushed - q.popped) }

// Push adds an event. It panics when at lies before the last popped event:
// a simulation that reaches into its past is broken.
func (q *Queue[E]) Push(at Time, ev E) {
	if at < q.last {
		panicPast(at, q.last)
	}
	q.pushed++
	level := q.home[bits.Len64(uint64(at^q.base))&63]
	if level == 0 {
		q.insert(at, ev)
		return
	}
	if at < q.first {
		q.first = at
	}
	c := q.store.cell(&q.rungs[level%maxRungs], at)
	c.at = at
	c.ev = ev
}

// Pop removes and returns the earliest event, if its time is at most limit.
func (q *Queue[E]) Pop(limit Time) (at Time, ev E, ok bool) {
	if q.head == len(q.near) && !q.advance(limit) {
		return at, ev, false
	}
	e := &q.near[q.head]
	if e.at > limit {
		return at, ev, false
	}
	q.head++
	q.popped++
	q.last = e.at
	return e.at, e.ev, true
}

// Next returns the time of the earliest event, if there is one.
func (q *Queue[E]) Next() (Time, bool) {
	if q.head < len(q.near) {
		return q.near[q.head].at, true
	}
	if q.Len() == 0 {
		return 0, false
	}
	if q.first == unknown {
		d := q.depth
		for q.rungs[d].live == 0 {
			d--
		}
		r := &q.rungs[d]
		q.first = q.store.earliest(r.buckets[r.lowest(q.base)])
	}
	return q.first, true
}

// insert puts an event into near.
func (q *Queue[E]) insert(at Time, ev E) {
	if q.depth == 0 {
		q.first = unknown
		q.rateShift = gridShift
		q.addRung(topShift, timeBits)
		q.pushed--
		q.Push(at, ev)
		return
	}
	i := len(q.near)
	for i > q.head && q.near[i-1].at > at {
		i--
		if len(q.near)-i > spillDistance {
			q.spill()
			q.pushed--
			q.Push(at, ev)
			return
		}
	}
	if len(q.near) == cap(q.near) && q.head > len(q.near)/2 {
		// Events pushed for the present as fast as they are popped must not
		// grow near for ever.
		i -= q.head
		q.near = q.near[:copy(q.near, q.near[q.head:])]
		q.head = 0
	}
	if n := len(q.near); n < cap(q.near) {
		q.near = q.near[:n+1]
	} else {
		q.near = append(q.near, entry[E]{})
	}
	for j := len(q.near) - 1; j > i; j-- {
		q.near[j] = q.near[j-1]
	}
	q.near[i].at = at
	q.near[i].ev = ev
}

// spill narrows near: it adds rungs below and moves the later events there.
// Where all events of near have one time, it narrows near to that time.
func (q *Queue[E]) spill() {
	for len(q.near)-q.head > spillDistance {
		r := q.descend(len(q.near) - q.head)
		if r == nil {
			return
		}
		q.base = q.last >> r.shift << r.shift
		keep := len(q.near)
		for keep > q.head && q.near[keep-1].at>>r.shift != q.base>>r.shift {
			keep--
		}
		for i := range q.near[keep:] {
			e := &q.near[keep+i]
			*q.store.cell(r, e.at) = *e
		}
		q.near = q.near[:keep]
		q.first = unknown
	}
}

// advance fills near with the next bucket of events, provided that it holds
// one up to limit. It moves base only then, so base never passes last.
func (q *Queue[E]) advance(limit Time) bool {
	q.near, q.head = q.near[:0], 0
	if q.pushed == q.popped {
		return false
	}
	for q.rungs[q.depth].live == 0 {
		q.dropRung()
	}
	r := &q.rungs[q.depth]
	slot := r.lowest(q.base)
	if end := r.start(q.base, slot) + 1<<r.shift - 1; end > limit {
		if at, _ := q.Next(); at > limit {
			return false
		}
	}
	q.first = unknown
	for {
		b := r.take(slot)
		q.base = r.start(q.base, slot)
		if b.chunks == 1 && b.fill() <= sortMax {
			q.near = q.store.sorted(q.near, b)
			return true
		}
		fine := q.descend(b.len())
		if fine == nil {
			q.near = q.store.inOrder(q.near, b)
			return true
		}
		q.store.spread(fine, b)
		r, slot = fine, fine.lowest(q.base)
	}
}

func panicPast(at, last Time) {
	panic(fmt.Sprintf("engine: event pushed at %v, before the last popped at %v", at, last))
}
