package live

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

var (
	pairSeeds   = flag.Int("pairs", 1, "seeds with which TestTwoFaultsAreTwoIncidents injects every pair of faults")
	tripleSeeds = flag.Int("triples", 1, "seeds with which TestThreeFaultsAtOnce injects every three faults")
)

// TestTwoFaultsAreTwoIncidents injects every pair of faults within 20 ms, in either
// order: each is found with its cause at its place, none is merged into the other, and
// nothing else is found.
func TestTwoFaultsAreTwoIncidents(t *testing.T) {
	race.LeaveToPlainRun(t)
	kinds := FaultKinds()
	for seed := range *pairSeeds {
		for i := range kinds {
			for j := range kinds {
				pair := []FaultKind{kinds[i], kinds[j]}
				if i == j || excludeEachOther(pair) {
					continue
				}
				t.Run(fmt.Sprintf("%s seed %d", namesOf(pair), seed), func(t *testing.T) {
					for _, f := range injectAtOnce(t, slow(uint64(seed*100+i*len(kinds)+j)), pair).Faults {
						if !f.Found {
							t.Errorf("%s was missed: %s", f.Kind, f.What)
						}
					}
				})
			}
		}
	}
}

// TestThreeFaultsAtOnce injects every three kinds of fault within 20 ms: nothing is
// invented. Where loops and deadlocks stop a part of the fabric, no packet shows what
// else is wrong there: up to one fault of 20 may be missed.
func TestThreeFaultsAtOnce(t *testing.T) {
	race.LeaveToPlainRun(t)
	kinds := FaultKinds()
	faults, missed := 0, 0
	for seed := range *tripleSeeds {
		for i := range kinds {
			for j := i + 1; j < len(kinds); j++ {
				for k := j + 1; k < len(kinds); k++ {
					three := []FaultKind{kinds[i], kinds[j], kinds[k]}
					if excludeEachOther(three) {
						continue
					}
					t.Run(fmt.Sprintf("%s seed %d", namesOf(three), seed), func(t *testing.T) {
						number := (i*len(kinds)+j)*len(kinds) + k
						s := injectAtOnce(t, small(uint64(seed*1000+500+number)), three)
						faults, missed = faults+len(s.Faults), missed+s.Missed
					})
				}
			}
		}
	}
	if missed*20 > faults {
		t.Errorf("%d of %d faults were missed; want at most 1 of 20", missed, faults)
	}
}

// excludeEachOther reports whether one fault keeps another from showing: polarization
// moves flows off the link that loses packets.
func excludeEachOther(kinds []FaultKind) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(kinds, func(k FaultKind) bool { return k.Name == name })
	}
	return has("imbalance") && has("silent-drop")
}

func namesOf(kinds []FaultKind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, " and ")
}

// injectAtOnce runs a fabric with faults that begin within 20 ms, and returns what was
// found. An incident of none of them is an error.
func injectAtOnce(t *testing.T, cfg Config, kinds []FaultKind) Score {
	t.Helper()
	l, d := watched(t, cfg)
	pass(t, l, 60*time.Millisecond)
	for _, k := range kinds {
		injectApart(t, d, k)
		pass(t, l, 20*time.Millisecond/time.Duration(len(kinds)))
	}
	pass(t, l, faultDuration+reportDelay)
	s := d.Score()
	if len(s.FalseAlarms) > 0 || s.Missed > 0 {
		for _, f := range s.Faults {
			t.Logf("%s, found %v as incident %d: %s", f.Kind, f.Found, f.Incident, f.What)
		}
	}
	for _, in := range s.FalseAlarms {
		t.Errorf("incident %d is a false alarm: %v at %s: %s", in.ID, in.Cause, l.fabric.PortRef(in.Place), in.Text)
	}
	return s
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
