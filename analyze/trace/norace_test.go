//go:build !race

package trace_test

const seeds = 5

var losses = []float64{0, 0.05, 0.2}
