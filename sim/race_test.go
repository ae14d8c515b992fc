//go:build race

package sim

// raceEnabled makes the largest tests shorter: the detector costs a factor of
// ten.
const raceEnabled = true
