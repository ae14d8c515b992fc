// Package trace puts the mirrors of one packet together, hop after hop, and
// says what became of it: arrived, went round a loop, or was seen last where
// it should not have been. A Judge gathers many traces before it blames a
// location, because a mirror may be lost as well as a packet; Counters fold the
// traces that nobody will look at.
//
// Mirroring is inswitch/mirror's work. Origin: docs/papers.md#everflow. Manual:
// docs/traces.md.
package trace
