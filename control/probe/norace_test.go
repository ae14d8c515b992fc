//go:build !race

package probe_test

const (
	seeds = 200
	trips = 1000
)
