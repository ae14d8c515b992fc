package live

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

var pairSeeds = flag.Int("pairs", 1, "seeds with which TestTwoFaultsAreTwoIncidents injects every pair of faults")

// TestTwoFaultsAreTwoIncidents injects every pair of faults within 20 ms: each is
// found with its cause at its place, none is merged into the other, and nothing else
// is found.
func TestTwoFaultsAreTwoIncidents(t *testing.T) {
	race.LeaveToPlainRun(t)
	kinds := FaultKinds()
	for seed := range *pairSeeds {
		for i := range kinds {
			for j := range kinds {
				// Polarization moves flows off the link that loses packets.
				moved := kinds[i].Name+kinds[j].Name == "imbalancesilent-drop" || kinds[i].Name+kinds[j].Name == "silent-dropimbalance"
				if i == j || moved {
					continue
				}
				t.Run(fmt.Sprintf("%s and %s seed %d", kinds[i].Name, kinds[j].Name, seed), func(t *testing.T) {
					l, d := watched(t, slow(uint64(seed)*100+uint64(i*len(kinds)+j)))
					pass(t, l, 60*time.Millisecond)
					for _, k := range []FaultKind{kinds[i], kinds[j]} {
						injectApart(t, d, k)
						pass(t, l, 10*time.Millisecond)
					}
					pass(t, l, faultDuration+reportDelay)
					s := d.Score()
					bad := len(s.FalseAlarms) > 0 || s.Missed > 0
					for _, f := range s.Faults {
						if !f.Found {
							t.Errorf("%s was missed: %s", f.Kind, f.What)
						} else if bad {
							t.Logf("%s was found as incident %d: %s", f.Kind, f.Incident, f.What)
						}
					}
					for _, in := range s.FalseAlarms {
						t.Errorf("incident %d is a false alarm: %v at %s: %s", in.ID, in.Cause, l.fabric.PortRef(in.Place), in.Text)
					}
				})
			}
		}
	}
}

// injectApart injects a fault at a random place that shares no node with those before:
// a host that pauses its port hides that others congest it.
func injectApart(t *testing.T, d *Director, k FaultKind) {
	t.Helper()
	for range 1000 {
		p := &planner{fabric: d.sim.fabric, routes: d.sim.net.Routes(), rng: d.rng, at: d.sim.Now(), span: faultDuration}
		f, err := k.plan(p, Anywhere)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(d.faults, func(o *Injected) bool {
			return slices.ContainsFunc(o.Nodes, func(n model.NodeID) bool { return slices.Contains(f.Nodes, n) })
		}) {
			continue
		}
		if _, err := d.start(f); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no place for %s", k.Name)
}
