// Package probe asks a fabric questions by guided probes and reads the answers
// in their traces: is a drop persistent, random, or a blackhole for certain
// 5-tuples; how long is the round trip of a link; which way does a packet take
// that no sample has caught.
//
// A question says what to send; a Desk has a host send it, by an Injector, and
// gives the question the traces of its probes. Nothing here has a clock or
// waits: who runs it says when a question has had its time. Making probes is
// inhost/prober's work, their traces analyze/trace's.
// Origin: docs/papers.md#everflow. Manual: docs/traces.md.
package probe
