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
func (r *run) confirmed(c *complaint, v *diagnose.Verdict, answers []answer) *answer {
	loop := slices.SortedFunc(slices.Values(v.DeadlockCycle), comparePorts)
	for i := range answers {
		a := &answers[i]
		same := a.anomaly == v.Anomaly
		if c.stopped && a.anomaly == anomaly.FlowContention && v.Anomaly == anomaly.PFCBackpressure {
			same = true // in the first switch, whose queue holds the flow and pauses its host
		}
		if same && a.root == v.Cause && a.port == v.Initial && slices.Equal(loop, a.loop) && r.there(v.Culprits, a) {
			return a
		}
	}
	return nil
}

// there tells whether the culprits competed: a fifth of the blame may be on
// flows that had just left.
func (r *run) there(list []diagnose.Culprit, a *answer) bool {
	all, gone := 0.0, 0.0
	for _, c := range list {
		all += c.Weight
		if flow, known := r.flows[c.Flow]; !known || a.flows[flow] == 0 {
			gone += c.Weight
		}
	}
	return gone <= 0.2*all
}

// partly tells whether a verdict that names no cause is true as far as it goes:
// there is such a circle.
func partly(v *diagnose.Verdict, answers []answer) bool {
	loop := slices.SortedFunc(slices.Values(v.DeadlockCycle), comparePorts)
	return v.Cause == anomaly.NoRootCause && slices.ContainsFunc(answers, func(a answer) bool {
		return a.loop != nil && slices.Equal(loop, a.loop)
	})
}

// naming is what all verdicts of a trace together say of a cause. Each names
// the flows that it sees in the queue.
type naming struct {
	said, hinted    bool         // a verdict names it; or contention of the same flows
	blamed, present map[int]bool // flows, and those that had a main part
}

// hear adds a verdict that an answer confirms. Those who wait in the burst's
// queue itself speak of contention there, and name its flows, too.
func (n *naming) hear(r *run, at engine.Time, v *diagnose.Verdict, a *answer, c *cause) {
	if !a.of(c) {
		return
	}
	n.hinted = true
	n.said = n.said || a.is(c)
	if a.loop == nil {
		a = r.asked(at, a) // flows that have left the queue by then are told by other complaints
	}
	for f := range a.flows {
		n.present[f] = n.present[f] || a.main(f)
	}
	for _, x := range v.Culprits {
		n.blamed[r.flows[x.Flow]] = true
	}
}

// circle takes a true verdict about a circle for one that names its cause, if
// the closure has the cause as another beginning of the same circle: which of
// two began it, nobody can tell.
func (n *naming) circle(a *answer, answers []answer, c *cause) {
	n.said = n.said || a.loop != nil && slices.ContainsFunc(answers, func(b answer) bool { return b.is(c) && slices.Equal(a.loop, b.loop) })
}

// asked is an answer with the flows that were in its queue when switches were
// asked.
func (r *run) asked(at engine.Time, a *answer) *answer {
	var list []answer
	graphs, _ := r.history.between(at-engine.Of(polling), at+engine.Of(polling))
	for _, g := range graphs {
		list = contends(list, g.Graph, truth.QueueNode(a.port, class), a.anomaly, nil)
	}
	if len(list) == 0 {
		return &answer{anomaly: a.anomaly, root: a.root, port: a.port}
	}
	return &list[0]
}

// all tells whether all that is due was said of a cause: what it is and, of a
// burst, most of the flows that had a main part. A burst that pauses nobody who
// complains is contention.
func (n *naming) all(c *cause, d due) bool {
	if !d.of {
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
	return (n.said || n.hinted && !d.is) && 2*blamed >= present
}

// outcome is what became of one trace under one choice of parameters.
type outcome struct {
	complaints int
	wrong      int    // verdicts that no closure confirms
	right      int    // verdicts that one does
	none       int    // complaints without a verdict, or with one that leaves the cause open
	found      []bool // by cause: a verdict names it
}

// hit tells whether everything was found and nothing else said.
func (o *outcome) hit() bool { return o.wrong == 0 && !o.missed() }

// missed tells whether something was not found.
func (o *outcome) missed() bool { return slices.Contains(o.found, false) }

// tally adds up traces. As in the paper the unit is a trace: a true positive if
// what was injected is named and all verdicts are true, a false positive if one
// is not, a false negative if what was injected is not named.
type tally struct {
	traces, hits, wrong, missed int
	verdicts, right             int // of all complaints, for a closer look
}

func (t *tally) add(o *outcome) {
	t.traces++
	t.verdicts += o.right + o.wrong
	t.right += o.right
	if o.hit() {
		t.hits++
	}
	if o.wrong > 0 {
		t.wrong++
	}
	if o.missed() {
		t.missed++
	}
}

func (t *tally) plus(o tally) {
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
