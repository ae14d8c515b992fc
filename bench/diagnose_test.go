package bench

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/provenance"
)

// TestReplayCanFail: the proof that graph and replay agree sees a difference.
func TestReplayCanFail(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a fat-tree of k=16")
	}
	in, err := newIncident()
	if err != nil {
		t.Fatal(err)
	}
	e, err := in.collect()
	if err != nil {
		t.Fatal(err)
	}
	g := provenance.Build(e, in.victim, in.routes.Fabric())
	r := replay(e, in.routes.Fabric())
	if err := r.equals(g); err != nil {
		t.Fatal(err)
	}
	if len(g.Flows) != incidentFlows || len(g.FlowPort) == 0 || len(g.PortPort) == 0 {
		t.Errorf("%d flows, %d and %d edges of pauses; want %d and some", len(g.Flows), len(g.FlowPort), len(g.PortPort), incidentFlows)
	}
	g.PortFlow[0].Weight++
	if r.equals(g) == nil {
		t.Error("a wrong weight goes unnoticed")
	}
}
