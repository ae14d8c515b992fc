package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
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

// all tells whether every culprit competed.
func (r *run) all(list []diagnose.Culprit, a *answer) bool {
	return !slices.ContainsFunc(list, func(c diagnose.Culprit) bool {
		flow, known := r.flows[c.Flow]
		return !known || !a.flows[flow]
	})
}

// names tells whether a verdict, which an answer confirms, states what was
// injected: of a burst, all of its flows that were at the port at the time.
func (r *run) names(v *diagnose.Verdict, a *answer, c *cause) bool {
	if !a.is(c) {
		return false
	}
	blamed := map[int]bool{}
	for _, x := range v.Culprits {
		blamed[r.flows[x.Flow]] = true
	}
	present := 0
	for _, f := range c.flows {
		if a.flows[f] {
			present++
			if !blamed[f] {
				return false
			}
		}
	}
	return len(c.flows) == 0 || present > 0
}

// outcome is what became of one trace under one choice of parameters.
type outcome struct {
	complaints int
	wrong      int    // verdicts that no closure confirms
	right      int    // verdicts that one does
	none       int    // complaints without a verdict
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

// diagnosed is a complaint with what was said about it and what is true.
type diagnosed struct {
	complaint
	verdicts []diagnose.Verdict
	answers  []answer
	switches []model.NodeID // that answered
	bytes    model.Bytes
}
