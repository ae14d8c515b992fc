package diagnose

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// TestCycleInheritsItsCause: an earlier detection saw the pauses that closed it.
func TestCycleInheritsItsCause(t *testing.T) {
	p := func(n model.NodeID) model.Port { return model.Port{Node: n, Port: 1} }
	early := Verdict{
		Anomaly: anomaly.PFCStorm, Cause: anomaly.HostInjection, Initial: p(9),
		Path: []model.Port{p(1), p(9)}, At: now, Reach: 2000 * µs,
	}
	cycle := Verdict{
		Anomaly: anomaly.DeadlockOutOfLoop, DeadlockCycle: []model.Port{p(1), p(2), p(3)},
		At: now.Add(2000 * µs), CycleClosed: now.Add(1000 * µs), Reach: 2000 * µs,
	}
	var o TriggerCache
	alone := cycle
	if o.Observe(&alone); alone.Cause != anomaly.NoRootCause {
		t.Errorf("cause %v from nowhere; want none", alone.Cause)
	}
	o.Observe(&early)
	late := cycle
	if o.Observe(&late); late.Cause != anomaly.HostInjection || late.Anomaly != anomaly.DeadlockOutOfLoop ||
		late.Initial != p(9) {
		t.Errorf("verdict %+v; want the cause of the storm before it", late)
	}
	other := cycle
	other.DeadlockCycle = []model.Port{p(5), p(6)}
	if o.Observe(&other); other.Cause != anomaly.NoRootCause {
		t.Errorf("cause %v of a storm elsewhere; want none", other.Cause)
	}
}

// TestCycleInheritsTheNewestCause: of several, that of the newest from before it
// closed, if there is one, and of none that is older than what the reports show.
func TestCycleInheritsTheNewestCause(t *testing.T) {
	p := func(n model.NodeID) model.Port { return model.Port{Node: n, Port: 1} }
	for _, tc := range []struct {
		closed time.Duration
		from   model.NodeID
		flows  int
	}{
		{1000 * µs, 1, 1},
		{1400 * µs, 1, 1},
		{1600 * µs, 2, 1},
		{400 * µs, 0, 1},
		{2600 * µs, 0, 0},
	} {
		var o TriggerCache
		for i, at := range []time.Duration{500 * µs, 900 * µs, 1500 * µs} {
			o.Observe(&Verdict{
				Anomaly: anomaly.PFCBackpressure, Cause: anomaly.ContendingFlows, Initial: p(model.NodeID(i)),
				Path: []model.Port{p(7)}, At: now.Add(at), Reach: 500 * µs, Culprits: []Culprit{{Weight: 1}},
			})
		}
		v := Verdict{
			Anomaly: anomaly.DeadlockOutOfLoop, DeadlockCycle: []model.Port{p(7), p(8)}, At: now.Add(3000 * µs),
			CycleClosed: now.Add(tc.closed), Reach: 500 * µs,
		}
		want := p(tc.from)
		if tc.flows == 0 {
			want = model.Port{}
		}
		if o.Observe(&v); v.Initial != want || len(v.Culprits) != tc.flows {
			t.Errorf("closed after %v: cause at %v with %d flows; want %v, %d", tc.closed, v.Initial, len(v.Culprits),
				want, tc.flows)
		}
	}
}

// TestDeadlockKeepsItsTrigger: while a deadlock stands, what triggered it fades.
func TestDeadlockKeepsItsTrigger(t *testing.T) {
	p := func(n model.NodeID) model.Port { return model.Port{Node: n, Port: 1} }
	loop := []model.Port{p(1), p(2), p(3)}
	first := Verdict{
		Event: poll.Event{Number: 1}, Anomaly: anomaly.DeadlockOutOfLoop, Cause: anomaly.ContendingFlows, Initial: p(9),
		DeadlockCycle: loop, CycleClosed: now, At: now.Add(500 * µs), Reach: 200 * µs, Culprits: []Culprit{{Weight: 1}},
	}
	for name, tc := range map[string]struct {
		later func(v *Verdict)
		want  model.Port
	}{
		"a queue inside":               {func(*Verdict) {}, p(9)},
		"no cause":                     {func(v *Verdict) { v.Cause, v.Initial = anomaly.NoRootCause, model.Port{} }, p(9)},
		"the same place without flows": {func(v *Verdict) { v.Anomaly, v.Initial, v.Culprits = anomaly.DeadlockOutOfLoop, p(9), nil }, p(9)},
		"clocks apart":                 {func(v *Verdict) { v.CycleClosed = now.Add(-50 * µs) }, p(9)},
		"closed anew":                  {func(v *Verdict) { v.CycleClosed = now.Add(900 * µs) }, p(2)},
		"another cycle":                {func(v *Verdict) { v.DeadlockCycle = loop[:2] }, p(2)},
		"the same request":             {func(v *Verdict) { v.Event.Number = 1 }, p(2)},
		"much later":                   {func(v *Verdict) { v.At = now.Add(3000 * µs) }, p(9)},
		"forgotten":                    {func(v *Verdict) { v.At = now.Add(4000 * µs) }, p(2)},
	} {
		var o TriggerCache
		early := first
		o.Observe(&early)
		v := Verdict{
			Event: poll.Event{Number: 2}, Anomaly: anomaly.DeadlockInLoop, Cause: anomaly.ContendingFlows, Initial: p(2),
			DeadlockCycle: loop, CycleClosed: now, At: now.Add(1500 * µs), Reach: 200 * µs, Culprits: []Culprit{{Weight: 1}},
		}
		tc.later(&v)
		o.Observe(&v)
		if v.Initial != tc.want || v.Cause != anomaly.ContendingFlows || len(v.Culprits) != 1 || (v.Anomaly == anomaly.DeadlockOutOfLoop) != (tc.want == p(9)) {
			t.Errorf("%s: %v by %v at %v with %d culprits; want %v", name, v.Anomaly, v.Cause, v.Initial, len(v.Culprits), tc.want)
		}
	}
}
