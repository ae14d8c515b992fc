package sampled

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Exporters chooses among the switches that report the same packets of a flow, each by
// a record of its own: those of the first stage of the route whose switches all export.
type Exporters struct {
	intent *topo.Intent
	known  []bool // by node: it has sent records
	stages stageTable
}

// NewExporters returns a choice without exporters.
func NewExporters(in *topo.Intent) *Exporters {
	return &Exporters{intent: in, known: make([]bool, len(in.At(0).Fabric().Nodes()))}
}

// Choose notes that a switch of the fabric exports, and reports whether its record of a
// flow is the one to use.
func (e *Exporters) Choose(sw model.NodeID, key *model.FlowKey, at model.Time) bool {
	e.known[sw] = true
	routes := e.intent.At(at)
	list := e.stages.of(routes, key)
	if list == nil { // from outside the fabric: where it ends is known
		return slices.Contains(routes.ExpectedLastHops(key.Dst), sw)
	}
	for _, stage := range list {
		if slices.Contains(stage, sw) {
			return true
		}
		if !slices.ContainsFunc(stage, func(other model.NodeID) bool { return !e.known[other] }) {
			return false
		}
	}
	return false
}
