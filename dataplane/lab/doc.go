// Package lab builds a fabric on one Linux machine: a network namespace for every node,
// a veth pair for every link, the kernel's forwarding with ECMP by the intended routes, or
// by those that FRR's bgpd learns, and an agent (dataplane/agent) for every switch. Faults are real: routes of the
// kernel's tables, links that are down, packets that an eBPF program drops or damages, ports
// that send slowly. Traffic, UDP and TCP, is real, and its senders and receivers keep books.
//
// A lab's namespaces begin with "weft-"; nothing but those that a lab has made is touched.
// Guide: docs/lab.md.
package lab
