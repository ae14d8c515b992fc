// Package portstat holds what any switch on sale exports: readings of a port's
// counters over an interval, and samples of its packets. Sources (sFlow, gNMI,
// OTLP, the simulator) fill these records; analyses read them. It computes
// nothing about a fabric.
//
// A record says which of its fields are present, because no two switches export
// the same set: an absent counter is not zero. All records are plain memory
// without pointers, so a source fills its own record again and again; who
// receives one copies what it keeps.
package portstat
