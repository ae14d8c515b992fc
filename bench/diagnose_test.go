package bench

import (
	"runtime"
	"testing"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	detector "github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/topo"
)

// TestReplayCanFail: the comparison of graph and replay detects a difference.
func TestReplayCanFail(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a fat-tree of k=16")
	}
	detector.LeaveToPlainRun(t)
	in, err := newIncident()
	if err != nil {
		t.Fatal(err)
	}
	e, err := in.assembleReports()
	if err != nil {
		t.Fatal(err)
	}
	g := provenance.Build(e, in.victim, in.routes.Fabric())
	r := replayGraph(e, in.routes.Fabric())
	weights := portFlowEdges(g)
	if err := r.equals(g, weights); err != nil {
		t.Fatal(err)
	}
	if len(g.Flows) != incidentFlows || len(g.FlowPort) == 0 || len(g.PortPort) == 0 {
		t.Errorf("%d flows, %d and %d edges of pauses; want %d and some", len(g.Flows), len(g.FlowPort), len(g.PortPort), incidentFlows)
	}
	weights[0].Weight++
	if r.equals(g, weights) == nil {
		t.Error("a wrong weight is not detected")
	}
}

// BenchmarkDiagnose splits what `weft bench diagnose` measures into its steps.
func BenchmarkDiagnose(b *testing.B) {
	in, err := newIncident()
	if err != nil {
		b.Fatal(err)
	}
	e, err := in.assembleReports()
	if err != nil {
		b.Fatal(err)
	}
	doctor, err := diagnose.New(diagnose.DefaultConfig(topo.NewIntent(in.routes)))
	if err != nil {
		b.Fatal(err)
	}
	f := in.routes.Fabric()
	g := provenance.Build(e, in.victim, f)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"collect", func() {
			if _, err := in.assembleReports(); err != nil {
				b.Fatal(err)
			}
		}},
		{"build", func() { provenance.Build(e, in.victim, f) }},
		{"diagnose", func() { doctor.Diagnose(diagnose.Detection{Event: in.event, Victim: in.victim}, e, g) }},
	} {
		b.Run(step.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ReportAllocs()
			start := threadTime()
			for b.Loop() {
				step.do()
			}
			b.ReportMetric(float64(threadTime()-start)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
