package reading

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"pgregory.net/rapid"
)

const gigabit = model.Rate(1e9)

var port = model.Port{Node: 3, Port: 2}

func newTracker() *Tracker {
	return NewTracker(portstat.SFlow, func(model.Port) model.Rate { return gigabit })
}

func bytes(rx, tx uint64) *portstat.Counters {
	return &portstat.Counters{Has: portstat.HasBytes, RxBytes: rx, TxBytes: tx}
}

func seconds(n float64) model.Time { return model.Time(n * 1e9) }

func TestOutcomes(t *testing.T) {
	tr := newTracker()
	var r portstat.Reading
	for i, step := range []struct {
		at     float64
		totals *portstat.Counters
		want   Outcome
		rx     uint64
	}{
		{1, bytes(1000, 0), Baseline, 0},
		{2, bytes(1500, 0), Made, 500},
		{2, bytes(1600, 0), Late, 0},
		{1, bytes(1600, 0), Late, 0},
		{4, bytes(10, 0), Reset, 0}, // cleared
		{5, bytes(20, 0), Made, 10},
		{6, bytes(1<<50, 0), Implausible, 0},
		{7, bytes(1<<50+7, 0), Made, 7},
	} {
		if got := tr.Add(port, seconds(step.at), step.totals, &r); got != step.want {
			t.Fatalf("step %d: outcome %d; want %d", i, got, step.want)
		} else if got == Made && (r.RxBytes != step.rx || r.To != seconds(step.at) || r.Source != portstat.SFlow || r.Port != port) {
			t.Fatalf("step %d: %+v; want %d bytes received", i, r, step.rx)
		}
	}
	if got, want := tr.Stats(), (Stats{Baseline: 1, Made: 3, Late: 2, Reset: 1, Implausible: 1}); got != want {
		t.Errorf("Stats = %v; want %v", got, want)
	}
	tr.Forget(port)
	if got := tr.Add(port, seconds(3), bytes(1, 1), &r); got != Baseline {
		t.Errorf("after Forget: outcome %d; want Baseline", got)
	}
}

func TestPausedTimeIsWithinTheInterval(t *testing.T) {
	tr := newTracker()
	var r portstat.Reading
	paused := func(d time.Duration) *portstat.Counters {
		c := &portstat.Counters{}
		c.Class[3] = portstat.ClassCounters{Has: portstat.HasRxPaused, RxPaused: d}
		return c
	}
	tr.Add(port, seconds(1), paused(0), &r)
	if got := tr.Add(port, seconds(2), paused(1200*time.Millisecond), &r); got != Made || r.Class[3].RxPaused != time.Second {
		t.Errorf("outcome %d, paused %v in 1 s; want a reading of 1s", got, r.Class[3].RxPaused)
	}
	if got := tr.Add(port, seconds(3), paused(time.Hour), &r); got != Implausible {
		t.Errorf("outcome %d for an hour of pause in a second; want Implausible", got)
	}
}

// TestReadingsAddUp: over any plausible history the readings sum to what the port counted
// since the last baseline or reset.
func TestReadingsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTracker()
		var r portstat.Reading
		at, total := seconds(1), rapid.Uint64Range(0, 1<<60).Draw(t, "start")
		tr.Add(port, at, bytes(total, 0), &r)
		var want, got uint64
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			grown := rapid.Uint64Range(0, 100e6).Draw(t, "grown")
			at = at.Add(time.Duration(rapid.Int64Range(1e6, 5e9).Draw(t, "interval")))
			total += grown
			want += grown
			if o := tr.Add(port, at, bytes(total, 0), &r); o != Made {
				t.Fatalf("outcome %d; want a reading", o)
			}
			got += r.RxBytes
		}
		if got != want {
			t.Fatalf("readings sum to %d bytes; want %d", got, want)
		}
	})
}

func TestAddAllocatesNothing(t *testing.T) {
	tr := newTracker()
	var r portstat.Reading
	c := bytes(0, 0)
	at := seconds(1)
	tr.Add(port, at, c, &r)
	if n := testing.AllocsPerRun(100, func() {
		at = at.Add(time.Second)
		c.RxBytes += 1000
		tr.Add(port, at, c, &r)
	}); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}
