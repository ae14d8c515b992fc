package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// check runs a check of a scenario's text.
func check(t testing.TB, text string, opts Options) *Report {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte("duration: 1ms\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), s, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPlantedFaultsAreFoundAndProven plants each fault in a fabric without others:
// the check finds it and nothing else, the simulation of its proof shows the harm.
func TestPlantedFaultsAreFoundAndProven(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		rule     string
		severity Severity
		place    string // among the places of a finding
	}{
		"ring":              {"topology: {generate: {kind: ring, switches: 4, hosts: 2}}", "buffer-cycle", Fault, "s0:Ethernet8"},
		"short headroom":    {"topology: {generate: {kind: leaf-spine, delay: 5us}}\nfabric: {headroom: 20KB}", "headroom", Fault, "leaf0:Ethernet16"},
		"HPCC's headroom":   {"topology: {generate: {kind: leaf-spine, delay: 10ns}}\nfabric: {accounting: hpcc}", "headroom", Fault, "leaf0:Ethernet0"},
		"jumbo frames":      {"topology: {generate: {kind: leaf-spine}}\nfabric: {headroom: 32KB, mtu: 9000}", "headroom", Fault, "leaf0:Ethernet0"},
		"ECN above PFC":     {"topology: {generate: {kind: leaf-spine}}\nfabric: {ecn: [{kmin: 4MB, kmax: 8MB, pmax: 20%}]}", "ecn-above-pfc", Warning, "leaf0:Ethernet0"},
		"static Xoff":       {"topology: {generate: {kind: leaf-spine}}\nfabric: {xoff: 100KB, xon: 90KB}", "ecn-above-pfc", Warning, "leaf0:Ethernet0"},
		"one spine":         {"topology: {generate: {kind: leaf-spine, spines: 1}}", "no-fallback", Warning, "spine0"},
		"dumbbell":          {"topology: {generate: {kind: dumbbell}}", "no-fallback", Warning, "s0:Ethernet16"},
		"hash polarization": {"topology: {generate: {kind: fat-tree, k: 4}}\nfaults: [{kind: hash-polarization}]", "polarization", Warning, "leaf0:Ethernet12"},
		"collisions": {
			"topology: {generate: {kind: fat-tree, k: 4}}\ntraffic: [{kind: permutation, name: training}]",
			"collision", Warning, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := check(t, tc.text, Options{Prove: true})
			if len(r.Findings) == 0 {
				t.Fatal("no finding")
			}
			var places []string
			for _, f := range r.Findings {
				if f.Rule != tc.rule || f.Severity != tc.severity || f.Mend == "" {
					t.Errorf("found %s: %s: %s (mend %q); want only %s", f.Severity, f.Rule, f.Text, f.Mend, tc.rule)
				}
				places = append(places, f.Places...)
				if f.Proof == nil || !f.Proof.Holds {
					t.Errorf("%s: proof %+v; want one that holds", f.Text, f.Proof)
				}
			}
			if tc.place != "" && !slices.Contains(places, tc.place) {
				t.Errorf("places %v; want %s among them", places, tc.place)
			}
		})
	}
}

// TestLoopsAfterFailuresDeadlock: static routes that a failure turns into a
// forwarding loop fill the loop's buffers.
func TestLoopsAfterFailuresDeadlock(t *testing.T) {
	r := check(t, `topology:
  generate: {kind: ring, switches: 3, hosts: 1}
  routes:
    - {at: s0, to: h2, via: [s1]}
    - {at: s1, to: h0, via: [s2]}
    - {at: s2, to: h1, via: [s0]}
`, Options{Prove: true})
	severities := make(map[Severity]int)
	for _, f := range r.Findings {
		if f.Rule == "buffer-cycle" {
			severities[f.Severity]++
			if f.Proof == nil || !f.Proof.Holds {
				t.Errorf("%s: proof %+v; want one that holds", f.Text, f.Proof)
			}
		}
	}
	if severities[Fault] != 1 || severities[Warning] != 3 {
		t.Errorf("cycles %v; want one as it is, and one without each of three links", severities)
	}
}

