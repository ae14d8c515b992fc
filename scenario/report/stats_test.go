package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for name, tc := range map[string]struct {
		values   []float64
		permille int
		want     float64
	}{
		"none":                    {nil, 500, 0},
		"one":                     {[]float64{3}, 990, 3},
		"median of an even run":   {[]float64{1, 2, 3, 4}, 500, 2},
		"p99 of a hundred":        {hundred, 990, 99},
		"p99.9 of a hundred":      {hundred, 999, 100},
		"p7 of a hundred":         {hundred, 70, 7}, // 8 if counted in floats
		"just above two of three": {[]float64{1, 2, 3}, 667, 3},
		"least":                   {hundred, 0, 1},
		"most":                    {hundred, 1000, 100},
	} {
		if got := percentile(tc.values, tc.permille); got != tc.want {
			t.Errorf("%s: percentile(%d values, %d ‰) = %v; want %v", name, len(tc.values), tc.permille, got, tc.want)
		}
	}
}

// TestPercentileIsItsDefinition tries every value in turn.
func TestPercentileIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 50), 1, 300).Draw(t, "values")
		permille := rapid.IntRange(1, 1000).Draw(t, "permille")
		slices.Sort(values)
		want := math.Inf(1)
		for _, v := range values {
			notAbove := 0
			for _, w := range values {
				if w <= v {
					notAbove++
				}
			}
			if notAbove*1000 >= permille*len(values) {
				want = min(want, v)
			}
		}
		if got := percentile(values, permille); got != want {
			t.Fatalf("percentile(%v, %d ‰) = %v; want %v", values, permille, got, want)
		}
	})
}

func TestStatsIgnoreOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 1, 100).Draw(t, "values")
		shuffled := rapid.Permutation(slices.Clone(values)).Draw(t, "shuffled")
		a, b := statsOf(values), statsOf(shuffled)
		if a != b {
			t.Fatalf("statsOf depends on order: %+v and %+v", a, b)
		}
		if !(a.P50 <= a.P95 && a.P95 <= a.P99 && a.P99 <= a.Max) {
			t.Fatalf("statsOf(%v) = %+v; want percentiles that ascend", values, a)
		}
	})
}

func TestSlowdown(t *testing.T) {
	for name, tc := range map[string]struct {
		flow        FlowResult
		want, soFar float64 // at 1000 ns
	}{
		"three times":       {FlowResult{Start: 100, Finish: 400, Finished: true, Ideal: 100}, 3, 3},
		"faster than ideal": {FlowResult{Start: 100, Finish: 199, Finished: true, Ideal: 100}, 1, 1},
		"unfinished":        {FlowResult{Start: 500, Finish: 7, Ideal: 100}, 0, 5},
		"not yet started":   {FlowResult{Start: 2000, Ideal: 100}, 0, 1},
		"no ideal":          {FlowResult{Finish: 400, Finished: true}, 0, 0},
	} {
		if got, soFar := tc.flow.Slowdown(), tc.flow.slowdownSoFar(1000); got != tc.want || soFar != tc.soFar {
			t.Errorf("%s: Slowdown() = %v, so far %v; want %v, %v", name, got, soFar, tc.want, tc.soFar)
		}
	}
}

func TestSummarize(t *testing.T) {
	s := smallRun().Summarize()
	// From the start of the third flow at 0 to the end of the run, because it
	// has not finished: (100000 + 1000 + 900000 + 20000) × 8 bits in 100 µs.
	if s.Flows.Goodput != 81_680_000_000 {
		t.Errorf("goodput = %v; want 81.68Gb/s", s.Flows.Goodput)
	}
	// 4 to 10 µs at h0, and from 12 µs for 5 µs at s4.
	if s.Pauses.Total != 11*time.Microsecond || s.Pauses.Longest != 6*time.Microsecond || s.Pauses.Queues != 2 {
		t.Errorf("pauses = %+v; want 2 queues, 11 µs in total, 6 µs at the longest", s.Pauses)
	}
	if u := s.Busiest[0].Utilisation; math.Abs(u-0.75) > 1e-9 {
		t.Errorf("utilisation of the busiest port = %v; want 0.75", u)
	}
	if len(s.Busiest) != 1 || len(s.Deepest) != 1 {
		t.Errorf("summary lists %d busy and %d deep ports; want 1 and 1, the other is idle", len(s.Busiest), len(s.Deepest))
	}
	if all := (Stats{Flows: 3, Mean: 7.5 / 3, P50: 3, P95: 3.5, P99: 3.5, Max: 3.5}); s.Slowdown.All != all {
		t.Errorf("slowdown = %+v; want %+v", s.Slowdown.All, all)
	}
}
