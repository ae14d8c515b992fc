package scenario

import (
	"math"
	"testing"
)

func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		figure, text string
		flows        float64
		holds, not   []float64
	}{
		{"drops", "0", 0, []float64{0}, []float64{1}},
		{"drops", "none", 0, []float64{0}, []float64{1}},
		{"drops", "some", 0, []float64{1, 9}, []float64{0}},
		{"drops", "> 0", 0, []float64{1}, []float64{0}},
		{"drops", "above 3", 0, []float64{4}, []float64{3}},
		{"drops", ">=3", 0, []float64{3, 4}, []float64{2}},
		{"drops", "at least 3", 0, []float64{3, 4}, []float64{2}},
		{"drops", "< 3", 0, []float64{0, 2}, []float64{3}},
		{"drops", "below 3", 0, []float64{2}, []float64{3}},
		{"drops", "<= 3", 0, []float64{3}, []float64{4}},
		{"drops", "at most 3", 0, []float64{3}, []float64{4}},
		{"drops", "= 3", 0, []float64{3}, []float64{2, 4}},
		{"drops", "exactly 3", 0, []float64{3}, []float64{2, 4}},
		{"drops", "2 to 3", 0, []float64{2, 3}, []float64{1, 4}},
		{"finished", "all", 5, []float64{5}, []float64{4, 0}},
		{"finished", "all", 0, nil, []float64{0}},
		{"finished", "at least 80%", 5, []float64{4, 5}, []float64{3}},
		{"finished", "50% to 80%", 10, []float64{5, 8}, []float64{4, 9}},
		{"finished", "3", 5, []float64{3}, []float64{4}},
		{"slowdown-p99", "below 1.5", 0, []float64{1.4999}, []float64{1.5}},
		{"goodput", "above 10Gb/s", 0, []float64{11e9}, []float64{10e9}},
		{"completion", "1ms to 2ms", 0, []float64{1e6, 2e6}, []float64{1, 3e6}},
		{"queue-peak", "at most 4KiB", 0, []float64{4096}, []float64{4097}},
		{"deadlock", "none", 0, []float64{0}, []float64{1, 2}},
		{"deadlock", "formed", 0, []float64{1, 2}, []float64{0}},
		{"deadlock", "dissolved", 0, []float64{1}, []float64{0, 2}},
		{"deadlock", "persistent", 0, []float64{2}, []float64{0, 1}},
	} {
		f := figures[tc.figure]
		c, err := f.condition(tc.figure, tc.text)
		if err != nil {
			t.Errorf("condition(%s, %q) = %v; want no error", tc.figure, tc.text, err)
			continue
		}
		for _, v := range tc.holds {
			if !c.holds(v, tc.flows) {
				t.Errorf("%s %q: holds(%v of %v) = false; want true", tc.figure, tc.text, v, tc.flows)
			}
		}
		for _, v := range append(tc.not, math.NaN()) {
			if c.holds(v, tc.flows) {
				t.Errorf("%s %q: holds(%v of %v) = true; want false", tc.figure, tc.text, v, tc.flows)
			}
		}
	}
}
