package attribution

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// referenceQueue is a queue in steps of one column: what it holds at the start
// of each column with its pauses, and without those of the busy period.
type referenceQueue struct {
	bytes, free []float64
	paused      []bool
}

// anyReferenceQueue simulates a queue with drawn arrivals and pauses. Its link
// sends one unit per column.
func anyReferenceQueue(t *rapid.T) referenceQueue {
	const columns = 40
	r := referenceQueue{bytes: make([]float64, columns+1), free: make([]float64, columns+1), paused: make([]bool, columns)}
	r.bytes[0] = float64(rapid.IntRange(1, 8).Draw(t, "first"))
	r.free[0] = r.bytes[0]
	for c := range columns {
		r.paused[c] = rapid.IntRange(0, 2).Draw(t, "paused") == 0
		// Never empty: then it is one busy period.
		arrive := float64(rapid.IntRange(0, 8).Draw(t, "arrive")) / 4
		sent := 1.0
		if r.paused[c] {
			sent = 0
		}
		arrive = max(arrive, sent-r.bytes[c]+0.25)
		r.bytes[c+1] = r.bytes[c] + arrive - sent
		r.free[c+1] = max(0, r.free[c]+arrive-1)
	}
	return r
}

// queue returns the reference as the engine sees it: pauses, one long
// congestion, and the backlog known at the start of every column.
func (r *referenceQueue) queue() *queue {
	const rate = 12.5
	q := &queue{QueueRecord: &QueueRecord{}, rate: rate, threshold: 0.01 * rate, reported: true}
	var depths []known
	for c, b := range r.bytes {
		depths = append(depths, known{float64(c), b * rate})
	}
	for c, paused := range r.paused {
		switch n := len(q.pauses); {
		case paused && n > 0 && q.pauses[n-1].to == float64(c):
			q.pauses[n-1].to++
		case paused:
			q.pauses = append(q.pauses, pause{from: float64(c), to: float64(c + 1), bytes: r.bytes[c] * rate, coverage: 1})
		}
	}
	q.congestions = []congestion{{from: 0, to: float64(len(r.paused)), peak: 0, coverage: 1}}
	q.buildBacklog(depths)
	return q
}

// TestBacklogIsThatOfAQueue: where the backlog is known at every column, the
// engine's backlog, the backlog without pauses, departures and the parts of
// waits are those of a queue that is simulated step by step.
func TestBacklogIsThatOfAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReferenceQueue(t)
		q := r.queue()
		for c := range r.paused {
			s := q.stateAt(float64(c))
			if math.Abs(s.bytes/q.rate-r.bytes[c]) > 1e-6 || math.Abs(s.free/q.rate-r.free[c]) > 1e-6 {
				t.Fatalf("column %d: %.3f queued, %.3f without pauses; want %.3f, %.3f",
					c, s.bytes/q.rate, s.free/q.rate, r.bytes[c], r.free[c])
			}
		}
		joins := rapid.IntRange(0, len(r.paused)-1).Draw(t, "joins")
		leaves := r.leaves(joins)
		if got := q.leaves(float64(joins), r.bytes[joins]*q.rate); math.Abs(got-leaves) > 1e-6 {
			t.Fatalf("joins at %d with %.2f ahead, leaves at %.3f, want %.3f", joins, r.bytes[joins], got, leaves)
		}
		w := q.split(float64(joins), leaves, leaves, false, nil)
		if want := min(r.free[joins], leaves-float64(joins)); math.Abs(w.contention-want) > 1e-6 || w.rest > 1e-6 {
			t.Fatalf("contention %.3f, unexplained %.3f; want %.3f, 0", w.contention, w.rest, want)
		}
		sum, last := w.contention, math.Inf(1)
		for _, p := range w.pauses {
			sum += p.time
			if p.to > last || p.time > p.to-p.from+1e-9 {
				t.Fatalf("parts of pauses %+v, want the latest first, each up to its length", w.pauses)
			}
			last = p.from
		}
		if math.Abs(sum-(leaves-float64(joins))) > 1e-6 {
			t.Fatalf("parts sum to %.3f of a wait of %.3f: %+v", sum, leaves-float64(joins), w)
		}
	})
}

// leaves steps a packet through the queue; after the last column nothing pauses.
func (r *referenceQueue) leaves(joins int) float64 {
	need := r.bytes[joins]
	for c := joins; ; c++ {
		switch {
		case c < len(r.paused) && r.paused[c]:
		case need < 1:
			return float64(c) + need
		default:
			need--
		}
	}
}

func TestBefore(t *testing.T) {
	for _, tc := range []struct {
		a, b, err float64
		want      Answer
	}{
		{1, 2, 0, Yes},
		{2, 2, 0, No},
		{3, 2, 0, No},
		{1, 4, 2, Yes},
		{1, 3, 2, Maybe},
		{3, 3, 2, Maybe},
		{4, 3, 2, Maybe},
		{5, 3, 2, No},
	} {
		if got := before(tc.a, tc.b, tc.err); got != tc.want {
			t.Errorf("before(%v, %v, ±%v) = %v, want %v", tc.a, tc.b, tc.err, got, tc.want)
		}
	}
	for _, tc := range []struct {
		at, err float64
		want    Answer
	}{{9, 0, No}, {10, 0, Yes}, {19, 0, Yes}, {20, 0, No}, {9, 2, Maybe}, {11, 2, Maybe}, {13, 2, Yes}, {21, 2, Maybe}, {23, 2, No}, {10, 2, Maybe}} {
		if got := within(tc.at, 10, 20, tc.err); got != tc.want {
			t.Errorf("within(%v, 10, 20, ±%v) = %v, want %v", tc.at, tc.err, got, tc.want)
		}
	}
}
