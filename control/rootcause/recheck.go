package rootcause

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// unconfirmedCycle is a verdict about a loop that waits for a second look, and what the
// first look saw.
type unconfirmedCycle struct {
	diagnose.Verdict
	graph   *provenance.Graph
	since model.Time
}

// recheck shows a graph to verdicts that wait, and returns those it settles.
func (w *Diagnoser) recheck(g *provenance.Graph) (out []diagnose.Verdict) {
	w.unconfirmed = slices.DeleteFunc(w.unconfirmed, func(h unconfirmedCycle) bool {
		if g.To.Sub(h.At) < w.cfg.MinRecheckInterval {
			return false
		}
		switch diagnose.CompareSnapshots(h.graph, g, h.DeadlockCycle) {
		case diagnose.Progressed:
			out = append(out, h.unconfirmed("a second look found it moving: the loop dissolved"))
			return true
		case diagnose.NoProgress:
			out = append(out, h.confirmed(g))
			return true
		}
		return false
	})
	return out
}

// confirmed is the verdict of a loop that has not moved until a second look.
func (h *unconfirmedCycle) confirmed(g *provenance.Graph) diagnose.Verdict {
	v := h.Verdict
	v.MarkPersistent(g.To.Sub(h.At))
	return v
}

// unconfirmed is the verdict of a loop of which nothing more is known.
func (h *unconfirmedCycle) unconfirmed(why string) diagnose.Verdict {
	v := h.Verdict
	v.Evidence = append(slices.Clone(v.Evidence), why)
	return v
}

// confirmedBefore tells whether an earlier look saw the same loop, and marks the
// verdict standing if nothing has moved since.
func (w *Diagnoser) confirmedBefore(g *provenance.Graph, v *diagnose.Verdict) bool {
	for _, s := range w.seen {
		if v.At.Sub(s.To) >= w.cfg.MinRecheckInterval && diagnose.CompareSnapshots(s, g, v.DeadlockCycle) == diagnose.NoProgress {
			v.MarkPersistent(v.At.Sub(s.To))
			return true
		}
	}
	const most = 64
	if len(w.seen) == most {
		w.seen = w.seen[1:]
	}
	w.seen = append(w.seen, g)
	return false
}

// expireUnconfirmed gives out verdicts that have waited too long.
func (w *Diagnoser) expireUnconfirmed(now model.Time) (out []diagnose.Verdict) {
	w.unconfirmed = slices.DeleteFunc(w.unconfirmed, func(h unconfirmedCycle) bool {
		if now.Sub(h.since) < w.cfg.RecheckTimeout {
			return false
		}
		out = append(out, h.unconfirmed("nobody looked a second time"))
		return true
	})
	return out
}
