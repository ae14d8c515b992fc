package hawkeye

import "testing"

// TestReliability: a bin counts from 50 answers on, and fails where confidence and
// being right differ by more than 0.1.
func TestReliability(t *testing.T) {
	fill := func(r *reliability, confidence float64, answers, right int) {
		for i := range answers {
			r.add(confidence, i < right)
		}
	}
	for name, tc := range map[string]struct {
		fill func(*reliability)
		want bool
	}{
		"nothing":           {func(*reliability) {}, false},
		"too few":           {func(r *reliability) { fill(r, 1, 49, 49) }, false},
		"always right":      {func(r *reliability) { fill(r, 1, 50, 50) }, true},
		"too sure":          {func(r *reliability) { fill(r, 0.95, 100, 80) }, false},
		"not sure enough":   {func(r *reliability) { fill(r, 0.55, 100, 80) }, false},
		"a small bin wrong": {func(r *reliability) { fill(r, 1, 50, 50); fill(r, 0.7, 49, 0) }, true},
		"half sure":         {func(r *reliability) { fill(r, 0.55, 100, 55); fill(r, 0.97, 100, 95) }, true},
	} {
		var r reliability
		tc.fill(&r)
		if got := r.result(); got.Pass != tc.want {
			t.Errorf("%s: pass %v (%s), want %v", name, got.Pass, got.Measured, tc.want)
		}
	}
}
