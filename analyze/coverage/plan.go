package coverage

import (
	"fmt"
	"math"
	"time"
)

// Wanted is what labels should achieve.
type Wanted struct {
	Coverage float64       // share of the windows in which an active port is labelled, below 1
	Window   time.Duration // in which one label is enough
	Gap      time.Duration // mean time between packets of a port; packets come at random
	Loss     float64       // share of labels that are lost in transit, below 1
}

// Plan is the setting that achieves it with the fewest labels.
type Plan struct {
	Interval time.Duration // T
	// Patience is k of adaptive labelling: a port without labels labels more often after
	// half a window, early enough to be labelled in the next one.
	Patience int
}

// Plan returns the longest interval that achieves the coverage, and the patience for it.
//
// Paper: sections 3.2 and 4.2 leave T and k to experiments. Labels of a port are T and the wait for a
// packet apart. A window of W without one has the probability E[max(0, S-W)]/E[S] of a
// renewal process with steps S; with exponential waits of mean g and T below W that is
// g·exp(-(W-T)/g)/(T+g). Where labels are lost, a window must have n of them, which are
// all lost with a probability of loss^n at most; each then has a part of the window.
func (w Wanted) Plan() (Plan, error) {
	if !(w.Coverage > 0 && w.Coverage < 1) || !(w.Loss >= 0 && w.Loss < 1) || w.Window <= 0 || w.Gap <= 0 {
		return Plan{}, fmt.Errorf("coverage: %v of windows of %v, packets %v apart and a loss of %v, want 0 to 1 of windows, times above 0 and a loss below 1",
			w.Coverage, w.Window, w.Gap, w.Loss)
	}
	miss, labels := 1-w.Coverage, 1.0
	if w.Loss > 0 {
		miss /= 2 // one half for loss, one for the wait
		labels = max(1, math.Ceil(math.Log(miss)/math.Log(w.Loss)))
	}
	window, gap := float64(w.Window)/labels, float64(w.Gap)
	missed := func(t float64) float64 { return labels * gap * math.Exp(-(window-t)/gap) / (t + gap) }
	if missed(0) > miss {
		return Plan{}, fmt.Errorf("coverage: no interval reaches %v of windows of %v with packets %v apart and a loss of %v: even labels in every packet do not",
			w.Coverage, w.Window, w.Gap, w.Loss)
	}
	low, high := 0.0, window
	for range 60 {
		if mid := (low + high) / 2; missed(mid) <= miss {
			low = mid
		} else {
			high = mid
		}
	}
	t := max(1, time.Duration(low))
	return Plan{Interval: t, Patience: max(1, int(w.Window/2/t))}, nil
}
