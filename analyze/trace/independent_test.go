package trace

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestIndependentSamplesEqualReference: however packets are shared among judges and in whatever
// order they come, the same ones count: of every slot the one with the smallest
// hash, and of slots the first ones.
func TestIndependentSamplesEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 8
		parts := make([]independentSamples, rapid.IntRange(1, 3).Draw(t, "judges"))
		best := map[int64]sample{}
		for range rapid.IntRange(0, 60).Draw(t, "packets") {
			slot, counts := sampleSlot(model.Time(rapid.Int64Range(-500, 500).Draw(t, "time")), 10)
			x := sample{slot: slot, hash: rapid.Uint64Range(0, 1<<40).Draw(t, "hash"), bad: rapid.Bool().Draw(t, "bad")}
			if !counts || best[slot].hash == x.hash {
				continue
			}
			parts[rapid.IntRange(0, len(parts)-1).Draw(t, "judge")].addSample(x, most)
			if have, ok := best[slot]; !ok || x.hash < have.hash {
				best[slot] = x
			}
		}
		var want independentSamples
		for _, x := range best {
			want = append(want, x)
		}
		slices.SortFunc(want, func(a, b sample) int { return cmp.Compare(a.slot, b.slot) })
		want = want[:min(len(want), most)]
		var got independentSamples
		for _, p := range parts {
			got.merge(p, most)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v; want %v", got, want)
		}
		for i := 1; i < len(got); i++ {
			if got[i].slot-got[i-1].slot < 2 {
				t.Fatalf("slots %d and %d are not apart", got[i-1].slot, got[i].slot)
			}
		}
	})
}
