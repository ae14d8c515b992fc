package attribution

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// addCurves records the backlogs of some queues of a world over time: what each
// held of the queues that feed it, and the sum.
func addCurves(t *rapid.T, ev *Evidence) {
	for to := range ev.Queues {
		if rapid.IntRange(0, 1).Draw(t, "recorded") == 0 {
			continue
		}
		var sum []Depth
		points := rapid.SliceOfN(rapid.IntRange(0, worldColumns), 1, 6).Draw(t, "points")
		at := func(i int) model.Time {
			all := 0
			for _, p := range points[:i+1] {
				all += p
			}
			return origin.Add(time.Duration(all) * time.Microsecond / 4)
		}
		for i := range points {
			sum = append(sum, Depth{At: at(i)})
		}
		for from := range ev.Queues {
			if ev.Queues[from].Peer.Node != ev.Queues[to].Queue.Port.Node || rapid.IntRange(0, 2).Draw(t, "feeds") > 0 {
				continue
			}
			f := Feed{To: to, From: at(0), Until: at(len(points) - 1), Bytes: 1}
			for i := range points {
				bytes := model.Bytes(rapid.IntRange(0, 9).Draw(t, "held")) * 10000
				f.Curve = append(f.Curve, Depth{At: at(i), Bytes: bytes})
				f.Bytes, sum[i].Bytes = max(f.Bytes, bytes), sum[i].Bytes+bytes
			}
			ev.Queues[from].Feeds = append(ev.Queues[from].Feeds, f)
		}
		ev.Queues[to].Curve, ev.Queues[to].CurveError = sum, 2000
	}
}

// TestCurvesConserveTime: with backlogs recorded over time, terms are above zero
// and sum to the lateness.
func TestCurvesConserveTime(t *testing.T) {
	explained := 0
	rapid.Check(t, func(t *rapid.T) {
		ev, v := anyWorld(t)
		addCurves(t, ev)
		a := Attribute(ev, v)
		sum := time.Duration(0)
		for i := range a.Terms {
			if n := &a.Terms[i]; n.Time <= 0 || n.Min < 0 || n.Min > n.Time || n.Max < n.Time {
				t.Fatalf("term %+v", n)
			}
			sum += a.Terms[i].Time
		}
		if sum != a.Late {
			t.Fatalf("terms sum to %v, want %v", sum, a.Late)
		}
		if a.Explained() > 0 {
			explained++
		}
	})
	if explained == 0 {
		t.Error("no world explained anything")
	}
}

// TestAPacketWaitsForTheRecordedBacklog: in a queue without pauses the wait is the
// backlog at the instant, whatever the intervals leave open.
func TestAPacketWaitsForTheRecordedBacklog(t *testing.T) {
	at := func(us int) model.Time { return origin.Add(time.Duration(us) * time.Microsecond) }
	ev := &Evidence{MTU: 1000, Devices: []Device{{Node: 1, Reported: true, Complete: true, Snapshot: at(100)}}, Queues: []QueueRecord{{
		Queue: Queue{Port: model.Port{Node: 1, Port: 1}}, Peer: model.Port{Node: 2, Port: 1}, PeerIsHost: true, Rate: 80 * model.Gbps, Threshold: 400_000,
		Curve: []Depth{{at(0), 0}, {at(20), 200_000}, {at(60), 200_000}, {at(80), 0}},
	}}}
	for _, tc := range []struct {
		sent int
		want time.Duration
	}{{0, 0}, {10, 10 * time.Microsecond}, {20, 20 * time.Microsecond}, {40, 20 * time.Microsecond}, {70, 10 * time.Microsecond}, {90, 0}} {
		v := &Victim{Path: []int{0}, Sent: at(tc.sent), Took: tc.want + 5*time.Microsecond, Base: 5 * time.Microsecond, QueuedAt: -1}
		a := Attribute(ev, v)
		if got := a.Explained(); got != tc.want || a.Late != tc.want {
			t.Errorf("sent at %d µs: %v of %v explained; want %v", tc.sent, got, a.Late, tc.want)
		}
	}
}

func TestValuesOfACurve(t *testing.T) {
	curve := []known{{10, 0}, {20, 100}, {20, 40}, {30, 40}, {40, 0}}
	for at, want := range map[float64]float64{5: 0, 10: 0, 15: 50, 20: 40, 25: 40, 35: 20, 40: 0, 99: 0} {
		if got := valueAt(curve, at); got != want {
			t.Errorf("valueAt(%v) = %v; want %v", at, got, want)
		}
	}
	for at, want := range map[float64]float64{5: math.Inf(-1), 15: 15, 30: 30, 99: 35} {
		if got := lastAbove(curve, at); got != want {
			t.Errorf("lastAbove(%v) = %v; want %v", at, got, want)
		}
	}
}
