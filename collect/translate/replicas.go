package translate

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Replica is a Target whose collector may go away.
type Replica interface {
	Target
	// Down reports whether the collector is known to be unreachable. It must be safe to
	// call while another goroutine puts reports.
	Down() bool
	Tick(now model.Time)
	Drain(now model.Time)
}

// Replicas is a Target that has several collectors store the same reports, so that
// others have what a lost collector had. A report is refused while
// a reachable collector refuses it: otherwise what the others have stored would be
// lost with them. An unreachable one is left out, and lacks those reports when it
// returns.
//
// Paper: section 7 names replicas of collectors for resilience, without a design.
type Replicas []Replica

// Admit implements Target.
func (g Replicas) Admit(r *dta.Report) dta.Verdict {
	return g.admit(func(t Target) dta.Verdict { return t.Admit(r) })
}

// AdmitRun implements Target.
func (g Replicas) AdmitRun(first *dta.Report, run []byte, count int) dta.Verdict {
	return g.admit(func(t Target) dta.Verdict { return t.AdmitRun(first, run, count) })
}

func (g Replicas) admit(of func(Target) dta.Verdict) dta.Verdict {
	all := dta.RateLimited // where none is reachable: the reporter repeats it
	for _, t := range g {
		if t.Down() {
			continue
		}
		if all = of(t); all != dta.Stored {
			return all
		}
	}
	return all
}

// Put implements Target.
func (g Replicas) Put(now model.Time, batch []dta.Report) {
	for _, t := range g.reachable() {
		t.Put(now, batch)
	}
}

// PutRun implements Target.
func (g Replicas) PutRun(now model.Time, first *dta.Report, run []byte, count int) {
	for _, t := range g.reachable() {
		t.PutRun(now, first, run, count)
	}
}

// reachable yields the replicas that are not down; all of them where all are, which
// count what they lose.
func (g Replicas) reachable() []Replica {
	for i, t := range g {
		if !t.Down() {
			continue
		}
		up := append(Replicas(nil), g[:i]...)
		for _, t := range g[i+1:] {
			if !t.Down() {
				up = append(up, t)
			}
		}
		if len(up) > 0 {
			return up
		}
		break
	}
	return g
}

// Tick writes paths and entries whose wait time is over.
func (g Replicas) Tick(now model.Time) {
	for _, t := range g {
		t.Tick(now)
	}
}

// Drain writes everything, before shutdown.
func (g Replicas) Drain(now model.Time) {
	for _, t := range g {
		t.Drain(now)
	}
}
