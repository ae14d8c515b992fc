package scenario

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/sim"
)

// Under spraying a poll follows the one path of the victim's hash. What all of its paths
// share is diagnosed as ever: a storm and an incast at the last switch, and no host is
// accused of an incast.
func TestDiagnosesOfSprayedFlows(t *testing.T) {
	race.LeaveToPlainRun(t)
	for name, want := range map[string]anomaly.RootCause{"storm": anomaly.HostInjection, "incast": anomaly.ContendingFlows} {
		for _, by := range []sim.LoadBalancing{sim.Spray, sim.Adaptive} {
			for seed := range uint64(3) {
				s := readExample(t, name)
				s.Seed, s.Sim.Seed = seed+1, seed+1
				s.Sim.LoadBalancing, s.Sim.Selective = by, true
				tor, _ := s.fabric().ByName("tor7")
				h15, _ := s.fabric().ByName("h15")
				last := s.fabric().Node(tor).PortsTo(h15)[0]
				found := false
				for _, d := range runScenario(t, s).Diagnoses {
					found = found || d.Cause == want && d.Initial != nil && d.Initial.Node == "tor7" && d.Initial.Port == last
					if d.Cause == anomaly.HostInjection && want != anomaly.HostInjection {
						t.Errorf("%s, %v, seed %d: %s; want no host accused", name, by, s.Seed, d.Sentence())
					}
				}
				if !found {
					t.Errorf("%s, %v, seed %d: no diagnosis names %v at tor7 to h15", name, by, s.Seed, want)
				}
			}
		}
	}
}
