// Package topo is the fabric as data: nodes, ports, links, addresses, the
// intended routes, and checks of all that. It forwards no packets. The actual
// forwarding state of a switch, faults included, is in topo/fib; topo/file reads
// and writes files. docs/topology.md describes it for users.
package topo
