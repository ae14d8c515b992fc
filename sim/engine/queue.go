package engine

import (
	"fmt"
	"math/bits"
)

// Queue holds the events to come and gives them back in order of (time, order
// of Push): a total order, so a run replays exactly. The zero value is an empty
// queue at time 0. A Queue belongs to one goroutine.
//
// Give E at most four fields and 32 bytes: the compiler carries such a struct
// in registers, but a larger one through the stack, where a copy that spans two
// fields has to wait for both to be stored. An event of 16 bytes takes 14 ns
// longer in five fields than in three (BenchmarkEventShape).
//
// The memory of a popped event is reused, not cleared: a pointer in E stays
// reachable until another event takes its place.
type Queue[E any] struct {
	// home[n] is the rung of a time that differs from base in the low n bits
	// only, the highest of these included; 0 stands for near.
	home [64]uint8

	// base is the start of the bucket that near spans.
	// Invariant: base <= last <= every time in the queue.
	base Time
	last Time // of the event popped last

	near []entry[E] // sorted by time; those before head have been popped
	head int

	rungs [maxRungs]rung // rungs[1] to rungs[depth] are in use, coarse to fine
	depth int
	store store[E]

	// first is the earliest time on any rung, if known.
	first Time

	pushed, popped int64 // since the beginning

	// The rate of pops was last taken at markTime, after markPopped pops, and
	// asks for buckets of 1<<rateShift ps.
	markTime   Time
	markPopped int64
	rateShift  uint8
}

// entry is an event and its time.
type entry[E any] struct {
	at Time
	ev E
}

// unknown is before every event, so no Push can improve on it.
const unknown Time = -1

// spillDistance is how many events a new one may pass on its way to its place
// in near. 8, 16 and 32 measure alike from a hundred events up.
const spillDistance = 16

// Len returns the number of events to come.
func (q *Queue[E]) Len() int { return int(q.pushed - q.popped) }

// Push adds an event. A time before the last popped event's is a bug of the
// simulation: Push panics. Before the first Pop, that time is 0.
func (q *Queue[E]) Push(at Time, ev E) {
	if at < q.last {
		panicPast(at, q.last)
	}
	level := q.home[bits.Len64(uint64(at^q.base))%64]
	if level == 0 {
		q.insert(at, ev)
		return
	}
	q.pushed++
	if at < q.first {
		q.first = at
	}
	// This is store.cell, written out: the call would cost 2 ns, as ev has to
	// leave its registers for it.
	r := &q.rungs[level%maxRungs]
	slot := r.slot(at)
	b := &r.buckets[slot]
	end := b.end
	if end%chunk == 0 {
		end = q.store.extend(r, slot)
	}
	b.end = end + 1
	c := &q.store.cells[end]
	c.at = at
	c.ev = ev
}

// Pop removes and returns the earliest event, if its time is at most limit.
// When it is not, Pop changes nothing: what is pushed next may still come
// earlier than what was there.
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
		depth := q.depth
		for q.rungs[depth].live == 0 {
			depth--
		}
		r := &q.rungs[depth]
		q.first = q.store.earliest(r.buckets[r.lowest()])
	}
	return q.first, true
}

// advance refills near, which is empty, from the next bucket that holds
// events. It does so only if one of them is due by limit and will be popped at
// once: base may move up to last, but not past it.
func (q *Queue[E]) advance(limit Time) bool {
	q.near, q.head = q.near[:0], 0
	if q.Len() == 0 {
		return false
	}
	for q.rungs[q.depth].live == 0 {
		q.dropRung()
	}
	r := &q.rungs[q.depth]
	slot := r.lowest()
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
		if q.store.oneTime(b) {
			q.near = q.store.inOrder(q.near, b)
			return true
		}
		r = q.addFittedRung(b.len())
		q.store.spread(r, b)
		slot = r.lowest()
	}
}

// insert puts an event into near, at its place.
func (q *Queue[E]) insert(at Time, ev E) {
	if q.depth == 0 { // the zero Queue
		q.first = unknown
		q.rateShift = timeBits
		q.addRung(topShift, timeBits)
		q.Push(at, ev)
		return
	}
	if n := len(q.near); n-q.head > spillDistance && q.near[n-1-spillDistance].at > at {
		q.spill()
		q.Push(at, ev)
		return
	}
	if len(q.near) == cap(q.near) {
		q.growNear()
	}
	q.pushed++
	q.near = q.near[:len(q.near)+1]
	near := q.near[q.head:]
	i := len(near) - 1
	for i > 0 && near[i-1].at > at {
		near[i] = near[i-1]
		i--
	}
	near[i].at = at
	near[i].ev = ev
}

// growNear makes room in near. Events that are pushed for the present as fast
// as they are popped keep near from ever being empty: they reuse the room of
// those popped.
func (q *Queue[E]) growNear() {
	n := len(q.near)
	if q.head > n/2 {
		q.near = q.near[:copy(q.near, q.near[q.head:])]
		q.head = 0
		return
	}
	q.near = append(q.near, entry[E]{})[:n]
}

// spill moves the later events of near to finer rungs until few are left, or
// only events of one time: then near spans but a picosecond, and every new
// event for it goes last.
func (q *Queue[E]) spill() {
	for len(q.near)-q.head > spillDistance && q.rungs[q.depth].shift > 0 {
		r := q.addFittedRung(len(q.near) - q.head)
		q.base = r.start(q.last, r.slot(q.last))
		keep := len(q.near)
		for keep > q.head && q.near[keep-1].at-q.base >= 1<<r.shift {
			keep--
		}
		for i := keep; i < len(q.near); i++ {
			*q.store.cell(r, q.near[i].at) = q.near[i]
		}
		q.near = q.near[:keep]
		q.first = unknown
	}
}

//go:noinline
func panicPast(at, last Time) {
	panic(fmt.Sprintf("engine: event pushed for %v, before the last popped at %v", at, last))
}
