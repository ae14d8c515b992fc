package claim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

func TestTrialsDoNotDependOnCores(t *testing.T) {
	count := func(cores int) Rate {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		r, err := Trials(t.Context(), 5000, 7, func(rng *rand.Rand) (bool, error) { return rng.Float64() < 0.3, nil })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one, four := count(1), count(4)
	if one != four {
		t.Errorf("one core counts %v, four count %v", one, four)
	}
	if low, high := one.Interval(); low > 0.3 || high < 0.3 {
		t.Errorf("%v has interval %v to %v; want 0.3 in it", one, low, high)
	}
}

func TestTrialsEndWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	ran := 0
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, err := Trials(t.Context(), 1000, 1, func(*rand.Rand) (bool, error) {
		if ran++; ran == 3 {
			return false, broken
		}
		return true, nil
	})
	if !errors.Is(err, broken) || ran != 3 {
		t.Errorf("after %d trials: %v; want 3 and %v", ran, err, broken)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Trials(ctx, 10, 1, func(*rand.Rand) (bool, error) { return true, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled trials end with %v; want %v", err, context.Canceled)
	}
}

// Uses of neighbouring seeds and numbers must not resemble each other.
func TestRandsAreIndependent(t *testing.T) {
	for name, draw := range map[string]func(i uint64) *rand.Rand{
		"numbers": func(i uint64) *rand.Rand { return Rand(1, i) },
		"seeds":   func(i uint64) *rand.Rand { return Rand(i, 1) },
	} {
		const n = 20000
		var counts [16]float64
		for i := range uint64(n) {
			counts[draw(i).IntN(16)]++
		}
		chi := 0.0
		for _, c := range counts {
			chi += math.Pow(c-n/16, 2) / (n / 16)
		}
		if chi > 45 { // 15 degrees of freedom: one in 10,000
			t.Errorf("%s: χ² of first draws is %.1f; want below 45", name, chi)
		}
	}
}

func TestRateInterval(t *testing.T) {
	for r, want := range map[Rate][2]float64{
		{0, 0}:       {0, 1},
		{0, 10}:      {0, 0.278},
		{990, 1000}:  {0.982, 0.995},
		{1000, 1000}: {0.996, 1},
	} {
		if low, high := r.Interval(); math.Abs(low-want[0]) > 1e-3 || math.Abs(high-want[1]) > 1e-3 {
			t.Errorf("interval of %v = %.4f to %.4f; want %v", r, low, high, want)
		}
	}
}

// The chance of missing a share is that of drawn trials.
func TestMissChanceAgreesWithDraws(t *testing.T) {
	for _, tc := range []struct {
		n         int
		p, wanted float64
	}{{20, 0.995, 0.99}, {200, 0.995, 0.99}, {100, 0.9, 0.95}, {50, 0.999, 0.99}, {10, 0.5, 0.7}} {
		const draws = 20_000
		rng, missed := Rand(4, uint64(tc.n)), 0
		for range draws {
			hits := 0
			for range tc.n {
				if rng.Float64() < tc.p {
					hits++
				}
			}
			if (Rate{Hits: hits, Of: tc.n}).Share() < tc.wanted {
				missed++
			}
		}
		got, want := MissChance(tc.n, tc.p, tc.wanted), float64(missed)/draws
		if math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/draws)+1e-4 {
			t.Errorf("MissChance(%d, %v, %v) = %v; want %v, as drawn", tc.n, tc.p, tc.wanted, got, want)
		}
	}
}
