package serve

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestIdleServicePollsLessOften: the controller reads every step while reports arrive and
// for a second afterwards, then at longer intervals, and with the first report every step
// again. A step that is longer stays.
func TestIdleServicePollsLessOften(t *testing.T) {
	for _, step := range []time.Duration{100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
		p := pollPace{step: step}
		for round := range 2 {
			if got := p.next(3); got != step {
				t.Errorf("step %v, round %d: %v after reports; want the step", step, round, got)
			}
			quiet := time.Duration(0)
			for p.next(0) == step && quiet < 2*idleAfter {
				quiet += step
			}
			if want := max(step, idleStep); step < want && (quiet < idleAfter-2*step || quiet > idleAfter) || p.next(0) != want {
				t.Errorf("step %v, round %d: every step for %v without reports, then %v; want a second, then %v", step, round, quiet, p.next(0), want)
			}
		}
	}
	if idleStep >= maxStride {
		t.Errorf("an idle service reads every %v, and its clock advances by %v at most; want it to keep up", idleStep, maxStride)
	}
}

// TestClockSkipsNoTimeUnnoticed: the clock follows the wall's in strides that grow with
// the turns, never goes back, and says when it cannot but skip time.
func TestClockSkipsNoTimeUnnoticed(t *testing.T) {
	const at = model.Time(time.Hour)
	for name, tc := range map[string]struct {
		wall model.Time
		turn time.Duration
		want model.Time
		skip bool
	}{
		"in time":               {wall: at.Add(time.Millisecond), want: at.Add(time.Millisecond)},
		"behind":                {wall: at.Add(maxLag), want: at.Add(maxStride)},
		"behind, and slow":      {wall: at.Add(maxLag), turn: 20 * time.Millisecond, want: at.Add(40 * time.Millisecond)},
		"after a pause":         {wall: at.Add(maxLag), turn: time.Second, want: at.Add(maxLongStride)},
		"too far behind":        {wall: at.Add(5 * time.Second), want: at.Add(5*time.Second - maxLag), skip: true},
		"a wall clock set back": {wall: at.Add(-time.Minute), want: at},
	} {
		if got, skip := advance(at, tc.wall, tc.turn); got != tc.want || skip != tc.skip {
			t.Errorf("%s: advance(%v, %v, %v) = %v, %v; want %v, %v", name, at, tc.wall, tc.turn, got, skip, tc.want, tc.skip)
		}
	}
}
