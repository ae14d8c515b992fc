// Package packet reads and writes the headers of ordinary traffic: Ethernet,
// 802.1Q, IPv4, IPv6, TCP, UDP, ICMP and VXLAN. Packet reads a whole frame at
// once, to the FlowKey and the few fields that telemetry asks about; it is on
// the path of every packet, so it allocates nothing and does bounded work.
//
// Other headers have packages of their own; Packet follows GRE (wire/gre),
// reads through labels (wire/label) and into the base transport header
// (wire/roce), and stops at mirrors (wire/erspan).
// Layouts: docs/formats/packet.md.
package packet
