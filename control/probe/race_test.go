//go:build race

package probe_test

// A slice of what the run without the detector takes.
const (
	seeds = 2
	trips = 500
)
