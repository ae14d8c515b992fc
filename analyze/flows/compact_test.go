package flows

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/sketch"
)

// TestCompactEqualsRecords compares compact records with others: of tables that empty by
// themselves beside such that need their flows, and of damaged ones. Memory is that of the
// slots before.
func TestCompactEqualsRecords(t *testing.T) {
	fabric := fatTree(t, 4)
	var memory Memory
	compact, stuck := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.Uint32Range(20, 60).Draw(rt, "cells")
		cfg := trafficConfig{
			geometry: sketch.Geometry{FilterHashes: 24, FilterBits: 1 << 14, Tables: 3, TableCells: cells}, layout: productLayout,
			differ: 0.01, seed: rapid.Uint64().Draw(rt, "seed"),
		}
		cfg.flows = int(float64(cells) * 4 * rapid.Float64Range(0.3, 2).Draw(rt, "load"))
		tr := cross(t, fabric, cfg)
		rnd := rand.New(rand.NewPCG(cfg.seed, 9))
		sets := tr.sets(t, 0, rnd)
		e := newEncoder(t, 3, cfg.seed, cfg.geometry, productLayout)
		for range rapid.IntRange(0, int(2*cells)).Draw(rt, "flows") {
			e.add(someKey(rnd, false), 1+rnd.IntN(4), 64+rnd.Uint32N(1400), 1, 2)
		}
		sets = append(sets, assembled(t, drawDamage(rt).inflict(rt, t, e.done(), rnd)...))
		guide := NeighbourGuide(tr.fabric, sets)
		got := NetDecode(sets, Options{Workers: 2, Compact: true, Memory: &memory}, guide)
		want := NetDecode(sets, Options{Workers: 2}, guide)
		for i := range got {
			if got[i].Compact == nil {
				stuck++
			} else {
				compact++
			}
			list := make([]Record, got[i].Flows())
			for k := range list {
				got[i].Record(k, &list[k])
			}
			got[i].Records = list
			equalResults(rt, &got[i], &want[i])
		}
	})
	if compact == 0 || stuck == 0 {
		t.Errorf("%d tables have compact records, %d do not; the test needs both", compact, stuck)
	}
	t.Logf("%d tables have compact records, %d do not", compact, stuck)
}
