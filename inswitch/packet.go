package inswitch

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Packet is a view of the current packet: the header values that most programs
// use, and a Source for the rest. The host fills it before the first program of
// a stage and again after a program has changed the packet.
//
// A host that works on bytes takes the fields from wire/packet, which skips
// labels; the simulator takes them from its packet, which holds values. A packet
// that is not IP has zero keys and another EtherType.
type Packet struct {
	Key   *model.FlowKey // of the innermost IP packet: the flow as users know it
	Outer *model.FlowKey // of the first IP header; the same as Key without tunnel
	// KeyID is a number for Key, if the host has one, as a host with a flow cache
	// does: packets of the same number have the same key, until the numbers wrap.
	// Packets of one key may have several numbers, or 0 for none. It changes no
	// result, only how fast a program recognises a flow.
	KeyID uint32

	Size       int32  // bytes on the wire from Ethernet header to payload, labels included, no FCS
	EtherType  uint16 // after VLAN tags
	IPID       uint16 // of the innermost header; 0 in IPv6
	TTL        uint8  // of the first IP header, as are ECN and DSCP: what this switch reads and changes
	ECN        uint8
	DSCP       uint8
	TCPFlags   uint8
	InnerTTL   uint8 // of the innermost header, which a tunnel does not decrement; TTL without a tunnel
	Kind       Kind
	LabelCount uint8 // labels that the packet carries

	ICMPType, ICMPCode uint8  // where Key is of ICMP or ICMPv6
	VLAN               uint16 // of the outermost tag; 0: no tag, or only a priority

	Source
}

// IsIP reports whether the packet is IPv4 or IPv6.
func (p *Packet) IsIP() bool {
	return p.EtherType == packet.TypeIPv4 || p.EtherType == packet.TypeIPv6
}

// UnlabeledSize returns the packet's size without labels, which is the same at
// all switches on its path.
func (p *Packet) UnlabeledSize() int32 {
	if p.LabelCount == 0 {
		return p.Size
	}
	return p.Size - label.OptionSize - label.ItemSize*int32(p.LabelCount)
}

// SampleHash returns a hash of 32 bits, by which all switches select the same
// packets: packet.SampleHash of the innermost header.
func (p *Packet) SampleHash(seed uint64) uint64 {
	seq := uint32(0)
	if p.IPID == 0 {
		seq = p.Seq()
	}
	return packet.SampleHash(seed, p.Key, p.IPID, seq)
}

// Kind is the type of an RDMA packet.
type Kind uint8

// Kinds of packet.
const (
	NotRDMA              Kind = iota // not RDMA
	Data                             // RoCEv2: payload and requests, all that is not below
	Ack                              // acknowledgement
	Nak                              // refusal: something is missing
	CNP                              // congestion notification
	ConnectionManagement             // connection management: a datagram to queue pair 1
)

// Source is the packet itself, where its host keeps it. Every method is for
// the packet of the current event and allocates nothing beyond what it appends.
type Source interface {
	// Seq returns the TCP sequence number or RoCEv2's packet sequence number
	// of the innermost packet; 0 where there is none.
	Seq() uint32
	// Labels returns the packet's labels in place: valid until the program
	// returns. An invalid block counts as no labels.
	Labels() label.Block
	// CanPushLabel returns nil if Actions.PushLabel will succeed, else the error
	// that label.Push would return.
	CanPushLabel(how label.Params) error
	// AppendFrame appends the frame as a wire would carry it at this point,
	// from its Ethernet header on and truncated to limit bytes; 0 means all of it.
	AppendFrame(b []byte, limit int) []byte
}
