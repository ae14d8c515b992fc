// Package packet reads and writes the headers of ordinary traffic: Ethernet,
// 802.1Q, IPv4, IPv6, TCP, UDP, ICMP, GRE and VXLAN, one type and one file
// each. Packet reads a whole frame at once, to the FlowKey and the few fields
// that telemetry asks about; it is on the path of every packet, so it
// allocates nothing and does bounded work.
//
// Headers of Weft's own and of RDMA have packages of their own; Packet reads
// through labels (wire/label) and into the base transport header (wire/roce).
// Layouts: docs/formats/packet.md.
package packet
