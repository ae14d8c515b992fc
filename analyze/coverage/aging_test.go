package coverage

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// agingReference decides from the times of all labels of a port and of all calls, from the
// first one on.
func agingReference(labels, calls []model.Time, period time.Duration) (raised bool) {
	var end model.Time
	for _, now := range calls {
		newest := calls[0] // it had until then no reason for a label
		for _, l := range labels {
			if l <= now {
				newest = max(newest, l)
			}
		}
		silent := now.Sub(newest) > period
		switch {
		case raised && now >= end && silent, !raised && silent:
			raised, end = true, now.Add(period)
		case raised && now >= end:
			raised = false
		}
	}
	return raised
}

// Labels and calls come at drawn times; after each call the port's setting, as the commands
// say, is that of a reference that has no timers.
func TestAgingEqualsReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, _ := newBoard(t)
		cfg := DefaultTunerConfig(10 * time.Millisecond)
		a, err := NewAgingDatabase(cfg)
		if err != nil {
			rt.Fatal(err)
		}
		p := model.Port{Node: 4, Port: 1}
		var labels, calls []model.Time
		raised, now := false, model.Time(time.Second)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "ms")) * time.Millisecond)
			if len(calls) > 0 && rapid.Bool().Draw(rt, "label") {
				labels = append(labels, now)
				if err := b.IngestReport(now, export(false, label.Item{Switch: 4, Egress: 1, Time: now})); err != nil {
					rt.Fatal(err)
				}
			}
			calls = append(calls, now)
			for _, c := range a.Step(now, b, []model.Port{p}) {
				if c.Port != p || c.Shift != 0 && c.Shift != cfg.MaxShift {
					rt.Fatalf("command %+v, want %v with shift 0 or %d", c, p, cfg.MaxShift)
				}
				raised = c.Shift > 0
			}
			if want := agingReference(labels, calls, cfg.period()); raised != want {
				rt.Fatalf("labels %v, calls %v: labels at every packet: %v, want %v", labels, calls, raised, want)
			}
		}
	})
}

// An entry is refreshed while its port stays silent, times out after a label, and every
// command but the first of a port is repeated.
func TestEntriesAge(t *testing.T) {
	b, _ := newBoard(t)
	a, err := NewAgingDatabase(DefaultTunerConfig(10 * time.Millisecond)) // k·T is 20 ms
	if err != nil {
		t.Fatal(err)
	}
	ports := []model.Port{{Node: 4, Port: 1}, {Node: 4, Port: 2}}
	got := map[int][]uint8{}
	for n := range 140 {
		now := model.Time(n) * model.Time(time.Millisecond)
		if n%5 == 0 { // the second port is never silent
			_ = b.IngestReport(now, export(false, label.Item{Switch: 4, Egress: 2, Time: now}))
		}
		if n >= 50 && n%5 == 0 {
			_ = b.IngestReport(now, export(false, label.Item{Switch: 4, Egress: 1, Time: now}))
		}
		for _, c := range a.Step(now, b, ports) {
			if c.Port != ports[0] {
				t.Errorf("command %+v at %d ms, want none for a port with labels", c, n)
			}
			got[n] = append(got[n], c.Shift)
		}
	}
	want := map[int][]uint8{21: {6}, 41: {6}, 61: {0}, 81: {0}}
	for n := range 140 {
		if !slices.Equal(got[n], want[n]) {
			t.Errorf("commands at %d ms: %v, want %v", n, got[n], want[n])
		}
	}
}
