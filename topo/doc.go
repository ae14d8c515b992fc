// Package topo is the fabric as data: nodes, ports, links, addresses, the
// routes the operator intends, and checks of all that. It moves no packet.
// What a switch really does with a packet, faults included, is topo/fib's;
// reading and writing files is topo/file's. docs/topology.md describes it all
// for users.
package topo
