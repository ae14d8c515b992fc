//go:build race

package probe_test

// seeds is a slice of what the run without the detector takes.
const seeds = 4
