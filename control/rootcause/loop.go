package rootcause

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// held is a verdict about a loop that waits for a second look, and what the
// first look saw.
type held struct {
	diagnose.Verdict
	saw   *provenance.Graph
	since model.Time
}

// lookAgain shows a graph to verdicts that wait, and returns those it settles.
func (w *Watch) lookAgain(g *provenance.Graph) (out []diagnose.Verdict) {
	w.loops = slices.DeleteFunc(w.loops, func(h held) bool {
		if g.To.Sub(h.At) < w.cfg.Look {
			return false
		}
		switch diagnose.CompareSnapshots(h.saw, g, h.DeadlockCycle) {
		case diagnose.Progressed:
			out = append(out, h.giveUp("a second look found it moving: the loop dissolved"))
			return true
		case diagnose.NoProgress:
			out = append(out, h.stood(g))
			return true
		}
		return false
	})
	return out
}

// stood is the verdict of a loop that has not moved until a second look.
func (h *held) stood(g *provenance.Graph) diagnose.Verdict {
	v := h.Verdict
	v.MarkPersistent(g.To.Sub(h.At))
	return v
}

// giveUp is the verdict of a loop of which nothing more is known.
func (h *held) giveUp(why string) diagnose.Verdict {
	v := h.Verdict
	v.Evidence = append(slices.Clone(v.Evidence), why)
	return v
}

// stoodBefore tells whether an earlier look saw the same loop, and marks the
// verdict standing if nothing has moved since.
func (w *Watch) stoodBefore(g *provenance.Graph, v *diagnose.Verdict) bool {
	for _, s := range w.seen {
		if v.At.Sub(s.To) >= w.cfg.Look && diagnose.CompareSnapshots(s, g, v.DeadlockCycle) == diagnose.NoProgress {
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

// expire gives out verdicts that have waited too long.
func (w *Watch) expire(now model.Time) (out []diagnose.Verdict) {
	w.loops = slices.DeleteFunc(w.loops, func(h held) bool {
		if now.Sub(h.since) < w.cfg.Hold {
			return false
		}
		out = append(out, h.giveUp("nobody looked a second time"))
		return true
	})
	return out
}
