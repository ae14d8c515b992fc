// Package engine keeps the time of a simulation: picoseconds, and a queue of
// pending calls, ordered by time, then by the time and node that scheduled
// them. The calls themselves and the loop that runs them belong to package sim,
// which keeps packet events elsewhere: docs/decisions/0008 says how.
package engine
