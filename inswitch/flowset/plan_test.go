package flowset

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weft-telemetry/weft/sketch"
)

// TestPlanHolds fills flowsets of planned sizes with the planned number of
// flows, filter and all, and counts how many decode.
func TestPlanHolds(t *testing.T) {
	for _, tc := range []struct {
		flows, trials int
		target        float64
	}{
		{50, 1000, 0.99},
		{300, 500, 0.9},
		{1000, 300, 0.99},
		{3000, 100, 0.9},
		{3000, 100, 0.99},
	} {
		s, err := Plan(tc.flows, tc.target, Single)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(9, uint64(tc.flows)))
		var p sketch.Peeler[sketch.Key4]
		good := 0
		for trial := range tc.trials {
			set, err := sketch.NewSet[sketch.Key4](s.Geometry, uint64(trial))
			if err != nil {
				t.Fatal(err)
			}
			for range tc.flows {
				k := sketch.Key4{random.Uint64(), random.Uint64() &^ (1<<24 - 1)}
				if h, isNew := set.AddPacket(&k, 100); isNew {
					set.InsertFlow(&k, h, 0, 0)
				}
			}
			if p.Peel(set.Family(), set.Filter(), set.AppendCells(nil), func(*sketch.Cell[sketch.Key4]) {}) == tc.flows {
				good++
			}
		}
		n := float64(tc.trials)
		if least := n*tc.target - 4*math.Sqrt(n*tc.target*(1-tc.target)); float64(good) < least {
			t.Errorf("%d flows: %d of %d flowsets decode; want %v of them, at least %.0f", tc.flows, good, tc.trials, tc.target, least)
		}
	}
}

// TestClaimMemory holds the sizes of Figure 3: memory for 100K and 1M flows of
// which 99 % decode, by one flowset alone and with neighbours.
func TestClaimMemory(t *testing.T) {
	for _, tc := range []struct {
		flows     int
		mode      Mode
		published float64 // MB
	}{
		{100_000, Single, 2.88},
		{100_000, Net, 2.36},
		{1_000_000, Single, 29.7},
		{1_000_000, Net, 24.8},
	} {
		s, err := Plan(tc.flows, 0.99, tc.mode)
		if err != nil {
			t.Fatal(err)
		}
		if mb := float64(s.Memory(PaperLayout)) / 1e6; mb > tc.published || mb < 0.8*tc.published {
			t.Errorf("%d flows, %v: %.2f MB; published are %v MB", tc.flows, tc.mode, mb, tc.published)
		}
	}
}

// TestPlanGrowsWithFlows asks along sizes: more flows never need fewer cells,
// nor fewer bits but for the 15 % that fewer hashes may cost.
func TestPlanGrowsWithFlows(t *testing.T) {
	for _, mode := range []Mode{Single, Net} {
		for _, target := range []float64{0.5, 0.99} {
			before := Sizing{}
			for _, flows := range []int{1, 10, 100, 300, 7000, 100_000, maxFlows} {
				s, err := Plan(flows, target, mode)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Geometry.Check(); err != nil {
					t.Fatalf("Plan(%d, %v, %v): %v", flows, target, mode, err)
				}
				if s.Cells() < before.Cells() || float64(s.FilterBits) < float64(before.FilterBits)/1.15 || 1-s.NoFalsePositive > (1-target)/10 {
					t.Errorf("Plan(%d, %v, %v) = %+v; for fewer flows it was %+v", flows, target, mode, s, before)
				}
				before = s
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, tc := range []struct {
		flows  int
		target float64
	}{{0, 0.99}, {-1, 0.99}, {maxFlows + 1, 0.99}, {100, 0}, {100, 1}, {100, 0.9999}, {100, math.NaN()}} {
		if s, err := Plan(tc.flows, tc.target, Single); err == nil {
			t.Errorf("Plan(%d, %v) = %+v, nil; want an error", tc.flows, tc.target, s)
		}
	}
}

// TestSetGroups: a filter of fewer words a packet is larger and no more often wrong.
func TestSetGroups(t *testing.T) {
	for _, flows := range []int{200, 1000, 100_000} {
		planned, err := Plan(flows, 0.99, Single)
		if err != nil {
			t.Fatal(err)
		}
		s := planned
		s.SetGroups(2)
		if s.FilterHashes != 2*sketch.GroupBits || s.FilterBits <= planned.FilterBits || s.FilterBits > 3*planned.FilterBits {
			t.Errorf("%d flows: %d hashes and %d bits; want 8, and up to three times the %d planned", flows, s.FilterHashes, s.FilterBits, planned.FilterBits)
		}
		if s.NoFalsePositive < 0.999 || s.Cells() != planned.Cells() {
			t.Errorf("%d flows: no false positive in %v of slots, %d cells; want 0.999 and %d", flows, s.NoFalsePositive, s.Cells(), planned.Cells())
		}
		s.SetGroups(int(planned.FilterHashes) / sketch.GroupBits)
		if s.FilterBits != planned.FilterBits {
			t.Errorf("%d flows: %d bits with the planned groups; want %d", flows, s.FilterBits, planned.FilterBits)
		}
	}
}
