package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// confirmed returns the true reason that a verdict states, or nil: the same
// anomaly, cause, port and loop, and the blame on flows that were there.
func (r *run) confirmed(c *detection, v *diagnose.Verdict, answers []trueCause) *trueCause {
	loop := slices.SortedFunc(slices.Values(v.DeadlockCycle), comparePorts)
	for i := range answers {
		a := &answers[i]
		same := a.anomaly == v.Anomaly
		if c.hostPaused && a.anomaly == anomaly.FlowContention && v.Anomaly == anomaly.PFCBackpressure {
			same = true // in the first switch, whose queue holds the flow and pauses its host
		}
		if same && a.root == v.Cause && a.port == v.Initial && slices.Equal(loop, a.loop) && r.culpritsPresent(v.Culprits, a) {
			return a
		}
	}
	return nil
}

// culpritsPresent tells whether the culprits competed: a fifth of the blame may be on
// flows that had just left.
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

// isPartlyTrue tells whether a verdict that names no cause is true as far as it goes:
// culpritsPresent is such a circle.
func isPartlyTrue(v *diagnose.Verdict, answers []trueCause) bool {
	loop := slices.SortedFunc(slices.Values(v.DeadlockCycle), comparePorts)
	return v.Cause == anomaly.NoRootCause && slices.ContainsFunc(answers, func(a trueCause) bool {
		return a.loop != nil && slices.Equal(loop, a.loop)
	})
}

// coverage is what all verdicts of a trace together say of a cause. Each names
// the flows that it sees in the queue.
type coverage struct {
	named, hinted    bool         // a verdict names it; or contention of the same flows
	blamed, present map[int]bool // flows, and those that had a main part
}

// observe adds a verdict that an answer confirms. Those who wait in the burst's
// queue itself speak of contention there, and name its flows, too.
func (n *coverage) observe(r *run, at engine.Time, v *diagnose.Verdict, a *trueCause, c *injectedCause) {
	if !a.isAbout(c) {
		return
	}
	n.hinted = true
	n.named = n.named || a.isInjected(c)
	if a.loop == nil {
		a = r.atPoll(at, a) // flows that have left the queue by then are told by other complaints
	}
	for f := range a.flows {
		n.present[f] = n.present[f] || a.isMainCulprit(f)
	}
	for _, x := range v.Culprits {
		n.blamed[r.flows[x.Flow]] = true
	}
}

// observeCycle takes a true verdict about a circle for one that names its cause, if
// the closure has the cause as another beginning of the same circle: which of
// two began it, nobody can tell.
func (n *coverage) observeCycle(a *trueCause, answers []trueCause, c *injectedCause) {
	n.named = n.named || a.loop != nil && slices.ContainsFunc(answers, func(b trueCause) bool { return b.isInjected(c) && slices.Equal(a.loop, b.loop) })
}

// answered is an answer with the flows that were in its queue when switches were
// answered.
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

// complete tells whether all that is due was said of a cause: what it is and, of a
// addIncast, most of the flows that had a main part. A burst that pauses nobody who
// complains is contention.
func (n *coverage) complete(c *injectedCause, d requirement) bool {
	if !d.named {
		return true
	}
	present, blamed := 0, 0
	for _, f := range c.flows {
		if n.present[f] {
			present++
			if n.blamed[f] {
				blamed++
			}
		}
	}
	return (n.named || n.hinted && !d.exact) && 2*blamed >= present
}

// outcome is what became of one trace under one choice of parameters.
type outcome struct {
	detections int
	wrong      int    // verdicts that no closure confirms
	right      int    // verdicts that one does
	none       int    // detections without a verdict, or with one that leaves the cause open
	found      []bool // by cause: a verdict names it
}

// allCorrect tells whether everything was found and nothing else said.
func (o *outcome) allCorrect() bool { return o.wrong == 0 && !o.missed() }

// missed tells whether something was not found.
func (o *outcome) missed() bool { return slices.Contains(o.found, false) }

// tally adds up traces. As in the paper the unit is a trace: a true positive if
// what was injected is named and all verdicts are true, a false positive if one
// isInjected not, a false negative if what was injected is not named.
type tally struct {
	traces, hits, wrong, missed int
	verdicts, right             int // isAbout all complaints, for a closer look
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
