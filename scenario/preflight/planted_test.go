package preflight

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/scenario"
	"pgregory.net/rapid"
)

// TestEveryPlantedFaultIsFound plants faults in random leaf-spine fabrics. The
// check finds each, and nothing else; without one it finds nothing.
func TestEveryPlantedFaultIsFound(t *testing.T) {
	race.LeaveToPlainRun(t)
	rapid.Check(t, func(t *rapid.T) {
		leaves, spines := rapid.IntRange(3, 6).Draw(t, "leaves"), rapid.IntRange(2, 4).Draw(t, "spines")
		hosts := rapid.IntRange(1, 3).Draw(t, "hosts")
		rate := rapid.SampledFrom([]int{25, 100, 400}).Draw(t, "Gb/s")
		delay := rapid.IntRange(100, 5000).Draw(t, "ns")
		planted := rapid.SampledFrom([]string{"", "buffer-cycle", "headroom", "ecn-above-pfc", "no-fallback"}).Draw(t, "planted")
		routes, fabric := "", ""
		switch planted {
		case "buffer-cycle":
			// Packets to a host of leaf0 turn back at leaf1, those to one of leaf1 at
			// leaf0, over two spines. They come from a third leaf.
			a, b := rapid.IntRange(0, hosts-1).Draw(t, "first host"), hosts+rapid.IntRange(0, hosts-1).Draw(t, "second host")
			routes = fmt.Sprintf(`
  routes:
    - {at: spine0, to: h%[1]d, via: [leaf1]}
    - {at: leaf1, to: h%[1]d, via: [spine1]}
    - {at: spine1, to: h%[2]d, via: [leaf0]}
    - {at: leaf0, to: h%[2]d, via: [spine0]}`, a, b)
		case "headroom":
			need := 2*delay*rate/8 + 3*1024
			fabric = fmt.Sprintf("fabric: {headroom: %d}\n", need*rapid.IntRange(10, 90).Draw(t, "% of need")/100)
		case "ecn-above-pfc":
			xoff := rapid.IntRange(50, 400).Draw(t, "xoff KB")
			kmin := xoff + rapid.IntRange(10, 500).Draw(t, "above")
			fabric = fmt.Sprintf("fabric: {xoff: %dKB, xon: %dKB, ecn: [{kmin: %dKB, kmax: %dKB, pmax: 20%%}]}\n", xoff, xoff-10, kmin, 2*kmin)
		case "no-fallback":
			spines = 1
		}
		text := fmt.Sprintf("duration: 1ms\ntopology:\n  generate: {kind: leaf-spine, leaves: %d, spines: %d, hosts: %d, rate: %dGb/s, delay: %dns}%s\n%s",
			leaves, spines, hosts, rate, delay, routes, fabric)
		s, err := scenario.Parse("planted.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), s, Options{Prove: planted == "buffer-cycle"})
		if err != nil {
			t.Fatal(err)
		}
		// Static routes have consequences of their own: they do not react to failures.
		also := map[string][]string{"buffer-cycle": {"no-fallback", "detour", "loop"}}[planted]
		found := false
		for _, f := range r.Findings {
			found = found || f.Rule == planted
			if f.Rule != planted && !slices.Contains(also, f.Rule) {
				t.Errorf("found %s: %s in\n%s", f.Rule, f.Text, text)
			}
			if f.Rule == "buffer-cycle" && (f.Proof == nil || !f.Proof.Holds) {
				t.Errorf("%s: proof %+v; want one that holds", f.Text, f.Proof)
			}
		}
		if found != (planted != "") {
			t.Errorf("%q planted, found %v: %+v\n%s", planted, found, r.Findings, text)
		}
	})
}
