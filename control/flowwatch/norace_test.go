//go:build !race

package flowwatch

const raceEnabled = false
