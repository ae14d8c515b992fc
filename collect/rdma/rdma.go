// Package rdma writes into another host's memory over RoCEv2, and implements the
// other host where there is no RDMA NIC: a Requester sends WRITE and FETCH_ADD on
// a reliable connection, a Responder checks and executes them and answers.
// Both are state machines: packets in, packets out. Sockets and connection setup
// are in ingest/rocev2; the translator decides what is written where.
//
// Only messages of one packet are supported: nothing that a translator writes is
// longer, and a longer one can be split. A real NIC on either side sees no
// difference.
// Origin: docs/papers.md#dta. Layout: docs/formats/roce.md.
package rdma

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

// MTU is the maximum payload of a packet: the InfiniBand MTU that fits an Ethernet
// MTU of 1500 bytes.
const MTU = 1024

// overhead is the maximum length of a packet's headers and trailer.
const overhead = packet.IPv6Size + packet.UDPSize + roce.BTHSize + roce.AtomicETHSize + roce.ImmDtSize + roce.ICRCSize

// Path is the two addresses of a connection's packets. Both are IPv4, or both are
// IPv6.
type Path struct{ Src, Dst netip.AddrPort }

// headers is the length of the IP and UDP headers.
func (p Path) headers() int {
	if p.Src.Addr().Is4() {
		return packet.IPv4Size + packet.UDPSize
	}
	return packet.IPv6Size + packet.UDPSize
}

// appendHeaders appends the headers of a Linux socket that does not fragment, for
// n bytes: no options, identification 0. The invariant CRC covers them, except
// checksums, TTL and traffic class; so both ends of a connection can check it
// without seeing the header.
func (p Path) appendHeaders(b []byte, n int) []byte {
	length := uint16(packet.UDPSize + n)
	if p.Src.Addr().Is4() {
		src, dst := p.Src.Addr().As4(), p.Dst.Addr().As4()
		ip := packet.IPv4{
			Length: packet.IPv4Size + length, Flags: packet.DontFragment, TTL: 64, Proto: model.UDP,
			Src: word(src), Dst: word(dst),
		}
		ip.Checksum = ip.Sum()
		b = ip.AppendTo(b)
	} else {
		b = packet.IPv6{
			Length: length, NextHeader: model.UDP, HopLimit: 64,
			Src: model.AddrOf(p.Src.Addr()), Dst: model.AddrOf(p.Dst.Addr()),
		}.AppendTo(b)
	}
	return packet.UDP{SrcPort: p.Src.Port(), DstPort: p.Dst.Port(), Length: length}.AppendTo(b)
}

func word(a [4]byte) uint32 {
	return uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
}

// appendPacket appends a whole packet, from its IP header to its invariant
// CRC. The UDP payload starts at p.headers().
func (p Path) appendPacket(b []byte, pkt *roce.Packet) []byte {
	at := len(b)
	// The length is needed first: encode once after the space for the headers.
	b = p.appendHeaders(b, 0)
	body := len(b)
	b = pkt.AppendTo(b)
	p.appendHeaders(b[:at], len(b)-body+roce.ICRCSize)
	b, err := roce.AppendICRC(b, b[at:])
	if err != nil {
		panic("rdma: own headers: " + err.Error())
	}
	return b
}

// check checks the invariant CRC of a UDP payload received on p. It assembles the
// packet in scratch, and returns it.
func (p Path) check(scratch, payload []byte) ([]byte, error) {
	scratch = p.appendHeaders(scratch[:0], len(payload))
	scratch = append(scratch, payload...)
	return scratch, roce.CheckICRC(scratch)
}
