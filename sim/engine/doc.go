// Package engine keeps the time of a simulation: picoseconds, and a queue of
// calls to come, ordered by time and then by who asked for them and when. What
// they do, and the loop that runs them, belong to package sim, which keeps the
// many events of packets elsewhere: docs/decisions/0008 says how.
package engine