// TestMendedProofsShowNothing runs proofs with what the finding says mended.
func TestMendedProofsShowNothing(t *testing.T) {
	race.LeaveToPlainRun(t)
	for name, tc := range map[string]struct{ text, mend string }{
		"headroom": {"topology: {generate: {kind: leaf-spine, delay: 5us}}\nfabric: {headroom: 20KB}", "fabric.headroom=auto"},
		"ecn":      {"topology: {generate: {kind: leaf-spine}}\nfabric: {ecn: [{kmin: 4MB, kmax: 8MB, pmax: 20%}]}", "fabric.ecn.0={kmin: 200KB, kmax: 800KB, pmax: 20%}"},
		"ecmp":     {"topology: {generate: {kind: fat-tree, k: 4}}\nfaults: [{kind: hash-polarization}]", "faults=[]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := check(t, tc.text, Options{Prove: true}).Findings[0].Proof
			mended, err := scenario.Override([]byte(p.text), tc.mend)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse("mended.yaml", mended)
			if err != nil {
				t.Fatal(err)
			}
			r, err := scenario.Run(context.Background(), s, scenario.Options{}, nil)
			if err != nil || r.Verdict != scenario.Fail {
				t.Errorf("the mended proof: %v, %v, %v; want it to show no harm", r.Verdict, r.Expected, err)
			}
		})
	}
}

// TestCyclesAfterFailuresDeadlock proves each cycle that double failures of a
// fat-tree close.
func TestCyclesAfterFailuresDeadlock(t *testing.T) {
	race.LeaveToPlainRun(t)
	r := check(t, "topology: {generate: {kind: fat-tree, k: 4}}", Options{Doubles: 100, Seed: 3, Prove: true})
	cycles := 0
	for _, f := range r.Findings {
		if f.Severity != Note {
			t.Errorf("%s: %s; want notes alone, as one failure is harmless", f.Severity, f.Text)
		}
		if f.Proof == nil || !f.Proof.Holds {
			t.Errorf("%s: proof %+v; want one that holds", f.Text, f.Proof)
		}
		if f.Rule == "buffer-cycle" {
			cycles++
		}
	}
	if cycles == 0 || r.Doubles != 100 {
		t.Errorf("%d cycles after %d double failures; want some", cycles, r.Doubles)
	}
}

// TestCleanFabricsHaveNoFindings checks generated fabrics with spare paths.
func TestCleanFabricsHaveNoFindings(t *testing.T) {
	for _, generate := range []string{
		"{kind: fat-tree, k: 4}", "{kind: fat-tree, k: 8}", "{kind: leaf-spine}", "{kind: leaf-spine, leaves: 9, spines: 5, hosts: 3}",
		"{kind: clos}", "{kind: leaf-spine, rate: 400Gb/s, host-rate: 100Gb/s, delay: 3us}",
	} {
		if r := check(t, "topology: {generate: "+generate+"}", Options{}); len(r.Findings) != 0 {
			t.Errorf("%s: %+v; want no finding", generate, r.Findings)
		}
	}
}

func TestBufferTooSmall(t *testing.T) {
	r := check(t, "topology: {generate: {kind: leaf-spine, delay: 100us}}\nfabric: {buffer: 1MB}", Options{Prove: true})
	if len(r.Findings) != 1 || r.Findings[0].Rule != "buffer" || !strings.Contains(r.Findings[0].Text, "want more than") {
		t.Errorf("findings %+v; want the buffer", r.Findings)
	}
}

func TestWithoutPFCNothingDeadlocks(t *testing.T) {
	r := check(t, "topology: {generate: {kind: ring, switches: 4}}\nfabric: {pfc: off}", Options{})
	if len(r.Findings) != 0 {
		t.Errorf("findings %+v; want none without PFC", r.Findings)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, k := range []int{8, 16} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			f, err := topo.FatTree(k, topo.DefaultLinks())
			if err != nil {
				b.Fatal(err)
			}
			s := scenario.FromTopology("bench", &file.Document{Fabric: f})
			for b.Loop() {
				if r, err := Run(context.Background(), s, Options{}); err != nil || len(r.Findings) > 0 {
					b.Fatalf("%+v, %v", r, err)
				}
			}
		})
	}
}
