package report

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
)

// TestExtremesKeepMinAndMax compares each column with that of a slow search of
// all samples.
func TestExtremesKeepMinAndMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := rapid.IntRange(1, 20).Draw(t, "cols")
		from := rapid.Int64Range(0, 1000).Draw(t, "from")
		to := from + rapid.Int64Range(0, 1000).Draw(t, "length")
		depths := rapid.SliceOfN(rapid.Int64Range(0, 50), 0, 200).Draw(t, "depths")
		step := rapid.Int64Range(1, 10).Draw(t, "step")
		var in []Sample
		for i, d := range depths {
			in = append(in, Sample{At: model.Time(int64(i) * step), Queue: model.Bytes(d)})
		}
		out := keepExtremes(in, model.Time(from), model.Time(to), cols)
		if len(out) > 2*cols {
			t.Fatalf("extremes of %d samples in %d columns keeps %d; want at most %d", len(in), cols, len(out), 2*cols)
		}
		rest := in
		for _, s := range out { // a subsequence of in
			i := slices.Index(rest, s)
			if i < 0 {
				t.Fatalf("extremes made up or reordered %+v", s)
			}
			rest = rest[i+1:]
		}
		for c := range cols {
			wantLow, wantHigh := columnRange(in, model.Time(from), model.Time(to), c, cols)
			low, high := columnRange(out, model.Time(from), model.Time(to), c, cols)
			if low != wantLow || high != wantHigh {
				t.Fatalf("column %d of %d holds %d to %d; want %d to %d", c, cols, low, high, wantLow, wantHigh)
			}
		}
	})
}

func columnRange(samples []Sample, from, to model.Time, col, cols int) (low, high model.Bytes) {
	low, high = math.MaxInt64, -1
	for _, s := range samples {
		if columnOf(s.At, from, to, cols) == col {
			low, high = min(low, s.Queue), max(high, s.Queue)
		}
	}
	return low, high
}

func TestColumn(t *testing.T) {
	for _, tc := range []struct {
		at, from, to model.Time
		want         int
	}{
		{0, 0, 100, 0},
		{9, 0, 100, 0},
		{10, 0, 100, 1},
		{99, 0, 100, 9},
		{100, 0, 100, 9},
		{-5, 0, 100, 0},
		{500, 0, 100, 9},
		{7, 7, 7, 0},
		{2_000_000_055, 2_000_000_000, 2_000_000_100, 5},
	} {
		if got := columnOf(tc.at, tc.from, tc.to, 10); got != tc.want {
			t.Errorf("column(%d of %d to %d) = %d; want %d", tc.at, tc.from, tc.to, got, tc.want)
		}
	}
}

// TestSpansByColumn counts nanosecond by nanosecond what shares and most
// compute from edges.
func TestSpansByColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := rapid.IntRange(1, 12).Draw(t, "cols")
		width := rapid.IntRange(1, 9).Draw(t, "width")
		from := model.Time(rapid.IntRange(0, 50).Draw(t, "from"))
		n := cols * width
		to := from + model.Time(n)
		cuts := rapid.SliceOfN(rapid.IntRange(0, n), 0, 16).Draw(t, "cuts")
		slices.Sort(cuts)
		var disjoint []span
		for i := 0; i+1 < len(cuts); i += 2 {
			if cuts[i] < cuts[i+1] {
				disjoint = append(disjoint, span{from + model.Time(cuts[i]), from + model.Time(cuts[i+1])})
			}
		}
		checkShares(t, disjoint, from, to, cols)
		var nested []span // pairs that overlap: first with last, and so on
		for i, j := 0, len(cuts)-1; i < j; i, j = i+1, j-1 {
			if cuts[i] < cuts[j] {
				nested = append(nested, span{from + model.Time(cuts[i]), from + model.Time(cuts[j])})
			}
		}
		checkMost(t, append(nested, disjoint...), from, to, cols)
	})
}

// covered counts the spans that hold an instant.
func covered(spans []span, at model.Time) (n int) {
	for _, s := range spans {
		if s.from <= at && at < s.to {
			n++
		}
	}
	return n
}

func checkShares(t *rapid.T, spans []span, from, to model.Time, cols int) {
	got := columnShares(spans, from, to, cols)
	width := (to - from) / model.Time(cols)
	for c := range cols {
		n := 0
		for i := range width {
			n += covered(spans, from+model.Time(c)*width+i)
		}
		if want := float64(n) / float64(width); math.Abs(got[c]-want) > 1e-9 {
			t.Fatalf("shares(%v, %d to %d)[%d of %d] = %v; want %v", spans, from, to, c, cols, got[c], want)
		}
	}
}

func checkMost(t *rapid.T, spans []span, from, to model.Time, cols int) {
	got := maximum(spans, from, to, cols)
	want := make([]int, cols)
	for at := from; at < to; at++ {
		c := columnOf(at, from, to, cols)
		want[c] = max(want[c], covered(spans, at))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("most(%v, %d to %d) = %v; want %v", spans, from, to, got, want)
	}
}

func TestStepsEndAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newChart(540, 330, plot.Margins{Left: 60, Top: 12, Right: 16, Bottom: 46}, "")
		values := rapid.SliceOfN(rapid.Float64Range(1, 100), 1, 3000).Draw(t, "values")
		slices.Sort(values)
		p.X = plot.Logarithmic(1, 100, p.Left, p.Right)
		p.Y = plot.Linear(0, 1, p.Bottom, p.Top)
		d := p.Stairs(values)
		end := "V" + plot.Num(p.Top) + "H" + plot.Num(p.Right)
		if d[len(d)-len(end):] != end {
			t.Fatalf("the CDF of %d values ends %q; want %q, all flows", len(values), d[len(d)-20:], end)
		}
		if most := 2 * 12 * (540 + 330); len(d) > most {
			t.Fatalf("the CDF of %d values takes %d bytes; want at most %d", len(values), len(d), most)
		}
	})
}
