package core

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// TestClockStepsDoNotStopTheAnalyses sets the host's clock forth and back by hours. If
// the switches' clocks stay, so does the fabric's time; if theirs are set, too, it
// follows. Reports are used again soon in both cases, and no incident is found.
func TestClockStepsDoNotStopTheAnalyses(t *testing.T) {
	for name, tc := range map[string]struct {
		step  time.Duration
		moved bool // the switches' clocks are set as well
		quiet bool // no switch reports
		want  time.Duration
	}{
		"host alone, forth":   {step: 3 * time.Hour},
		"host alone, back":    {step: -3 * time.Hour},
		"host alone, seconds": {step: 20 * time.Second},
		"all, forth":          {step: 3 * time.Hour, moved: true, want: 3 * time.Hour},
		"all, back":           {step: -3 * time.Hour, moved: true, want: -3 * time.Hour},
		"all, seconds":        {step: -20 * time.Second, moved: true, want: -20 * time.Second},
		"nothing reports":     {step: -3 * time.Hour, quiet: true, want: -3 * time.Hour},
		"NTP corrects":        {step: 300 * time.Millisecond, want: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			c := stalledCore(t, &stuckInput{}, &shelf{})
			found := 0
			c.deps.Incident = func(*incident.Incident) { found++ }
			wall := noon
			clock := NewFabricClock(func() time.Time { return wall }, nil, slog.New(slog.DiscardHandler))
			m := mirror.Mirror{Switch: c.Fabric().Switches()[0], Length: 64, Frame: make([]byte, 64)}
			list := control.DefaultListPlan(c.Fabric()).Mirrors.First
			shift, now := time.Duration(0), model.Time(0)
			const loops, loop, stepAt = 800, 20 * time.Millisecond, 100
			for i := range loops {
				elapsed := time.Duration(i) * loop
				if i == stepAt {
					shift = tc.step
				}
				wall = noon.Add(elapsed + shift)
				if clock.follow(c.Controller, model.TimeOf(wall), elapsed) {
					now = 0
				}
				now = max(now, clock.base.Add(elapsed)+model.Time(clock.offset.Load()))
				c.Controller.SetWallClock(now)
				if !tc.quiet {
					m.Time = model.TimeOf(noon.Add(elapsed))
					if tc.moved && i >= stepAt {
						m.Time = m.Time.Add(tc.step)
					}
					c.Controller.IngestReport(now, list, m.AppendTo(nil))
				}
				c.Controller.Tick(now)
			}
			off := now.Sub(model.TimeOf(noon.Add((loops - 1) * loop)))
			if (off - tc.want).Abs() > time.Second {
				t.Errorf("the fabric's time is off by %v at the end; want %v", off, tc.want)
			}
			s := c.Controller.Stats()
			if s.Untimely[control.Mirror] > 75 || s.Reports[control.Mirror] > 0 && s.Reports[control.Mirror] != loops || found != 0 {
				t.Errorf("%d of %d reports untimely, %d incidents; want reports to be used within a second, and no incident",
					s.Untimely[control.Mirror], s.Reports[control.Mirror], found)
			}
			if want := tc.step.Abs() >= minStep; (clock.Steps() == 1) != want || (clock.Alert() != "") != (want && off.Abs() < time.Second) {
				t.Errorf("%d steps counted, alert %q", clock.Steps(), clock.Alert())
			}
		})
	}
}

// TestFabricClockIsMonotonic: the fabric's time advances by the monotonic clock.
func TestFabricClockIsMonotonic(t *testing.T) {
	shift := time.Duration(0)
	c := NewFabricClock(func() time.Time { return time.Now().Add(shift) }, nil, slog.New(slog.DiscardHandler))
	before := c.Now()
	shift = -time.Hour
	if after := c.Now(); after < before || after.Sub(before) > time.Minute {
		t.Errorf("the fabric's time went from %v to %v when the wall clock was set back", before, after)
	}
}
