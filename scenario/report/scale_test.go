package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func TestScalesStayInside(t *testing.T) {
	anything := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1)}))
	rapid.Check(t, func(t *rapid.T) {
		lo := float64(rapid.Int64().Draw(t, "lo"))
		hi := lo + rapid.Float64Range(0, 1e18).Draw(t, "width")
		v := anything.Draw(t, "v")
		for name, s := range map[string]scale{"linear": linear(lo, hi, 400, 20), "log": logarithmic(lo, hi, 20, 400)} {
			if px := s.at(v); !(px >= 20-1e-6 && px <= 400+1e-6) {
				t.Fatalf("%s scale %v to %v puts %v at %v; want 20 to 400", name, lo, hi, v, px)
			}
			ticks := s.ticks(7)
			if len(ticks) > 9 || !slices.IsSorted(ticks) {
				t.Fatalf("%s scale %v to %v has ticks %v; want at most 8, ascending", name, s.lo, s.hi, ticks)
			}
		}
	})
}

func TestInvertUndoesAt(t *testing.T) {
	for _, s := range []scale{linear(2e9, 2.01e9, 60, 900), logarithmic(1, 3e7, 60, 900)} {
		for px := 60.0; px <= 900; px += 37 {
			if back := s.at(s.invert(px)); math.Abs(back-px) > 1e-3 {
				t.Errorf("at(invert(%v)) = %v on %+v", px, back, s)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		s    scale
		n    int
		unit unit
		want []string
	}{
		"ms":               {linear(0, 1e7, 0, 1), 5, timeUnit(1e7), []string{"0", "2", "4", "6", "8", "10"}},
		"from two seconds": {linear(2e9, 2.01e9, 0, 1), 5, timeUnit(1e7), []string{"2000", "2002", "2004", "2006", "2008", "2010"}},
		"fractions":        {linear(0, 1, 0, 1), 5, plain, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
		"decades":          {logarithmic(1e3, 3e7, 0, 1), 7, plain, []string{"1000", "10000", "100000", "1000000", "10000000"}},
		"one decade":       {logarithmic(1, 12, 0, 1), 7, plain, []string{"1", "1.5", "2", "3", "5", "7", "10"}},
		"narrow":           {logarithmic(1, 2, 0, 1), 7, plain, []string{"1", "1.2", "1.5", "2"}},
		"many decades":     {logarithmic(1, 1e12, 0, 1), 7, plain, []string{"1", "100", "10000", "1000000", "100000000", "10000000000", "1000000000000"}},
	} {
		var got []string
		for _, v := range tc.s.ticks(tc.n) {
			got = append(got, tc.unit.label(v))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: ticks = %q; want %q", name, got, tc.want)
		}
	}
}

func TestShow(t *testing.T) {
	for got, want := range map[string]string{
		showBytes(0): "0 B", showBytes(1500): "1.50 KB", showBytes(64000): "64 KB", showBytes(1_711_250): "1.71 MB",
		showBytes(999_600): "1.00 MB", showRate(81_680_000_000): "81.7 Gb/s", showRate(100 * model.Gbps): "100 Gb/s",
		showDuration(12_345): "12.3 µs", showDuration(-1500): "-1.50 µs", showDuration(90 * time.Second): "90 s",
		showDuration(math.MinInt64): "-9223372037 s",
		showAmount(48_200_311):      "48.2 M", showCount(1): "1", showCount(999): "999", showCount(1234567): "1,234,567",
		showSlowdown(2.5): "2.50", showSlowdown(111111.2): "111,111",
		showPercent(0.9987): "99.9 %", plural(1, "flow"): "1 flow", plural(0, "flow"): "0 flows",
		clip("core12:16 → agg3", 10): "core12:16…", clip("h1", 10): "h1",
	} {
		if got != want {
			t.Errorf("printed %q; want %q", got, want)
		}
	}
}
