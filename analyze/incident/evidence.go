package incident

import (
	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Evidence is one statement of one source.
type Evidence struct {
	At     model.Time // when it was said, by the collector's clock
	From   model.Time // when what it speaks of began
	Source anomaly.Source
	Cause  anomaly.Cause
	Confirmed   bool // the source excludes what is harmless
	Minor  bool // it is so, and costs next to nothing

	// Location is where the trouble begins: a switch's port, or the switch alone
	// (port 0). A storm begins at the host.
	Location model.Port
	// NextHop is the node behind Place, where the source knows it: packets may be
	// lost in either, or between them.
	NextHop    model.NodeID
	HasNextHop bool
	// Extent is every node that it touches: the nodes of a loop, those that
	// pauses spread over.
	Extent []model.NodeID
	Path   []model.Port // how pauses spread, from the victim on
	DeadlockCycle   []model.Port // ports that wait for each other

	Flows    []model.FlowKey // that suffer
	Culprits []model.FlowKey // that cause it
	Text     string          // a sentence
	Remedy   string          // what an operator would try; empty: the cause's own
	Ref      string          // of the diagnosis, trace or probe it rests on
}

// nodes calls f with every node that e speaks of until it returns true.
func (e *Evidence) anyNode(f func(model.NodeID) bool) bool {
	if f(e.Location.Node) || e.HasNextHop && f(e.NextHop) {
		return true
	}
	for _, n := range e.Extent {
		if f(n) {
			return true
		}
	}
	return false
}
