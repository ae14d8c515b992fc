package provenance

import (
	"math"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// node builds the graph of one report and returns the queue of port 1, class 3.
func node(t *testing.T, r *Report) (*Graph, *Node) {
	t.Helper()
	f, err := topo.LeafSpine(2, 1, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r.Switch, _ = f.ByName("leaf0")
	r.EpochLength = time.Millisecond
	g := Build(&Evidence{Reports: []*Report{r}}, key(1), f)
	at := g.Node(Queue{model.Port{Node: r.Switch, Port: 1}, 3})
	if at < 0 {
		t.Fatalf("no queue of port 1 in %+v", g.Nodes)
	}
	return g, &g.Nodes[at]
}

func TestIntervalsOfSummaries(t *testing.T) {
	const snapshot = 10_000
	for name, tc := range map[string]struct {
		paused  bool
		pause   epoch.Pause
		want    []Interval
		refused int
	}{
		"one pause": {
			pause: epoch.Pause{LastStart: 1000, LastEnd: 1500, BurstStart: 1000, BytesAtBurstStart: 7, Pauses: 1, PausedTime: 500},
			want:  []Interval{{Start: 1000, End: 1500, Bytes: 7, Coverage: 1}},
		},
		"one that stands": {
			paused: true,
			pause:  epoch.Pause{LastStart: 9000, BurstStart: 9000, BytesAtBurstStart: 7, Pauses: 1, PausedTime: 1000},
			want:   []Interval{{Start: 9000, End: snapshot, Open: true, Bytes: 7, Coverage: 1}},
		},
		"one that stands and began as another ended": {
			paused: true,
			pause:  epoch.Pause{LastStart: 9000, LastEnd: 9000, BurstStart: 8000, Pauses: 2, PausedTime: 2000},
			want:   []Interval{{Start: 8000, End: 9000, Coverage: 1}, {Start: 9000, End: snapshot, Open: true, Coverage: 1}},
		},
		"a burst": {
			pause: epoch.Pause{LastStart: 3000, LastEnd: 3500, BurstStart: 1000, BytesAtBurstStart: 7, Pauses: 9, PausedTime: 1000},
			want:  []Interval{{Start: 1000, End: 3000, Bytes: 7, Coverage: .25}, {Start: 3000, End: 3500, Coverage: 1}},
		},
		"a burst whose last pause stands": {
			paused: true,
			pause:  epoch.Pause{LastStart: 9000, LastEnd: 6000, BurstStart: 5000, BytesAtBurstStart: 7, Pauses: 9, PausedTime: 1500},
			want:   []Interval{{Start: 5000, End: 6000, Bytes: 7, Coverage: .5}, {Start: 9000, End: snapshot, Open: true, Coverage: 1}},
		},
		"paused longer before the burst than in it": {
			pause: epoch.Pause{LastStart: 3000, LastEnd: 3500, BurstStart: 1000, Pauses: 9, PausedTime: time.Second},
			want:  []Interval{{Start: 1000, End: 3000, Coverage: 1}, {Start: 3000, End: 3500, Coverage: 1}},
		},
		"a sum below what is known": {
			pause: epoch.Pause{LastStart: 3000, LastEnd: 3500, BurstStart: 1000, Pauses: 9, PausedTime: math.MinInt64 / 2},
			want:  []Interval{{Start: 1000, End: 3000}, {Start: 3000, End: 3500, Coverage: 1}},
		},
		"in the future": {
			pause:   epoch.Pause{LastStart: 11_000, LastEnd: 12_000, BurstStart: 9000, BytesAtBurstStart: math.MaxUint64, Pauses: 2, PausedTime: 1},
			refused: 2,
		},
		"begun after it ended": {
			paused:  true,
			pause:   epoch.Pause{LastStart: 12_000, BurstStart: 12_000, Pauses: 1},
			refused: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pause.Port, tc.pause.Priority = 1, 3
			g, n := node(t, &Report{
				Header: epoch.Header{Snapshot: snapshot},
				Ports:  []epoch.Port{{Port: 1, Priority: 3, Sent: 1, Paused: tc.paused}}, Pauses: []epoch.Pause{tc.pause},
			})
			if len(n.PauseIntervals) == 0 {
				n.PauseIntervals = nil
			}
			if diff := gocmp.Diff(tc.want, n.PauseIntervals); diff != "" || g.ImplausibleIntervals != tc.refused {
				t.Errorf("%d refused, want %d; pauses (-want +got):\n%s", g.ImplausibleIntervals, tc.refused, diff)
			}
		})
	}
}

func TestIntervalOfAnEpisode(t *testing.T) {
	r := &Report{
		Header: epoch.Header{Snapshot: 10_000}, Ports: []epoch.Port{{Port: 1, Priority: 3, Sent: 1}},
		Episodes: []epoch.CongestionEpisode{{Port: 1, Priority: 3, First: 2000, Last: 4000, MaxBytes: 99}},
	}
	_, n := node(t, r)
	want := []Interval{{Start: 2000, End: 4000, Bytes: 99, Coverage: 1}}
	if diff := gocmp.Diff(want, n.CongestionIntervals); diff != "" {
		t.Errorf("congestion (-want +got):\n%s", diff)
	}
	r.Episodes[0].First = 5000
	if g, n := node(t, r); len(n.CongestionIntervals) != 0 || g.ImplausibleIntervals != 1 {
		t.Errorf("%+v, %d refused of an episode that ends before it starts; want none, 1", n.CongestionIntervals, g.ImplausibleIntervals)
	}
}

// TestIntervalsOfARing: what the switch kept one by one replaces the summaries of
// that queue, and what it overwrote is a summary before them.
func TestIntervalsOfARing(t *testing.T) {
	const snapshot = 10_000
	pauses := epoch.Intervals{Port: 1, Priority: 3, Open: true, Earlier: epoch.Earlier{Count: 9, Start: 9000, End: 8000, Total: 300, Bytes: 11}}
	pauses.Add(epoch.Interval{Start: 5000, End: 4000, Bytes: 22})
	pauses.Add(epoch.Interval{Start: 1000, Bytes: 33})
	congestion := epoch.Intervals{Congestion: true, Port: 1, Priority: 3}
	congestion.Add(epoch.Interval{Start: 3000, End: 2000, Bytes: 44})
	settings := epoch.Settings{MTU: 4200}
	g, n := node(t, &Report{
		Header:    epoch.Header{Snapshot: snapshot},
		Pauses:    []epoch.Pause{{Port: 1, Priority: 3, LastStart: 9000, LastEnd: 6000, BurstStart: 5000, Pauses: 12}},
		Episodes:  []epoch.CongestionEpisode{{Port: 1, Priority: 3, First: 2000, Last: 4000, MaxBytes: 99}},
		Intervals: []epoch.Intervals{pauses, congestion}, Settings: settings,
	})
	want := []Interval{
		{Start: 1000, End: 2000, Bytes: 11, Coverage: .3},
		{Start: 5000, End: 6000, Bytes: 22, Coverage: 1},
		{Start: 9000, End: snapshot, Open: true, Bytes: 33, Coverage: 1},
	}
	if diff := gocmp.Diff(want, n.PauseIntervals); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]Interval{{Start: 7000, End: 8000, Bytes: 44, Coverage: 1}}, n.CongestionIntervals); diff != "" {
		t.Errorf("congestion (-want +got):\n%s", diff)
	}
	if got, want := g.IntervalMemory(), model.Bytes(2+1+3+2)*40; got != want { // two summaries, two rings
		t.Errorf("intervals take %v; want %v", got, want)
	}
	if s, ok := g.SwitchReport(n.Node); !ok || s.Settings != settings || g.ImplausibleIntervals != 0 {
		t.Errorf("report %+v, %d refused; want settings %+v, 0", s, g.ImplausibleIntervals, settings)
	}
}

// TestARingWithoutOtherRecords: the queue is in the graph, and ages before the
// clock's range are refused.
func TestARingWithoutOtherRecords(t *testing.T) {
	v := epoch.Intervals{Port: 1, Priority: 3}
	v.Add(epoch.Interval{Start: epoch.MaxAge, End: epoch.MaxAge - 1})
	v.Add(epoch.Interval{Start: 10, End: 5})
	g, n := node(t, &Report{Header: epoch.Header{Snapshot: math.MinInt64 + 100}, Intervals: []epoch.Intervals{v}})
	want := []Interval{{Start: math.MinInt64 + 90, End: math.MinInt64 + 95, Coverage: 1}}
	if diff := gocmp.Diff(want, n.PauseIntervals); diff != "" || g.ImplausibleIntervals != 1 {
		t.Errorf("%d refused, want 1; pauses (-want +got):\n%s", g.ImplausibleIntervals, diff)
	}
}
