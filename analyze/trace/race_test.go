//go:build race

package trace_test

// The race detector makes a simulation ten times as slow, and there is one
// goroutine: few runs will do.
const seeds = 1

var losses = []float64{0.2}
