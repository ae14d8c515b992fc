// Package race is for tests that are slow under the race detector, which makes
// a simulation ten times as slow, and use one goroutine, in which the detector
// has nothing to find; and for those that hold a service to real time, which it does
// not keep up with under the detector. They run a part of the test, or leave all of it to the
// plain run: make test runs every test that uses this package a second time,
// without the detector.
package race

import "testing"

// Less returns less if the race detector is on, else all.
func Less[T any](all, less T) T {
	if Enabled {
		return less
	}
	return all
}

// LeaveToPlainRun skips a test if the race detector is on.
func LeaveToPlainRun(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("left to the plain run of make test, without the race detector")
	}
}
