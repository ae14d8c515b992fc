package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/topo"
)

// analysisGoal is the limit of CPU time for the whole analysis of an incident.
const analysisGoal = 60 * time.Millisecond

var diagnoseSuite = Suite{
	Name:  "diagnose",
	About: "build and evaluate the provenance graph of an incident, compared with a replay packet by packet",
	Input: "fat-tree k=16, 10,000 flows, twelve incasts of 128 hosts; the reports of all 320 switches for two epochs of 200 µs",
	run: func(ctx context.Context) ([]Result, error) {
		in, err := newIncident()
		if err != nil {
			return nil, err
		}
		e, err := in.assembleReports()
		if err != nil {
			return nil, err
		}
		f := in.routes.Fabric()
		g := provenance.Build(e, in.victim, f)
		if err := replayGraph(e, f).equals(g, portFlowEdges(g)); err != nil {
			return nil, fmt.Errorf("graph differs from the replay: %w", err)
		}
		doctor, err := diagnose.New(diagnose.DefaultConfig(topo.NewIntent(in.routes)))
		if err != nil {
			return nil, err
		}
		said := anomaly.None
		ns, err := alternateRounds(ctx, func(n int) {
			for range n {
				portFlowEdges(provenance.Build(e, in.victim, f))
			}
		}, func(n int) {
			for range n {
				replayGraph(e, f)
			}
		}, func(n int) {
			for range n {
				all, err := in.assembleReports()
				if err != nil {
					panic("bench: the same chunks were valid before: " + err.Error())
				}
				g := provenance.Build(all, in.victim, f)
				said = doctor.Diagnose(diagnose.Detection{Event: in.event, Victim: in.victim}, all, g)[0].Anomaly
			}
		})
		if err != nil {
			return nil, err
		}
		if said == anomaly.None {
			return nil, fmt.Errorf("the incident has no verdict")
		}
		const msec = float64(time.Millisecond)
		return []Result{
			lowerIsBetter("the paper's provenance graph", ns[0]/msec, "ms", "replay packet by packet", ns[1]/msec, 20),
			lowerIsBetter("reports to verdict", ns[2]/msec, "ms of CPU", "goal", float64(analysisGoal)/msec, 1),
		}, nil
	},
}
