package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
)

// confirmed returns the true reason that a verdict states, or nil: the same
// anomaly, cause, port and loop, and nobody blamed who was not there.
func (r *run) confirmed(v *diagnose.Verdict, answers []answer) *answer {
	loop := slices.SortedFunc(slices.Values(v.Loop), comparePorts)
	for i := range answers {
		a := &answers[i]
		if a.anomaly == v.Anomaly && a.root == v.Cause && a.port == v.Initial && slices.Equal(loop, a.loop) && r.all(v.Culprits, a) {
			return a
		}
	}
	return nil
}

// partly tells whether a verdict that names no cause is true as far as it goes:
// there is such a circle.
func partly(v *diagnose.Verdict, answers []answer) bool {
	loop := slices.SortedFunc(slices.Values(v.Loop), comparePorts)
	return v.Cause == diagnose.NoCause && slices.ContainsFunc(answers, func(a answer) bool {
		return a.loop != nil && slices.Equal(loop, a.loop)
	})
}

// all tells whether every culprit competed.
func (r *run) all(list []diagnose.Culprit, a *answer) bool {
	return !slices.ContainsFunc(list, func(c diagnose.Culprit) bool {
		flow, known := r.flows[c.Flow]
		return !known || !a.flows[flow]
	})
}

// naming is what all verdicts of a trace together say of a cause. Each names
// the flows that it sees in the queue.
type naming struct {
	due             bool         // it is the reason of a complaint
	said, hinted    bool         // a verdict names it; or contention of the same flows
	blamed, present map[int]bool // flows
}

// hear adds a verdict that an answer confirms. Those who wait in the burst's
// queue itself speak of contention there, and name its flows, too.
func (n *naming) hear(r *run, v *diagnose.Verdict, a *answer, c *cause) {
	if !a.of(c) {
		return
	}
	n.hinted = true
	n.said = n.said || a.is(c)
	for f := range a.flows {
		n.present[f] = true
	}
	for _, x := range v.Culprits {
		n.blamed[r.flows[x.Flow]] = true
	}
}

// all tells whether the cause was named: what it is and, of a burst, every flow
// that was there. A burst that pauses nobody who complains is contention.
func (n *naming) all(c *cause) bool {
	return (n.said || n.hinted && !n.due) && !slices.ContainsFunc(c.flows, func(f int) bool { return n.present[f] && !n.blamed[f] })
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
