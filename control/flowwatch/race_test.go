//go:build race

package flowwatch

// raceEnabled leaves the long tests to the run without the detector.
const raceEnabled = true
