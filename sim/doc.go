// Package sim is a packet-level simulator of a lossless fabric: store-and-
// forward switches with a shared buffer, PFC and ECN, hosts with RDMA, TCP and
// UDP, faults on purpose. It is the laboratory in which every scenario and
// claim is run.
//
// It is deterministic: one goroutine, events ordered by time and sequence, all
// randomness from one seed. It keeps no package-level state, so several
// simulations share a process. In steady state it allocates nothing per packet.
//
// What runs inside a switch beyond forwarding comes in as a Program;
// dataplane/simhost brings those of inswitch. What really happened is for
// scoring alone and goes to sim/truth. docs/simulator.md is the manual.
package sim
