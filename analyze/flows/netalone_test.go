package flows

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/sketch"
)

// TestNetAloneEqualsTogether compares NetDecode with decoding all tables together,
// in fabrics in which some tables empty by themselves and some do not, whole and with
// lost chunks, and with decoding in place. Filters are large enough that they take no flow of a neighbour for
// their own.
func TestNetAloneEqualsTogether(t *testing.T) {
	race.LeaveToPlainRun(t)
	fabric := fatTree(t, 4)
	var mixed, all int
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.Uint32Range(20, 90).Draw(rt, "cells")
		cfg := trafficConfig{
			geometry: sketch.Geometry{FilterHashes: 24, FilterBits: 1 << 15, Tables: rapid.Uint8Range(2, 4).Draw(rt, "tables"), TableCells: cells},
			layout:   drawLayout(rt),
			differ:   rapid.SampledFrom([]float64{0, 0.01, 0.05, 0.3}).Draw(rt, "differ"),
			astray:   rapid.SampledFrom([]float64{0, 0, 0.02}).Draw(rt, "astray"),
			seed:     rapid.Uint64().Draw(rt, "seed"),
		}
		cfg.flows = int(float64(cells) * 4 * rapid.Float64Range(0.3, 3).Draw(rt, "load"))
		tr := cross(t, fabric, cfg)
		sets := tr.sets(t, rapid.SampledFrom([]float64{0, 0, 0.02}).Draw(rt, "lost"), rand.New(rand.NewPCG(cfg.seed, 9)))
		guides := []Guide{RouteGuide(tr.routes, sets), NeighbourGuide(tr.fabric, sets)}
		guides = guides[rapid.IntRange(0, 2).Draw(rt, "first guide"):]
		o := Options{Workers: 2, FlowsOnly: rapid.Bool().Draw(rt, "flows only")}
		got := NetDecode(sets, o, guides...)
		o.together = true
		want := NetDecode(sets, o, guides...)
		var d Decoder
		alone := 0
		for i := range got {
			equalResults(rt, &got[i], &want[i])
			if _, ok := d.decodesAlone(sets[i]); ok && sets[i].MissingFilter == 0 {
				alone++
			}
		}
		o.together, o.InPlace = false, true
		inPlace := NetDecode(sets, o, guides...)
		for i := range inPlace {
			equalResults(rt, &inPlace[i], &want[i])
		}
		switch {
		case alone == len(sets):
			all++
		case alone > 0:
			mixed++
		}
	})
	if mixed == 0 || all == 0 {
		t.Errorf("all tables emptied in %d fabrics, some in %d; the test needs both", all, mixed)
	}
	t.Logf("all tables emptied in %d fabrics, some in %d", all, mixed)
}
