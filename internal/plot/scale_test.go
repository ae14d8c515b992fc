package plot

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// anything is any number, and often one at the edge of what a float holds.
var anything = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
	0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e100, -1e100, 1e-100,
}))

func TestScalesStayInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi := anything.Draw(t, "lo"), anything.Draw(t, "hi")
		if rapid.Bool().Draw(t, "moderate") {
			lo = float64(rapid.Int64().Draw(t, "lo"))
			hi = lo + rapid.Float64Range(0, 1e18).Draw(t, "width")
		}
		v := anything.Draw(t, "v")
		for name, s := range map[string]Scale{"linear": Linear(lo, hi, 400, 20), "log": Logarithmic(lo, hi, 20, 400)} {
			if px := s.At(v); !(px >= 20-1e-6 && px <= 400+1e-6) {
				t.Fatalf("%s scale %v to %v puts %v at %v; want 20 to 400", name, lo, hi, v, px)
			}
			ticks := s.Ticks(7)
			if len(ticks) > 9 || !slices.IsSorted(ticks) {
				t.Fatalf("%s scale %v to %v has ticks %v; want at most 8, ascending", name, s.lo, s.hi, ticks)
			}
		}
	})
}

func TestInvertUndoesAt(t *testing.T) {
	for _, s := range []Scale{Linear(2e9, 2.01e9, 60, 900), Logarithmic(1, 3e7, 60, 900)} {
		for px := 60.0; px <= 900; px += 37 {
			if back := s.At(s.Invert(px)); math.Abs(back-px) > 1e-3 {
				t.Errorf("at(invert(%v)) = %v on %+v", px, back, s)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		s    Scale
		n    int
		unit Unit
		want []string
	}{
		"ms":               {Linear(0, 1e7, 0, 1), 5, TimeUnit(1e7), []string{"0", "2", "4", "6", "8", "10"}},
		"from two seconds": {Linear(2e9, 2.01e9, 0, 1), 5, TimeUnit(1e7), []string{"2000", "2002", "2004", "2006", "2008", "2010"}},
		"fractions":        {Linear(0, 1, 0, 1), 5, Plain, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
		"decades":          {Logarithmic(1e3, 3e7, 0, 1), 7, Plain, []string{"1000", "10000", "100000", "1000000", "10000000"}},
		"one decade":       {Logarithmic(1, 12, 0, 1), 7, Plain, []string{"1", "1.5", "2", "3", "5", "7", "10"}},
		"narrow":           {Logarithmic(1, 2, 0, 1), 7, Plain, []string{"1", "1.2", "1.5", "2"}},
		"many decades":     {Logarithmic(1, 1e12, 0, 1), 7, Plain, []string{"1", "100", "10000", "1000000", "100000000", "10000000000", "1000000000000"}},
	} {
		var got []string
		for _, v := range tc.s.Ticks(tc.n) {
			got = append(got, tc.unit.Label(v))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: ticks = %q; want %q", name, got, tc.want)
		}
	}
}

func TestClip(t *testing.T) {
	for got, want := range map[string]string{
		Clip("core12:16 → agg3", 10): "core12:16…", Clip("h1", 10): "h1",
	} {
		if got != want {
			t.Errorf("clipped to %q; want %q", got, want)
		}
	}
}
