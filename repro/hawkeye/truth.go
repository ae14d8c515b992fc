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
	cycles   float64                     // ns of deadlock cycles, in either
	deadlock *lateness.Deadlock          // that held the packet longest
	flows    map[model.Port]map[int]bool // that contended, by port
}

// truthOf returns the truth about a request with an exact account.
func (r *run) truthOf(a *lateness.Account) requestTruth {
	t := requestTruth{
		injected: make([]float64, len(r.trace.causes)), others: map[otherCause]float64{},
		flows: map[model.Port]map[int]bool{},
	}
	for i := range a.Terms {
		switch term := &a.Terms[i]; term.Kind {
		case lateness.DeadlockCycle:
			t.cycles += nanoseconds(term.Time)
			if t.deadlock == nil { // terms come longest first
				t.deadlock = term.Deadlock
			}
			for j := range term.Deadlock.Origins {
				r.addContenders(&t, &term.Deadlock.Origins[j])
			}
			trigger := &term.Deadlock.Trigger
			t.add(r.injectedTrigger(term.Deadlock), otherCause{trigger.Place.Port, trigger.Kind}, nanoseconds(term.Time))
		case lateness.Contention:
			r.addContenders(&t, term)
			for _, p := range term.Parties {
				t.add(r.injectedContention(term.Place.Port, r.flowNumber(p.Flow)), otherCause{term.Place.Port, term.Kind}, nanoseconds(p.Time))
			}
		case lateness.HostInjection:
			t.add(r.injectedPauses(term.Place.Port), otherCause{term.Place.Port, term.Kind}, nanoseconds(term.Time))
		case lateness.Unexplained:
			t.add(-1, otherCause{model.Port{}, term.Kind}, nanoseconds(term.Time))
		}
	}
	return t
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

// injectedTrigger returns the injected cause that triggered a deadlock, or -1.
func (r *run) injectedTrigger(d *lateness.Deadlock) int {
	at := d.Trigger.Place.Port
	if d.Trigger.Kind == lateness.HostInjection {
		return r.injectedPauses(at)
	}
	for i := range d.Origins {
		if o := &d.Origins[i]; o.Kind == lateness.Contention && o.Place.Port == at {
			for _, p := range o.Parties {
				if i := r.injectedContention(at, r.flowNumber(p.Flow)); i >= 0 {
					return i
				}
			}
		}
	}
	return r.injectedContention(at, -1)
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
	if len(v.DeadlockCycle) > 0 && !isDeadlock(v, t.deadlock) {
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

// isDeadlock reports whether a verdict names a deadlock: its cycle, and whether its
// trigger was in it.
func isDeadlock(v *diagnose.Verdict, exact *lateness.Deadlock) bool {
	want := anomaly.DeadlockOutOfLoop
	if exact.Trigger.InCycle && exact.Trigger.Kind == lateness.Contention {
		want = anomaly.DeadlockInLoop
	}
	return v.Anomaly == want && samePorts(v.DeadlockCycle, cyclePorts(exact))
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
