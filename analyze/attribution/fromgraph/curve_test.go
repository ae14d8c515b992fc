package fromgraph

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/model"
)

// valueAt is a curve's value right before or right after an instant, read point by point.
func valueAt(points []attribution.Depth, at model.Time, after bool) float64 {
	if len(points) == 0 || points[0].At > at {
		return 0
	}
	for i, p := range points {
		switch {
		case p.At == at && (!after || i+1 == len(points) || points[i+1].At > at):
			return float64(p.Bytes)
		case p.At < at && i+1 < len(points) && points[i+1].At > at:
			next := points[i+1]
			return float64(p.Bytes) + float64(next.Bytes-p.Bytes)*float64(at.Sub(p.At))/float64(next.At.Sub(p.At))
		}
	}
	return float64(points[len(points)-1].Bytes)
}

// TestSumOfCurves: at every instant of one of them, since all are known, the sum is
// that of the curves, before the instant and after it.
func TestSumOfCurves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]pairCurve, rapid.IntRange(2, 5).Draw(t, "curves"))
		var since model.Time
		var times []model.Time
		for i := range list {
			at := model.Time(0)
			for range rapid.IntRange(1, 8).Draw(t, "points") {
				at += model.Time(rapid.IntRange(0, 20).Draw(t, "gap"))
				list[i].points = append(list[i].points, attribution.Depth{At: at, Bytes: model.Bytes(rapid.IntRange(0, 1000).Draw(t, "bytes"))})
				times = append(times, at)
			}
			if list[i].cut = rapid.Bool().Draw(t, "cut"); list[i].cut {
				since = max(since, list[i].points[0].At)
			}
		}
		curves := slices.Clone(list)
		sum := sumCurves(list)
		for _, at := range times {
			if at < since {
				continue
			}
			for _, after := range []bool{false, true} {
				want := 0.0
				for i := range curves {
					want += valueAt(curves[i].points, at, after)
				}
				// Each curve is rounded to a byte.
				if got := valueAt(sum, at, after); math.Abs(got-want) > float64(len(list)) {
					t.Fatalf("at %d, after %v: %v; want %v", at, after, got, want)
				}
			}
		}
		if len(sum) > 0 && sum[0].At < since {
			t.Fatalf("the sum begins at %d; all curves are known since %d", sum[0].At, since)
		}
	})
}
