//go:build race

package live

// raced is set under the race detector, which makes a simulation ten times as
// slow: long ones are played in the plain run.
const raced = true
