package rootcause

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// unconfirmedCycle is a verdict on a deadlock cycle that waits for a second
// snapshot, and the graph of the first.
type unconfirmedCycle struct {
	diagnose.Verdict
	graph *provenance.Graph
	since model.Time
}

// recheck compares a graph with verdicts that wait, and returns those it
// settles.
func (d *Diagnoser) recheck(g *provenance.Graph) (out []diagnose.Verdict) {
	d.unconfirmed = slices.DeleteFunc(d.unconfirmed, func(h unconfirmedCycle) bool {
		if g.To.Sub(h.At) < d.cfg.MinRecheckInterval {
			return false
		}
		switch diagnose.CompareSnapshots(h.graph, g, h.DeadlockCycle) {
		case diagnose.Progressed:
			out = append(out, h.unconfirmed("a second snapshot shows progress: the cycle dissolved"))
			return true
		case diagnose.NoProgress:
			out = append(out, h.confirmed(g))
			return true
		}
		return false
	})
	return out
}

// confirmed returns the verdict on a cycle without progress until a second
// snapshot.
func (h *unconfirmedCycle) confirmed(g *provenance.Graph) diagnose.Verdict {
	v := h.Verdict
	v.MarkPersistent(g.To.Sub(h.At))
	return v
}

// unconfirmed returns the verdict on a cycle that no second snapshot confirms.
func (h *unconfirmedCycle) unconfirmed(why string) diagnose.Verdict {
	v := h.Verdict
	v.Evidence = append(slices.Clone(v.Evidence), why)
	return v
}

// confirmedBefore reports whether an earlier snapshot shows the same cycle
// without progress since, and marks the verdict persistent in that case.
func (d *Diagnoser) confirmedBefore(g *provenance.Graph, v *diagnose.Verdict) bool {
	for _, s := range d.seen {
		if v.At.Sub(s.To) >= d.cfg.MinRecheckInterval &&
			diagnose.CompareSnapshots(s, g, v.DeadlockCycle) == diagnose.NoProgress {
			v.MarkPersistent(v.At.Sub(s.To))
			return true
		}
	}
	const most = 64
	if len(d.seen) == most {
		d.seen = d.seen[1:]
	}
	d.seen = append(d.seen, g)
	return false
}

// noSecondSnapshot is the evidence that a cycle was not rechecked.
const noSecondSnapshot = "no second snapshot was taken"

// expireUnconfirmed returns verdicts that have waited for RecheckTimeout.
func (d *Diagnoser) expireUnconfirmed(now model.Time) (out []diagnose.Verdict) {
	d.unconfirmed = slices.DeleteFunc(d.unconfirmed, func(h unconfirmedCycle) bool {
		if now.Sub(h.since) < d.cfg.RecheckTimeout {
			return false
		}
		out = append(out, h.unconfirmed(noSecondSnapshot))
		return true
	})
	return out
}
