package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/lateness"
)

// otherCause is a cause that was not injected: a port, and what happened there.
type otherCause struct {
	place model.Port
	kind  lateness.Kind
}

// requestTruth is the exact account of a request's late packet by causes. An
// injected one is a single cause wherever its flows contend or its deadlock cycle
// holds.
type requestTruth struct {
	injected []float64 // by cause of the trace: ns
	others   map[otherCause]float64
	cycles   float64                     // ns of deadlock cycles, in either, by what closed them
	deadlock *lateness.Deadlock          // that held the packet longest
	flows    map[model.Port]map[int]bool // that contended, by port
}

func (r *run) newTruth() requestTruth {
	return requestTruth{
		injected: make([]float64, len(r.trace.causes)), others: map[otherCause]float64{},
		flows: map[model.Port]map[int]bool{},
	}
}

// truthOf returns the truth about a request with an exact account.
func (r *run) truthOf(a *lateness.Account) requestTruth {
	t := r.newTruth()
	for i := range a.Terms {
		switch term := &a.Terms[i]; term.Kind {
		case lateness.DeadlockCycle:
			t.cycles += nanoseconds(term.Time)
			if t.deadlock == nil { // terms come longest first
				t.deadlock = term.Deadlock
			}
			r.addClosing(&t, term)
		default:
			r.addContenders(&t, term)
			r.addCauses(&t, term, 1)
		}
	}
	return t
}

// addClosing adds the time of a deadlock cycle to what its pauses went back to when it
// closed, by their parts in it.
func (r *run) addClosing(t *requestTruth, cycle *lateness.Term) {
	all := 0.0
	for i := range cycle.Deadlock.Closing {
		all += nanoseconds(cycle.Deadlock.Closing[i].Time)
	}
	for i := range cycle.Deadlock.Closing {
		o := &cycle.Deadlock.Closing[i]
		r.addContenders(t, o)
		r.addCauses(t, o, nanoseconds(cycle.Time)/all)
	}
}

// addCauses adds the time of a term to its causes, as many times as said.
func (r *run) addCauses(t *requestTruth, term *lateness.Term, times float64) {
	place := term.Place.Port
	switch term.Kind {
	case lateness.Contention:
		for _, p := range term.Parties {
			t.add(r.injectedContention(place, r.flowNumber(p.Flow)), otherCause{place, term.Kind}, times*nanoseconds(p.Time))
		}
	case lateness.HostInjection:
		t.add(r.injectedPauses(place), otherCause{place, term.Kind}, times*nanoseconds(term.Time))
	case lateness.Unexplained:
		t.add(-1, otherCause{model.Port{}, term.Kind}, times*nanoseconds(term.Time))
	}
}

func (t *requestTruth) add(injected int, other otherCause, ns float64) {
	if injected >= 0 {
		t.injected[injected] += ns
	} else {
		t.others[other] += ns
	}
}

// addContenders adds the flows of a contention.
func (r *run) addContenders(t *requestTruth, term *lateness.Term) {
	at := term.Place.Port
	for _, p := range term.Parties {
		if flow := r.flowNumber(p.Flow); flow >= 0 && term.Kind == lateness.Contention {
			if t.flows[at] == nil {
				t.flows[at] = map[int]bool{}
			}
			t.flows[at][flow] = true
		}
	}
}

// flowNumber returns the number of a flow, or -1.
func (r *run) flowNumber(key model.FlowKey) int {
	if flow, known := r.flows[key]; known {
		return flow
	}
	return -1
}

// main returns the cause with the largest part: an injected one, or, with -1,
// another.
func (t *requestTruth) main() (injected int, other otherCause) {
	injected, most := -1, 0.0
	for c, ns := range t.others {
		if ns > most || ns == most && c.place.Compare(other.place) < 0 {
			other, most = c, ns
		}
	}
	for i, ns := range t.injected {
		if ns > most {
			injected, most = i, ns
		}
	}
	return injected, other
}

