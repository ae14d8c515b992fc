package rootcause

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// unconfirmedCycle is a verdict on a deadlock cycle that waits for a second
// snapshot, and the graph of the first.
type unconfirmedCycle struct {
	diagnose.Verdict
	keptGraph
	since model.Time
}

// keptGraph is a graph, and the memory of its intervals, of the reports that it refers
// to and of the account that was made of them.
type keptGraph struct {
	graph *provenance.Graph
	size  model.Bytes
}

// maxKept is how many graphs of either kind are kept.
const maxKept = 64

// overLimit reports whether graphs take more than a quarter of the memory.
func (d *Diagnoser) overLimit(sum model.Bytes) bool { return 2*sum > d.cfg.Memory/4 }

// addUnconfirmed keeps a verdict until a second snapshot, and returns the oldest ones
// where there are too many.
func (d *Diagnoser) addUnconfirmed(h unconfirmedCycle) (out []diagnose.Verdict) {
	d.unconfirmed = append(d.unconfirmed, h)
	sum := model.Bytes(0)
	for i := range d.unconfirmed {
		sum += d.unconfirmed[i].size
	}
	for len(d.unconfirmed) > maxKept || len(d.unconfirmed) > 1 && d.overLimit(sum) {
		sum -= d.unconfirmed[0].size
		out = append(out, d.unconfirmed[0].unconfirmed(noSecondSnapshot))
		d.unconfirmed = slices.Delete(d.unconfirmed, 0, 1)
	}
	return out
}

// recheck compares a graph with verdicts that wait, and returns those it
// settles.
func (d *Diagnoser) recheck(g *provenance.Graph) (out []diagnose.Verdict) {
	d.unconfirmed = slices.DeleteFunc(d.unconfirmed, func(h unconfirmedCycle) bool {
		if g.To.Sub(h.At) < d.drainTime(h.graph, h.DeadlockCycle) {
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

// drainTime returns how long the queues of a cycle would take to send, one after the
// other, what they held at the snapshot, with a round trip on each link for the frame that
// lets a queue resume: within it, queues that make progress may look like a deadlock.
func (d *Diagnoser) drainTime(g *provenance.Graph, cycle []model.Port) (sum time.Duration) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if p := d.fabric.Port(n.Port); p != nil && p.Rate > 0 && slices.Contains(cycle, n.Port) {
			sum += 2*p.Delay + time.Duration(float64(n.State.Queued)*8e9/float64(p.Rate))
		}
	}
	return sum
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
func (d *Diagnoser) confirmedBefore(g keptGraph, v *diagnose.Verdict) bool {
	sum := g.size
	for _, s := range d.seen {
		if v.At.Sub(s.graph.To) >= d.drainTime(s.graph, v.DeadlockCycle) &&
			diagnose.CompareSnapshots(s.graph, g.graph, v.DeadlockCycle) == diagnose.NoProgress {
			v.MarkPersistent(v.At.Sub(s.graph.To))
			return true
		}
		sum += s.size
	}
	for len(d.seen) == maxKept || len(d.seen) > 0 && d.overLimit(sum) {
		sum -= d.seen[0].size
		d.seen = slices.Delete(d.seen, 0, 1)
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
