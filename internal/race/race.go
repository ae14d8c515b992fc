// Package race is for tests of what takes long under the race detector, which
// makes a simulation ten times as slow, and has one goroutine, in which the
// detector has nothing to find. They run a part of it, or leave all of it to the
// plain run: make test runs every package whose tests import this one a second
// time, without the detector.
package race

import "testing"

// Less returns less where the race detector is on, and all in the plain run.
func Less[T any](all, less T) T {
	if Enabled {
		return less
	}
	return all
}

// LeaveToPlainRun skips a test where the race detector is on.
func LeaveToPlainRun(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("left to the plain run of make test, without the race detector")
	}
}
