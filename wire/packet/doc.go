// Package packet encodes and decodes the headers of ordinary traffic: Ethernet,
// 802.1Q, IPv4, IPv6, TCP, UDP, ICMP and VXLAN. Packet parses a whole frame at
// once into the FlowKey and the few fields that telemetry needs; it runs for
// every packet, so it allocates nothing and does bounded work.
//
// Other headers have their own packages; Packet follows GRE (wire/gre), skips
// labels (wire/label), reads the base transport header (wire/roce), and stops
// at mirrors (wire/erspan).
// Layouts: docs/formats/packet.md.
package packet
