package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Packet is the parsed headers of one frame, as far as telemetry needs them.
// Parse fills it in place, so one Packet serves a whole stream.
type Packet struct {
	Dst, Src  model.MAC
	EtherType uint16 // of what follows the VLAN tags
	Tags      uint8  // VLAN tags stepped over, at most maxTags
	VLAN      VLAN   // the outermost tag, when Tags > 0

	Outer IP    // the first IP header; Outer.Key is zero in a frame without one
	Inner IP    // the last IP header of a tunnelled packet
	Encap Encap // what wraps Inner; None where there is no Inner
	Depth uint8 // IP headers found, at most MaxDepth
}

// IP is one IP header of a frame and the transport header below it.
type IP struct {
	Key    model.FlowKey // ports are 0 under NoPorts and where the protocol has none
	Length uint32        // of the IP packet, as its header says
	ID     uint32        // IPv4 identification, or that of an IPv6 fragment header
	Seq    uint32        // TCP sequence number, or PSN of RoCEv2
	QP     uint32        // destination queue pair of RoCEv2

	// Where the IP header, what it carries, and the carried payload begin in
	// the frame. Labels and extension headers lie between the first two.
	Start, Transport, Payload uint32

	TTL      uint8
	TOS      uint8 // DSCP and ECN have methods
	TCPFlags TCPFlags
	Type     uint8 // ICMP type, or opcode of RoCEv2
	Code     uint8 // ICMP code
	Flags    Flags
}

// DSCP returns the differentiated services code point.
func (h *IP) DSCP() uint8 { return h.TOS >> 2 }

// ECN returns the congestion bits: 0 not capable, 1 or 2 capable, 3 marked.
func (h *IP) ECN() uint8 { return h.TOS & 3 }

// Flags are the limits of what could be parsed of an IP packet.
type Flags uint8

// The flags.
const (
	Fragment  Flags = 1 << iota // part of a fragmented datagram
	NoPorts                     // the key's ports could not be read: a later fragment, or truncated
	Truncated                   // the frame ends before the IP packet does
	Malformed                   // what follows this header contradicts itself and was not read
	TooDeep                     // more tunnels or extension headers than Parse follows
	Labelled                    // an INT-label block was stepped over
	RoCE                        // RoCEv2: Type, QP and Seq are of the base transport header
)

// Has reports whether all of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// Encap is how a packet carries another.
type Encap uint8

// The encapsulations. Mirror means a GRE-encapsulated copy of a frame
// (ERSPAN): Parse does not parse it, because its layout depends on the sender;
// wire/erspan does.
const (
	None Encap = iota
	IPinIP
	GREinIP
	VXLANinUDP
	Mirror
)

const (
	// MaxDepth bounds nested IP headers. Guided probes nest one per switch
	// they visit; seven and the probe itself cross any fabric twice.
	MaxDepth = 8
	// maxTags and maxExtensions bound the work on hostile frames.
	maxTags       = 4
	maxExtensions = 8
)

// Parse reads a frame from its Ethernet header. It sets every field and keeps
// no reference to b. The error says why there is no Outer although the EtherType
// is IP; errors in inner headers set Flags.
func (p *Packet) Parse(b []byte) error {
	if p.parseFast(b) {
		return nil
	}
	return p.parseAny(b)
}

// parseAny is Parse for every frame, one header after the other.
func (p *Packet) parseAny(b []byte) error {
	*p = Packet{}
	if len(b) < EthernetSize {
		return ErrShort
	}
	p.Dst, p.Src = model.MAC(b[0:6]), model.MAC(b[6:12])
	etherType := binary.BigEndian.Uint16(b[12:])
	at := EthernetSize
	for etherType == TypeVLAN || etherType == TypeQinQ {
		var tag VLAN
		if p.Tags == maxTags {
			return ErrHeader
		}
		n, err := tag.Parse(b[at:])
		if err != nil {
			return err
		}
		if p.Tags == 0 {
			p.VLAN = tag
		}
		p.Tags++
		etherType, at = tag.Type, at+n
	}
	p.EtherType = etherType
	if etherType != TypeIPv4 && etherType != TypeIPv6 {
		return nil
	}
	if err := p.Outer.parse(b, at, etherType == TypeIPv6); err != nil {
		p.Outer = IP{}
		return err
	}
	p.Depth = 1
	p.followTunnels(b)
	return nil
}

// ParseIP reads a packet from its IP header, without a frame around it.
func (p *Packet) ParseIP(b []byte) error {
	*p = Packet{}
	if len(b) == 0 {
		return ErrShort
	}
	v6 := b[0]>>4 == 6
	if err := p.Outer.parse(b, 0, v6); err != nil {
		p.Outer = IP{}
		return err
	}
	p.EtherType = TypeIPv4
	if v6 {
		p.EtherType = TypeIPv6
	}
	p.Depth = 1
	p.followTunnels(b)
	return nil
}

// Innermost returns the header of the flow as users know it: Inner of a
// tunnelled packet, otherwise Outer.
func (p *Packet) Innermost() *IP {
	if p.Depth > 1 {
		return &p.Inner
	}
	return &p.Outer
}

// flagFor returns the flag for an error after h: bytes missing from a truncated
// frame are not an error.
func flagFor(h *IP, err error) Flags {
	if err == ErrShort && h.Flags.Has(Truncated) {
		return 0
	}
	return Malformed
}
