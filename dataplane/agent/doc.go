// Package agent is Weft in a Linux host, router or gateway: it keeps flowsets of the
// packets that arrive at interfaces, in the kernel (dataplane/ebpf), in slots of the
// wall clock, and reports them to a collector (wire/dta), and the start of packets that are mirrored. It
// changes no packet. When
// it ends, the kernel detaches its programs. Guide: docs/agent.md.
package agent
