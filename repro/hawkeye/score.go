package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// confirmed returns the true cause that a verdict names, or nil: the same
// anomaly, root cause, port and cycle, and culprits that were there.
func (r *run) confirmed(c *detection, v *diagnose.Verdict, causes []trueCause) *trueCause {
	loop := slices.SortedFunc(slices.Values(v.DeadlockCycle), comparePorts)
	for i := range causes {
		a := &causes[i]
		same := a.anomaly == v.Anomaly
		if c.hostPaused && a.anomaly == anomaly.FlowContention && v.Anomaly == anomaly.PFCBackpressure {
			same = true // in the first switch, whose queue holds the flow and pauses its host
		}
		if same && a.root == v.Cause && a.port == v.Initial && slices.Equal(loop, a.loop) &&
			r.culpritsPresent(v.Culprits, a) {
			return a
		}
	}
	return nil
}

// culpritsPresent reports whether the culprits contended: a fifth of the weight
// may be on flows that had just left.
func (r *run) culpritsPresent(list []diagnose.Culprit, a *trueCause) bool {
	all, gone := 0.0, 0.0
	for _, c := range list {
		all += c.Weight
		if flow, known := r.flows[c.Flow]; !known || a.flows[flow] == 0 {
			gone += c.Weight
		}
	}
	return gone <= 0.2*all
}

// isPartlyTrue reports whether a verdict without a root cause is true as far as
// it goes: there is such a cycle.
func isPartlyTrue(v *diagnose.Verdict, causes []trueCause) bool {
	loop := slices.SortedFunc(slices.Values(v.DeadlockCycle), comparePorts)
	return v.Cause == anomaly.NoRootCause && slices.ContainsFunc(causes, func(a trueCause) bool {
		return a.loop != nil && slices.Equal(loop, a.loop)
	})
}

// coverage is what all verdicts of a trace together say about an injected
// cause. Each names the flows that it sees in the queue.
type coverage struct {
	named, hinted     bool         // a verdict names it; or contention of the same flows
	culprits, present map[int]bool // flows named as culprits, and those that had a main part
}

// observe adds a verdict that a true cause confirms. Flows that wait in the
// burst's queue itself have verdicts of contention there, which name its flows,
// too.
func (n *coverage) observe(r *run, at engine.Time, v *diagnose.Verdict, a *trueCause, c *injectedCause) {
	if !a.isAbout(c) {
		return
	}
	n.hinted = true
	n.named = n.named || a.isInjected(c)
	if a.loop == nil {
		a = r.atPoll(at, a) // other detections name the flows that have left the queue by then
	}
	for f := range a.flows {
		n.present[f] = n.present[f] || a.isMainCulprit(f)
	}
	for _, x := range v.Culprits {
		n.culprits[r.flows[x.Flow]] = true
	}
}

// observeCycle counts a true verdict on a deadlock cycle as one that names its
// cause, if the closure has the cause as another trigger of the same cycle: the
// evidence does not say which of two triggered it.
func (n *coverage) observeCycle(a *trueCause, causes []trueCause, c *injectedCause) {
	n.named = n.named || a.loop != nil && slices.ContainsFunc(causes,
		func(b trueCause) bool { return b.isInjected(c) && slices.Equal(a.loop, b.loop) })
}

// atPoll returns a true cause with the flows that were in its queue when
// switches were polled.
func (r *run) atPoll(at engine.Time, a *trueCause) *trueCause {
	var list []trueCause
	graphs, _ := r.history.samplesBetween(at-engine.Of(maxPollDelay), at+engine.Of(maxPollDelay))
	for _, g := range graphs {
		list = addContention(list, g.Graph, truth.QueueNode(a.port, class), a.anomaly, nil)
	}
	if len(list) == 0 {
		return &trueCause{anomaly: a.anomaly, root: a.root, port: a.port}
	}
	return &list[0]
}

// complete reports whether everything required was said about a cause: what it
// is and, for a burst, most of the flows that had a main part. A burst that
// pauses no flow that is detected is contention.
func (n *coverage) complete(c *injectedCause, d requirement) bool {
	if !d.named {
		return true
	}
	present, culprits := 0, 0
	for _, f := range c.flows {
		if n.present[f] {
			present++
			if n.culprits[f] {
				culprits++
			}
		}
	}
	return (n.named || n.hinted && !d.exact) && 2*culprits >= present
}

// outcome is the result of one trace under one choice of parameters.
type outcome struct {
	detections int
	wrong      int    // verdicts that no closure confirms
	right      int    // verdicts that one does
	none       int    // detections without a verdict, or with one that leaves the cause open
	found      []bool // by cause: a verdict names it
}

// allCorrect reports whether everything was found and nothing else reported.
func (o *outcome) allCorrect() bool { return o.wrong == 0 && !o.missed() }

// missed reports whether something was not found.
func (o *outcome) missed() bool { return slices.Contains(o.found, false) }

// tally adds up traces. As in the paper the unit is a trace: a true positive if
// what was injected is named and all verdicts are true, a false positive if one
// is not, a false negative if what was injected is not named.
type tally struct {
	traces, hits, wrong, missed int
	verdicts, right             int // of all detections
}

func (t *tally) addOutcome(o *outcome) {
	t.traces++
	t.verdicts += o.right + o.wrong
	t.right += o.right
	if o.allCorrect() {
		t.hits++
	}
	if o.wrong > 0 {
		t.wrong++
	}
	if o.missed() {
		t.missed++
	}
}

func (t *tally) addTally(o tally) {
	t.traces += o.traces
	t.hits += o.hits
	t.wrong += o.wrong
	t.missed += o.missed
	t.verdicts += o.verdicts
	t.right += o.right
}

func (t *tally) precision() float64 { return share(t.traces-t.wrong, t.traces) }
func (t *tally) recall() float64    { return share(t.traces-t.missed, t.traces) }

func share(part, all int) float64 {
	if all == 0 {
		return 1
	}
	return float64(part) / float64(all)
}
