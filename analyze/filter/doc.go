// Package filter is the language in which people say which records they mean:
// packets, traces, flows, ports. It reads like a display filter of Wireshark,
//
//	ip.src == 10.0.0.0/8 && (tcp.flags.reset || trace.latency > 1ms)
//
// and its fields are whatever the caller's Schema declares: a name, a type, and
// a function that reads it from a record. The package knows no record itself.
// Origin: docs/papers.md#everflow. Manual: docs/filters.md.
package filter
