// Package sim is a packet-level simulator of a lossless fabric:
// store-and-forward switches with a shared buffer, PFC and ECN, hosts with
// RDMA, TCP and UDP, and injected faults. Every scenario and claim is run in
// it.
//
// It is deterministic: one goroutine, events ordered by time and sequence, all
// randomness from one seed. It keeps no package-level state, so several
// simulations share a process. In steady state it allocates nothing per packet.
//
// Code that runs inside a switch beyond forwarding is a Program;
// dataplane/simhost hosts those of inswitch. Ground truth is for scoring only
// and goes to sim/truth. docs/simulator.md is the manual.
package sim
