package engine

import (
	"container/heap"
	"testing"
)

// event is what tests queue: of a simulator's size, told apart by id.
type event struct {
	pkt  *int
	id   int64
	port int32
	kind uint32
}

var packet int

// twin is the obvious queue: the standard library's heap, by time and number.
type twin struct {
	items []twinItem
	seq   int64
}

type twinItem struct {
	at  Time
	seq int64
	ev  event
}

func (q *twin) Len() int { return len(q.items) }

func (q *twin) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *twin) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }

// heap.Interface speaks of Push and Pop itself, so a wrapper has the queue's.
type twinHeap struct{ *twin }

func (h twinHeap) Push(x any) { h.items = append(h.items, x.(twinItem)) }

func (h twinHeap) Pop() any {
	n := len(h.items) - 1
	x := h.items[n]
	h.items = h.items[:n]
	return x
}

func (q *twin) Push(at Time, ev event) {
	q.seq++
	heap.Push(twinHeap{q}, twinItem{at, q.seq, ev})
}

func (q *twin) Pop(limit Time) (Time, event, bool) {
	if len(q.items) == 0 || q.items[0].at > limit {
		return 0, event{}, false
	}
	x := heap.Pop(twinHeap{q}).(twinItem)
	return x.at, x.ev, true
}

func (q *twin) Next() (Time, bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].at, true
}

// pair does everything twice, with a Queue and with its twin.
type pair struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
	}
	queue Queue[event]
	twin  twin
	now   Time // of the last event popped
	id    int64
}

func (p *pair) push(at Time) {
	p.id++
	ev := event{pkt: &packet, id: p.id, port: int32(p.id), kind: uint32(at)}
	p.queue.Push(at, ev)
	p.twin.Push(at, ev)
}

func (p *pair) pop(limit Time) bool {
	p.t.Helper()
	at, ev, ok := p.queue.Pop(limit)
	wantAt, want, wantOK := p.twin.Pop(limit)
	if at != wantAt || ev != want || ok != wantOK {
		p.t.Fatalf("Pop(%v) at %v with %d events = %v, event %d, %v; want %v, event %d, %v",
			limit, p.now, p.twin.Len(), at, ev.id, ok, wantAt, want.id, wantOK)
	}
	if ok {
		p.now = at
	}
	return ok
}

func (p *pair) next() (Time, bool) {
	p.t.Helper()
	at, ok := p.queue.Next()
	want, wantOK := p.twin.Next()
	if at != want || ok != wantOK {
		p.t.Fatalf("Next() at %v with %d events = %v, %v; want %v, %v", p.now, p.twin.Len(), at, ok, want, wantOK)
	}
	if n := p.queue.Len(); n != p.twin.Len() {
		p.t.Fatalf("Len() = %d; want %d", n, p.twin.Len())
	}
	return at, ok
}

func (p *pair) drain() {
	p.t.Helper()
	p.checkChunks()
	for p.pop(Forever) {
	}
	p.next()
}

// checkChunks finds every chunk of the store in one place: a bucket, or the
// free list.
func (p *pair) checkChunks() {
	p.t.Helper()
	s := &p.queue.store
	seen := make([]bool, len(s.next))
	see := func(c int32) {
		if c == 0 || seen[c] {
			p.t.Fatalf("chunk %d of %d is in use twice, or chunk 0 is", c, len(seen))
		}
		seen[c] = true
	}
	for i := range p.queue.rungs {
		r := &p.queue.rungs[i]
		if len(r.buckets) > 1<<leafBits {
			p.t.Fatalf("rung %d has %d buckets; want at most %d", i, len(r.buckets), 1<<leafBits)
		}
		for _, b := range r.buckets {
			for c, n := b.head, b.chunks; n > 0; n-- {
				see(c)
				c = s.next[c]
			}
		}
	}
	for c := s.free; c != 0; c = s.next[c] {
		see(c)
	}
	for c := 1; c < len(seen); c++ {
		if !seen[c] {
			p.t.Fatalf("chunk %d of %d is lost", c, len(seen))
		}
	}
}

// hold pops an event and pushes another, the usual life of a queue.
func (p *pair) hold(ops int, delay func() Time) {
	p.t.Helper()
	for range ops {
		p.pop(Forever)
		p.push(p.now + delay())
	}
}

// TestTwin checks the twin against events in an order that a person can see.
func TestTwin(t *testing.T) {
	var q twin
	for i, at := range []Time{5, 3, 5, 0, 3} {
		q.Push(at, event{id: int64(i)})
	}
	for _, want := range []int64{3, 1, 4, 0, 2} {
		if _, ev, ok := q.Pop(Forever); !ok || ev.id != want {
			t.Errorf("twin.Pop = event %d, %v; want event %d, true", ev.id, ok, want)
		}
	}
}
