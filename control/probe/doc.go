// Package probe sends guided probes and reads the answers in their traces: whether
// a drop is persistent, random, or a blackhole for certain 5-tuples; the round trip
// of a link; the path of a packet that no sample has caught.
//
// A Question defines what to send; a Scheduler has a host send it, by an Injector,
// and gives the question the traces of its probes. Nothing here has a clock or
// waits: the caller decides when a question ends. Making probes is inhost/prober's
// work, their traces analyze/trace's.
// Origin: docs/papers.md#everflow. Manual: docs/traces.md.
package probe