// injectedContention returns the injected cause that a flow's contention at a
// port is a part of, or -1.
func (r *run) injectedContention(at model.Port, flow int) int {
	return slices.IndexFunc(r.trace.causes, func(c injectedCause) bool {
		return c.root == anomaly.ContendingFlows && (slices.Contains(c.ports, at) || slices.Contains(c.flows, flow))
	})
}

func (r *run) injectedPauses(at model.Port) int {
	return slices.IndexFunc(r.trace.causes, func(c injectedCause) bool {
		return c.root == anomaly.HostInjection && slices.Contains(c.ports, at)
	})
}

func cyclePorts(d *lateness.Deadlock) (ports []model.Port) {
	for _, q := range d.Cycle {
		ports = append(ports, q.Port)
	}
	return ports
}

// samePorts reports whether two lists hold the same ports, in any order.
func samePorts(a, b []model.Port) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p model.Port) bool { return !slices.Contains(b, p) })
}

// isRight reports whether a verdict names the main cause of a request: root cause
// and place, a deadlock cycle where most of the time went to one and none where no
// time did, and flows that contended.
func (r *run) isRight(t *requestTruth, late float64, v *diagnose.Verdict) bool {
	switch cycle := len(v.DeadlockCycle) > 0; {
	case cycle && t.cycles == 0, !cycle && 2*t.cycles >= late:
		return false
	}
	if len(v.DeadlockCycle) > 0 && !r.isDeadlock(v, t.deadlock) {
		return false
	}
	injected, other := t.main()
	if injected < 0 {
		return v.Initial == other.place &&
			(v.Cause == anomaly.HostInjection && other.kind == lateness.HostInjection ||
				v.Cause == anomaly.ContendingFlows && other.kind == lateness.Contention && r.culpritsContended(v, t, nil))
	}
	c := &r.trace.causes[injected]
	if v.Cause != c.root {
		return false
	}
	if c.root == anomaly.HostInjection {
		return slices.Contains(c.ports, v.Initial)
	}
	atPlace := slices.Contains(c.ports, v.Initial) || slices.ContainsFunc(c.flows, func(f int) bool { return t.flows[v.Initial][f] })
	return atPlace && r.culpritsContended(v, t, c)
}

// isDeadlock reports whether a verdict names a deadlock: its cycle, and whether what
// closed it most was contention in it.
func (r *run) isDeadlock(v *diagnose.Verdict, exact *lateness.Deadlock) bool {
	want := anomaly.DeadlockOutOfLoop
	if r.closedFromWithin(exact) {
		want = anomaly.DeadlockInLoop
	}
	return v.Anomaly == want && samePorts(v.DeadlockCycle, cyclePorts(exact))
}

// closedFromWithin reports whether most of the largest cause that the pauses of a cycle
// went back to when it closed is contention in queues of the cycle.
func (r *run) closedFromWithin(d *lateness.Deadlock) bool {
	all, within := r.newTruth(), r.newTruth()
	for i := range d.Closing {
		o := &d.Closing[i]
		r.addCauses(&all, o, 1)
		if o.Kind == lateness.Contention && slices.Contains(d.Cycle, o.Place) {
			r.addCauses(&within, o, 1)
		}
	}
	injected, other := all.main()
	if injected < 0 {
		return 2*within.others[other] > all.others[other]
	}
	return 2*within.injected[injected] > all.injected[injected]
}

// culpritsContended reports whether half of the weight of a verdict's culprits, of
// which it needs some, is on flows of the injected cause or on flows that
// contended at the port.
func (r *run) culpritsContended(v *diagnose.Verdict, t *requestTruth, c *injectedCause) bool {
	all, present := 0.0, 0.0
	for _, x := range v.Culprits {
		all += x.Weight
		if flow, known := r.flows[x.Flow]; known && (t.flows[v.Initial][flow] || c != nil && slices.Contains(c.flows, flow)) {
			present += x.Weight
		}
	}
	return all > 0 && 2*present >= all
}
