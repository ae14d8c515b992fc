// Package filter is the query language that selects records: packets, traces,
// flows, ports. It follows Wireshark's display filters,
//
//	ip.src == 10.0.0.0/8 && (tcp.flags.reset || trace.latency > 1ms)
//
// and its fields are those of the caller's Schema: a name, a type, and a function
// that reads it from a record. The package itself knows no record.
// Origin: docs/papers.md#everflow. Manual: docs/filters.md.
package filter
