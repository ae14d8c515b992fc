package hawkeye

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/lateness"
)

// TestOneAnswer judges verdicts on a packet that waited for an injected incast, a
// storm or a deadlock, or for something else.
func TestOneAnswer(t *testing.T) {
	at := func(n model.NodeID) model.Port { return model.Port{Node: n, Port: 1} }
	key := func(n uint16) model.FlowKey { return model.FlowKey{SrcPort: n} }
	const mine, burstFlow, other = 0, 1, 2
	loop := []model.Port{at(5), at(6), at(7)}
	r := &run{
		flows: map[model.FlowKey]int{key(10): mine, key(11): burstFlow, key(12): other},
		trace: trace{causes: []injectedCause{
			{anomaly.PFCBackpressure, anomaly.ContendingFlows, []model.Port{at(1)}, []int{burstFlow}, nil},
			{anomaly.DeadlockOutOfLoop, anomaly.HostInjection, []model.Port{at(4)}, nil, loop},
		}},
	}
	term := func(k lateness.Kind, place model.Port, us int64, flows ...uint16) lateness.Term {
		x := lateness.Term{Place: lateness.Queue{Port: place}, Kind: k, Time: engine.Time(us) * engine.Microsecond}
		for _, f := range flows {
			x.Parties = append(x.Parties, lateness.Party{Flow: key(f), Time: x.Time / engine.Time(len(flows))})
		}
		if k == lateness.DeadlockCycle {
			x.Deadlock = &lateness.Deadlock{Closing: []lateness.Term{{Place: lateness.Queue{Port: at(4)}, Kind: lateness.HostInjection, Time: x.Time}}}
			for _, p := range loop {
				x.Deadlock.Cycle = append(x.Deadlock.Cycle, lateness.Queue{Port: p})
			}
		}
		return x
	}
	contend := func(place model.Port, flows ...uint16) diagnose.Verdict {
		v := diagnose.Verdict{Anomaly: anomaly.FlowContention, Cause: anomaly.ContendingFlows, Initial: place}
		for _, f := range flows {
			v.Culprits = append(v.Culprits, diagnose.Culprit{Flow: key(f), Weight: 1})
		}
		return v
	}
	paused := func(what anomaly.Type, place model.Port, cycle ...model.Port) diagnose.Verdict {
		return diagnose.Verdict{Anomaly: what, Cause: anomaly.HostInjection, Initial: place, DeadlockCycle: cycle}
	}
	incast := []lateness.Term{
		term(lateness.Contention, at(2), 40, 11, 12), term(lateness.Contention, at(1), 30, 11), term(lateness.Contention, at(3), 25, 12),
	}
	background := []lateness.Term{term(lateness.Contention, at(3), 60, 12), term(lateness.Contention, at(1), 30, 11)}
	locked := []lateness.Term{term(lateness.DeadlockCycle, at(5), 60), term(lateness.HostInjection, at(4), 30)}
	// A deadlock that flows triggered which were not injected, in a queue of its cycle.
	byOthers := []lateness.Term{term(lateness.DeadlockCycle, at(5), 60), term(lateness.HostInjection, at(4), 30)}
	byOthers[0].Deadlock = &lateness.Deadlock{
		Cycle: byOthers[0].Deadlock.Cycle,
		// The incast may have begun first, and has the least part in it.
		Closing: []lateness.Term{term(lateness.Contention, loop[0], 60, 12), term(lateness.Contention, at(1), 3, 11)},
	}
	inLoop := func(place model.Port, flows ...uint16) diagnose.Verdict {
		v := contend(place, flows...)
		v.Anomaly, v.DeadlockCycle = anomaly.DeadlockInLoop, loop
		return v
	}
	outside := contend(at(1), 11)
	outside.Anomaly, outside.DeadlockCycle = anomaly.DeadlockOutOfLoop, loop
	for name, tc := range map[string]struct {
		terms []lateness.Term
		v     diagnose.Verdict
		want  bool
	}{
		"the incast at its port":              {incast, contend(at(1), 11), true},
		"its flows where they contend before": {incast, contend(at(2), 11), true},
		"the incast without flows":            {incast, contend(at(1)), false},
		"other flows at its port":             {incast, contend(at(1), 10), false},
		"its flows at a port without them":    {incast, contend(at(3), 11), false},
		"a lesser cause":                      {incast, contend(at(3), 12), false},
		"a host instead":                      {incast, paused(anomaly.PFCStorm, at(1)), false},
		"a deadlock that was none":            {incast, paused(anomaly.DeadlockOutOfLoop, at(4), loop...), false},
		"what was not injected":               {background, contend(at(3), 12), true},
		"the incast beside it":                {background, contend(at(1), 11), false},
		"the deadlock and its trigger":        {locked, paused(anomaly.DeadlockOutOfLoop, at(4), loop...), true},
		"the deadlock, another trigger":       {locked, paused(anomaly.DeadlockOutOfLoop, at(3), loop...), false},
		"the deadlock, another cycle":         {locked, paused(anomaly.DeadlockOutOfLoop, at(4), loop[:2]...), false},
		"the trigger without the deadlock":    {locked, paused(anomaly.PFCStorm, at(4)), false},
		"a trigger that was not injected":     {byOthers, inLoop(loop[0], 12), true},
		"its place with other flows":          {byOthers, inLoop(loop[0], 10), false},
		"what was injected instead":           {byOthers, paused(anomaly.DeadlockOutOfLoop, at(4), loop...), false},
		"what has the least part in it":       {byOthers, outside, false},
	} {
		a := &lateness.Account{Terms: tc.terms}
		for i := range tc.terms {
			a.Late += tc.terms[i].Time
		}
		truth := r.truthOf(a)
		if got := r.isRight(&truth, nanoseconds(a.Late), &tc.v); got != tc.want {
			t.Errorf("%s: right %v, want %v", name, got, tc.want)
		}
		d := diagnosis{detection: &detection{account: a}, verdicts: []diagnose.Verdict{tc.v}}
		silent := diagnosis{detection: &detection{account: a}, verdicts: []diagnose.Verdict{{}}}
		lost := diagnosis{detection: &detection{}, verdicts: []diagnose.Verdict{tc.v}}
		want := tally{requests: 3, answered: 2}
		if tc.want {
			want.right = 1
		}
		if got := r.score([]diagnosis{d, silent, lost}); got != want {
			t.Errorf("%s: scores %+v; want %+v", name, got, want)
		}
	}
}

func TestNothingIsNoSuccess(t *testing.T) {
	var none tally
	if none.precision() != 0 || none.recall() != 0 {
		t.Errorf("precision %v, recall %v of nothing; want 0", none.precision(), none.recall())
	}
}

// The sweep has every combination, and its fabrics have a cycle to deadlock.
func TestSweepCells(t *testing.T) {
	cells := sweepCells()
	if len(cells) != 4*3*2*3*3*3 {
		t.Fatalf("%d cells, want 648", len(cells))
	}
	seen := map[string]bool{}
	for i, n := range cells {
		if seen[n.String()] {
			t.Errorf("%v twice", n)
		}
		if seen[n.String()] = true; i%54 != 0 {
			continue
		}
		routes, err := n.fabric(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range append(rows[:len(rows):len(rows)], pulsedStorm, ackPath) {
			tr, err := newTrace(routes, n, sweepTiming, uint64(i), sweepLoad, k)
			if err != nil || len(tr.causes) != 1 || tr.end <= n.time(sweepTiming.warmUp) {
				t.Errorf("%v, %v: %d causes until %v, %v; want one", n, k, len(tr.causes), tr.end, err)
			}
		}
	}
}
