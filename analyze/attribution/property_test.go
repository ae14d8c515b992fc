package attribution

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestTermsSumToLateness: whatever the evidence, the terms sum to the lateness,
// and what is said about their parts is within their times.
func TestTermsSumToLateness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		a := Attribute(ev, v)
		checkAccount(t, a, v)
		if again := Attribute(ev, v); !reflect.DeepEqual(a, again) {
			t.Fatalf("%+v, then %+v of the same evidence", a, again)
		}
	})
}

func checkAccount(t *rapid.T, a *Account, v *Victim) {
	t.Helper()
	sum := time.Duration(0)
	for i := range a.Terms {
		n := &a.Terms[i]
		sum += n.Time
		if n.Time <= 0 || n.Min < 0 || n.Min > n.Time || n.Max < n.Time || n.Max > a.Late+1 || n.Queued > n.Time {
			t.Fatalf("term %+v of a lateness of %v", n, a.Late)
		}
		for _, p := range n.Via {
			if p.Time > n.Time+1 || p.Waited > p.Time+1 || p.Behind > p.Waited+1 {
				t.Fatalf("via %+v in a term of %v", p, n.Time)
			}
		}
		shares := 0.0
		for _, c := range n.Culprits {
			shares += c.Share
		}
		if len(n.Culprits) > 0 && math.Abs(shares-1) > 1e-9 {
			t.Fatalf("culprits' shares sum to %v: %+v", shares, n.Culprits)
		}
	}
	if sum != a.Late {
		t.Fatalf("terms sum to %v, want the lateness %v: %+v", sum, a.Late, a.Terms)
	}
	if !v.InFlight && a.Late != v.Took-v.Base {
		t.Fatalf("late by %v, want %v - %v", a.Late, v.Took, v.Base)
	}
	if a.Explained() > a.Late || a.Confidence() < 0 || a.Confidence() > 1 {
		t.Fatalf("explained %v of %v, confidence %v", a.Explained(), a.Late, a.Confidence())
	}
}

// TestScale: with all times multiplied and the rates divided by a factor, the
// account is the same, multiplied.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		factor := rapid.SampledFrom([]int64{2, 4, 16}).Draw(t, "factor")
		by := func(d time.Duration) time.Duration { return d * time.Duration(factor) }
		scaled, w := ev.clone(), *v
		change := func(x model.Time) model.Time { return origin.Add(by(x.Sub(origin))) }
		scaled.eachTime(func(*QueueRecord) bool { return true }, change)
		for i := range scaled.Queues {
			q := &scaled.Queues[i]
			q.Rate, q.Delay = q.Rate/model.Rate(factor), by(q.Delay)
			for j := range q.Feeds {
				q.Feeds[j].From, q.Feeds[j].Until = change(q.Feeds[j].From), change(q.Feeds[j].Until)
			}
		}
		for i := range scaled.Devices {
			scaled.Devices[i].Snapshot, scaled.Devices[i].ClockError = change(scaled.Devices[i].Snapshot), by(scaled.Devices[i].ClockError)
		}
		w.Sent, w.Took, w.Base, w.ClockError = change(v.Sent), by(v.Took), by(v.Base), by(v.ClockError)
		// Each term is rounded to a nanosecond; one place has at most one for each reason.
		near := func(a, b time.Duration) bool {
			return math.Abs(float64(by(a)-b)) <= float64(int64(NotFollowed+1)*factor)
		}
		a, b := Attribute(ev, v), Attribute(scaled, &w)
		if !near(a.Late, b.Late) {
			t.Fatalf("late %v, times %d: %v", a.Late, factor, b.Late)
		}
		times := func(a *Account) map[termName]time.Duration {
			m := map[termName]time.Duration{}
			for i := range a.Terms {
				m[nameOf(&a.Terms[i])] += a.Terms[i].Time
			}
			return m
		}
		x, y := times(a), times(b)
		for k := range y {
			x[k] += 0
		}
		for k := range x {
			if !near(x[k], y[k]) {
				t.Fatalf("%+v: %v, times %d: %v", k, x[k], factor, y[k])
			}
		}
	})
}

// termName is a term's cause.
type termName struct {
	kind  Kind
	queue Queue
}

func nameOf(t *Term) termName {
	if t == nil {
		return termName{}
	}
	n := termName{kind: t.Kind}
	if t.Place != nil {
		n.queue = t.Place.Queue
	}
	return n
}

// TestUnrelated: queues and flows that nothing leads to change nothing.
func TestUnrelated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		more := ev.clone()
		n := len(more.Devices)
		more.Devices = append(more.Devices, Device{Node: model.NodeID(n), Reported: true, Snapshot: more.Devices[0].Snapshot})
		other := more.Queues[0]
		other.Queue.Port.Node = model.NodeID(n)
		other.Flows = []FlowShare{{Flow: model.FlowKey{Src: model.Addr4(99)}, From: origin, Until: origin.Add(time.Second), Bytes: 1e6}}
		other.Pauses = []Pause{{From: origin, Open: true}}
		more.Queues = append(more.Queues, other)
		if a, b := Attribute(ev, v), Attribute(more, v); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v, with an unrelated queue %+v", a, b)
		}
	})
}

// TestLostReport: without the report of a switch off the packet's path no more
// is explained than with it, but for the length of slices.
func TestLostReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		d := rapid.IntRange(0, worldSwitches-1).Draw(t, "switch")
		onPath := slices.ContainsFunc(v.Path, func(q int) bool { return int(ev.Queues[q].Queue.Port.Node) == d })
		if onPath {
			return
		}
		less := ev.clone()
		less.Devices[d].Reported = false
		a, b := Attribute(ev, v), Attribute(less, v)
		with, without := a.Explained(), b.Explained()
		if without > with+a.Late/10+time.Duration(len(a.Terms)+len(b.Terms)) {
			t.Fatalf("explained %v, and %v without the report of switch %d", with, without, d)
		}
	})
}
