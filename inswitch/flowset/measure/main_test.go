package main

import (
	"slices"
	"testing"
)

// TestRatiosAreThoseOfTheShares: at a share of successes, tables of the ratio's size hold
// the flows in that share of trials; with too few failures there is no ratio.
func TestRatiosAreThoseOfTheShares(t *testing.T) {
	held := make([]int, 1000)
	for i := range held {
		held[len(held)-1-i] = 1000 + i // in any order
	}
	got := ratios(2000, held)
	// 100, 50, 10, 5 and 1 of the tables hold fewer; one is too few.
	if want := []float64{2000.0 / 1100, 2000.0 / 1050, 2000.0 / 1010, 2000.0 / 1005, 0}; !slices.Equal(got, want) {
		t.Errorf("ratios = %v; want %v", got, want)
	}
}

// TestMeasureRepeats: the same seeds give the same evidence, which is above what solving
// needs at least, a cell for each flow.
func TestMeasureRepeats(t *testing.T) {
	for _, tables := range []uint8{3, 4} {
		peel, solve := measure(tables, 100, 400)
		again, solveAgain := measure(tables, 100, 400)
		if !slices.Equal(peel, again) || !slices.Equal(solve, solveAgain) {
			t.Errorf("%d tables: %v and %v; then %v and %v", tables, peel, solve, again, solveAgain)
		}
		if solve[0] < 1 || peel[0] < solve[0] {
			t.Errorf("%d tables: %v cells per flow to peel, %v to solve; want at least 1, and no fewer to peel", tables, peel[0], solve[0])
		}
		if last := len(successes) - 1; peel[last] != 0 {
			t.Errorf("%d tables: %v cells per flow for %v of 400 tables; want 0, too few failed", tables, peel[last], successes[last])
		}
	}
}
