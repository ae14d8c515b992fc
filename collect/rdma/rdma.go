// Package rdma writes into another host's memory over RoCEv2, and implements the
// other host where there is no RDMA NIC: a Requester sends WRITE, FETCH_ADD, CMP_SWAP
// and SEND on a reliable connection, a Responder checks and executes them and answers.
// Both are state machines: packets in, packets out. Connection setup and
// sockets are in ingest/rocev2; the translator decides what is
// written where.
//
// Both work with the RoCE of the Linux kernel. A peer may
// send from any port with any IPv4 identification, answers to the port that
// RoCEv2 defines, and limits unanswered atomic operations. RDMA READ and messages of
// several packets are not supported: translators need neither.
// Origin: docs/papers.md#dta. Layout: docs/formats/roce.md.
package rdma

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

// MTU is the default of Connection.MTU: the InfiniBand MTU that fits an Ethernet
// MTU of 1500 bytes. MaxMTU is InfiniBand's largest.
const (
	MTU    = 1024
	MaxMTU = 4096
)

// overhead is the maximum length of a packet's headers and trailer.
const overhead = packet.IPv6Size + packet.UDPSize + roce.BTHSize + roce.AtomicETHSize + roce.ImmDtSize + roce.ICRCSize

// Connection is what the two ends of a connection agreed on.
type Connection struct {
	Path   Path
	Local  roce.QPN // queue pair of this end; a Responder chooses one for 0
	Remote roce.QPN // queue pair of the other end
	First  roce.PSN // of the requester's first packet
	MTU    int      // payload of a packet, 256 to 4096 bytes; 0 is MTU
	// Atomics is the number of FETCH_ADDs and CMP_SWAPs that may be unanswered: what the responder
	// keeps results for, in case that they are sent again. 0 is no limit.
	Atomics int
	// AnyIdentification accepts IPv4 packets with any identification, as the kernel
	// and NICs send. Weft's own have 0, and are checked with all bits of the CRC.
	AnyIdentification bool
	// Receive, if not nil, takes the messages that are sent to a Responder.
	Receive func(message []byte)
}

// mtu returns the MTU.
func (c Connection) mtu() int {
	if c.MTU == 0 {
		return MTU
	}
	return c.MTU
}

// check returns an error for an MTU that is none of InfiniBand's, or a path
// between families.
func (c Connection) check() error {
	switch c.mtu() {
	case 256, 512, 1024, 2048, 4096:
	default:
		return fmt.Errorf("rdma: MTU of %d, want 256, 512, 1024, 2048 or 4096", c.MTU)
	}
	if c.Path.Src.Addr().Is4() != c.Path.Dst.Addr().Is4() {
		return fmt.Errorf("rdma: peer %v of %v, want the same family", c.Path.Dst, c.Path.Src)
	}
	return nil
}

// Path is the two addresses of an end's packets: its own, and that where the
// other end listens. Both are IPv4, or both are IPv6.
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
// checksums, TTL and traffic class.
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

// AppendPayload appends the UDP payload of a packet with its invariant CRC.
func (p Path) AppendPayload(b []byte, pkt *roce.Packet) []byte {
	return append(b, p.appendPacket(nil, pkt)[p.headers():]...)
}

// Check checks the invariant CRC of a UDP payload received on p, whatever the
// IPv4 identification of its packet was.
func (p Path) Check(payload []byte) error {
	_, err := p.check(nil, payload, true)
	return err
}

// check checks the invariant CRC of a UDP payload received on p. It assembles the
// packet in scratch, and returns it.
func (p Path) check(scratch, payload []byte, anyIdentification bool) ([]byte, error) {
	scratch = p.appendHeaders(scratch[:0], len(payload))
	scratch = append(scratch, payload...)
	if anyIdentification {
		return scratch, roce.CheckICRCAnyIdentification(scratch)
	}
	return scratch, roce.CheckICRC(scratch)
}
