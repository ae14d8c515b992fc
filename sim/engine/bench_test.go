package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// distribution is a mix of delays that events are pushed with.
type distribution struct {
	name string
	draw func(r *rand.Rand, i int) Time
}

// delays draws so many that no cache and no branch predictor learns them.
func (d distribution) delays(seed uint64) []Time {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]Time, 1<<16)
	for i := range out {
		out[i] = d.draw(r, i)
	}
	return out
}

// frame is the time of 64 to 1048 bytes at 100 Gb/s.
func frame(r *rand.Rand) Time { return Time(64+8*r.IntN(124)) * 80 }

var distributions = []distribution{
	// A busy fabric: each frame is sent, at 100 or 400 Gb/s, and crosses a
	// microsecond of cable.
	{"fabric", func(r *rand.Rand, i int) Time {
		if i%2 == 0 {
			return Microsecond
		}
		return frame(r) / []Time{1, 4}[r.IntN(2)]
	}},
	{"uniform", func(r *rand.Rand, _ int) Time { return Time(r.Int64N(int64(2 * Microsecond))) }},
	// A fabric where one event in twenty is a timer.
	{"timers", func(r *rand.Rand, i int) Time {
		switch {
		case r.IntN(20) == 0:
			return []Time{4, 50, 300, 900, 10_000}[r.IntN(5)] * Microsecond
		case i%2 == 0:
			return Microsecond
		}
		return frame(r)
	}},
	// Equal frames that started at once: few distinct times.
	{"burst", func(r *rand.Rand, i int) Time { return Time(1+r.IntN(4)+13*(i%2)) * 80 * Nanosecond }},
	// An idle fabric: timers, far apart.
	{"sparse", func(r *rand.Rand, _ int) Time { return Time(r.ExpFloat64() * float64(Millisecond)) }},
}

// BenchmarkHold measures one Pop and one Push with a number of events pending,
// for the queue and for two heaps. The queue's lines say how many times longer
// the heaps took.
func BenchmarkHold(b *testing.B) {
	for _, d := range distributions {
		delay := d.delays(5)
		for _, pending := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
			var queue Queue[event]
			var fourAry heap4
			var binary twin
			took := map[string]float64{}
			for _, kind := range []struct {
				name string
				push func(Time, event)
				hold func(n int)
			}{
				{"container-heap", binary.Push, func(n int) { holdTwin(&binary, delay, n) }},
				{"heap4", fourAry.Push, func(n int) { holdHeap4(&fourAry, delay, n) }},
				{"queue", queue.Push, func(n int) { holdQueue(&queue, delay, n) }},
			} {
				filled := false
				b.Run(fmt.Sprintf("%s/pending=%d/%s", d.name, pending, kind.name), func(b *testing.B) {
					if !filled {
						for i := range pending {
							kind.push(delay[i%len(delay)], event{})
						}
						kind.hold(2 * pending) // until the events have mixed
						filled = true
					}
					b.ResetTimer()
					kind.hold(b.N)
					took[kind.name] = float64(b.Elapsed()) / float64(b.N)
					if kind.name == "queue" {
						b.ReportMetric(took["heap4"]/took["queue"], "heap4/queue")
						b.ReportMetric(took["container-heap"]/took["queue"], "container-heap/queue")
					}
				})
			}
		}
	}
}

// The same loop for each kind: through an interface or a type parameter, all
// would be slower by the same few nanoseconds, and look more alike.

func holdQueue(q *Queue[event], delay []Time, n int) {
	for i := range n {
		at, ev, _ := q.Pop(Forever)
		q.Push(at+delay[i%len(delay)], ev)
	}
}

func holdHeap4(q *heap4, delay []Time, n int) {
	for i := range n {
		at, ev, _ := q.Pop(Forever)
		q.Push(at+delay[i%len(delay)], ev)
	}
}

func holdTwin(q *twin, delay []Time, n int) {
	for i := range n {
		at, ev, _ := q.Pop(Forever)
		q.Push(at+delay[i%len(delay)], ev)
	}
}

// BenchmarkEventShape compares events of 16 bytes that differ in their number
// of fields only.
func BenchmarkEventShape(b *testing.B) {
	type three struct {
		pkt  *int
		port int32
		rest uint32
	}
	type five struct {
		pkt        *int
		port       int32
		gen        uint16
		kind, prio uint8
	}
	delay := distributions[0].delays(6)
	const pending = 1000
	b.Run("fields=3", func(b *testing.B) {
		var q Queue[three]
		for i := range pending {
			q.Push(delay[i], three{})
		}
		for i := range b.N {
			at, ev, _ := q.Pop(Forever)
			q.Push(at+delay[i%len(delay)], three{pkt: ev.pkt, port: ev.port + 1, rest: ev.rest})
		}
	})
	b.Run("fields=5", func(b *testing.B) {
		var q Queue[five]
		for i := range pending {
			q.Push(delay[i], five{})
		}
		for i := range b.N {
			at, ev, _ := q.Pop(Forever)
			q.Push(at+delay[i%len(delay)], five{pkt: ev.pkt, port: ev.port + 1, gen: ev.gen, kind: ev.kind, prio: ev.prio})
		}
	})
}

// heap4 is a heap of four children to a node, the best of simple queues.
type heap4 struct {
	items []twinItem
	seq   int64
}

func (q *heap4) Push(at Time, ev event) {
	q.seq++
	i := len(q.items)
	q.items = append(q.items, twinItem{})
	// The newest of equal times comes last: comparing times is enough.
	for i > 0 && q.items[(i-1)/4].at > at {
		q.items[i] = q.items[(i-1)/4]
		i = (i - 1) / 4
	}
	x := &q.items[i]
	x.at, x.seq, x.ev = at, q.seq, ev
}

func (q *heap4) Pop(limit Time) (at Time, ev event, ok bool) {
	if len(q.items) == 0 || q.items[0].at > limit {
		return at, ev, false
	}
	at, ev = q.items[0].at, q.items[0].ev
	n := len(q.items) - 1
	last := &q.items[n]
	i := 0
	for {
		least := last
		to := n
		for j := 4*i + 1; j < min(4*i+5, n); j++ {
			if x := &q.items[j]; x.at < least.at || x.at == least.at && x.seq < least.seq {
				least, to = x, j
			}
		}
		q.items[i] = *least
		if to == n {
			break
		}
		i = to
	}
	q.items = q.items[:n]
	return at, ev, true
}

func TestHeap4(t *testing.T) {
	var q heap4
	var want twin
	delay := distributions[3].delays(7)
	var now Time
	for i := range 5000 {
		for range 1 + i%2 {
			q.Push(now+delay[i], event{id: int64(i)})
			want.Push(now+delay[i], event{id: int64(i)})
		}
		at, ev, ok := q.Pop(Forever)
		wantAt, wantEv, wantOK := want.Pop(Forever)
		if at != wantAt || ev != wantEv || ok != wantOK {
			t.Fatalf("heap4.Pop = %v, event %d, %v; want %v, event %d, %v", at, ev.id, ok, wantAt, wantEv.id, wantOK)
		}
		now = at
	}
}
