// Package poll encodes the polling packet: a host sends it along the path of a
// slow flow, and switches forward it towards the source of the PFC pauses.
// inswitch/epoch decides where a switch forwards it, inhost/agent when a host
// sends it. Origin: docs/papers.md#hawkeye. Layout: docs/formats/poll.md.
package poll

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/weft-telemetry/weft/model"
)

// EtherType is that of both layouts.
const EtherType = 0x6888

// Layout is the format of a polling packet: the low six bits of the first byte,
// which the public prototype leaves zero.
type Layout uint8

// The two layouts.
const (
	Prototype Layout = 0 // the public prototype's 19 bytes
	Weft      Layout = 1 // Weft's: wide event ids, hop limit, IPv6, origin time
)

// Lengths of a packet after its Ethernet header.
const (
	PrototypeSize = 19
	weftHead      = 24
	Size4         = weftHead + model.KeyLen4
	Size6         = weftHead + model.KeyLen6
	MaxSize       = Size6
)

// returning is the bit of packets on the path of acknowledgements.
const returning = 0x80

// PrototypeNoPort fills the prototype's port fields before the first switch
// has written them. Its ports count from 0, so 0 cannot mean none there.
const PrototypeNoPort model.PortID = 0x1ff

// Errors of Parse.
var (
	ErrShort    = errors.New("poll: short packet")
	ErrVersion  = errors.New("poll: unknown version")
	ErrReserved = errors.New("poll: reserved bits not zero")
	ErrKey      = errors.New("poll: victim's key is neither 13 nor 37 bytes")
)

// Flag is what a switch traces. A packet with the zero Flag is not forwarded.
type Flag uint8

// The bits of a Flag.
const (
	Victim Flag = 1 << iota // follow the victim's path; what a host sends
	Causes                  // follow the ports whose queues caused the pauses
	Both   = Victim | Causes
)

// String prints "victim", "causes", "both" or "none".
func (f Flag) String() string {
	return [...]string{"none", "victim", "causes", "both"}[f&Both]
}

// Event identifies one diagnosis request of one host. The pair does not repeat
// until the host's counter wraps, so reports of different requests cannot be
// confused.
type Event struct {
	Host   model.NodeID // the host that sent the first packet
	Number uint32       // increments at that host
}

// String prints "17#3", host and number.
func (e Event) String() string {
	b := strconv.AppendUint(nil, uint64(e.Host), 10)
	b = append(b, '#')
	return string(strconv.AppendUint(b, uint64(e.Number), 10))
}

// Poll is a polling packet in either layout. The prototype's has no field for
// Event.Host, HopLimit, Origin, IPv6 and the reverse path: Parse leaves them zero, and AppendTo
// omits them and truncates wider values to the low bits of their fields.
type Poll struct {
	Layout Layout
	Flag   Flag // two bits are written

	// HopLimit is how many switches may still forward the packet. Copies of a
	// packet in a forwarding loop are discarded when it reaches zero.
	HopLimit uint8

	// InPort and OutPort are the last switch's: the packet's ingress port and the
	// victim flow's egress port. 9 bits each in the prototype.
	InPort, OutPort model.PortID

	// Unexplained is the lateness that the victim's path must still account for.
	// Switches subtract what it may have waited in their queues; if some is left at the
	// last one, the path of the acknowledgements is polled, too, by packets that are
	// Returning: their Flow is the acknowledgements'. Not in the prototype's.
	Unexplained Lateness
	Returning   bool // Unexplained is not written

	Event  Event         // 8 bits of Number in the prototype
	Origin model.Time    // when the host sent it, on the host's clock
	Flow   model.FlowKey // the victim
}

// AppendTo appends the packet without its Ethernet header and returns the
// extended slice. A Layout other than Prototype is written as Weft.
func (p Poll) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	flag := byte(p.Flag&Both) << 6
	if p.Layout == Prototype {
		b = append(b, flag|byte(Prototype))
		b = be.AppendUint16(b, uint16(p.InPort)<<7)
		b = be.AppendUint16(b, uint16(p.OutPort)<<7)
		b = append(b, byte(p.Event.Number))
		b = be.AppendUint32(b, p.Flow.Src.V4())
		b = be.AppendUint32(b, p.Flow.Dst.V4())
		// Not the canonical order of a key: the protocol precedes the ports.
		b = append(b, byte(p.Flow.Proto))
		b = be.AppendUint16(b, p.Flow.SrcPort)
		return be.AppendUint16(b, p.Flow.DstPort)
	}
	b = append(b, flag|byte(Weft), p.HopLimit)
	b = be.AppendUint16(b, uint16(p.InPort))
	b = be.AppendUint16(b, uint16(p.OutPort))
	reverse := byte(p.Unexplained & MaxLateness)
	if p.Returning {
		reverse = returning
	}
	b = append(b, byte(p.Flow.Len()), reverse)
	b = be.AppendUint32(b, uint32(p.Event.Host))
	b = be.AppendUint32(b, p.Event.Number)
	b = be.AppendUint64(b, uint64(p.Origin))
	return p.Flow.AppendTo(b)
}

// Parse decodes the packet at the start of b, which follows the Ethernet
// header, and returns the bytes it used; Ethernet's padding may follow. It
// overwrites every field of p and keeps no reference to b.
func (p *Poll) Parse(b []byte) (int, error) {
	*p = Poll{}
	if len(b) == 0 {
		return 0, ErrShort
	}
	switch Layout(b[0] & 0x3f) {
	case Prototype:
		return p.parsePrototype(b)
	case Weft:
		return p.parseWeft(b)
	}
	return 0, ErrVersion
}

func (p *Poll) parsePrototype(b []byte) (int, error) {
	be := binary.BigEndian
	if len(b) < PrototypeSize {
		return 0, ErrShort
	}
	in, out := be.Uint16(b[1:]), be.Uint16(b[3:])
	if (in|out)&0x7f != 0 {
		return 0, ErrReserved
	}
	*p = Poll{
		Layout:  Prototype,
		Flag:    Flag(b[0] >> 6),
		InPort:  model.PortID(in >> 7),
		OutPort: model.PortID(out >> 7),
		Event:   Event{Number: uint32(b[5])},
		Flow: model.FlowKey{
			Src:     model.Addr4(be.Uint32(b[6:])),
			Dst:     model.Addr4(be.Uint32(b[10:])),
			Proto:   model.Proto(b[14]),
			SrcPort: be.Uint16(b[15:]),
			DstPort: be.Uint16(b[17:]),
		},
	}
	return PrototypeSize, nil
}

func (p *Poll) parseWeft(b []byte) (int, error) {
	be := binary.BigEndian
	if len(b) < weftHead {
		return 0, ErrShort
	}
	if b[7] > returning {
		return 0, ErrReserved
	}
	n := weftHead + int(b[6])
	if n != Size4 && n != Size6 {
		return 0, ErrKey
	}
	if len(b) < n {
		return 0, ErrShort
	}
	*p = Poll{
		Layout:   Weft,
		Flag:     Flag(b[0] >> 6),
		HopLimit: b[1],
		InPort:   model.PortID(be.Uint16(b[2:])),
		OutPort:  model.PortID(be.Uint16(b[4:])),
		Event:    Event{Host: model.NodeID(be.Uint32(b[8:])), Number: be.Uint32(b[12:])},
		Origin:   model.Time(be.Uint64(b[16:])),

		Unexplained: Lateness(b[7] &^ returning),
		Returning:   b[7] == returning,
	}
	return n, p.Flow.Parse(b[weftHead:n])
}

// Peek returns the host and the time of an encoded packet without checking it, and
// false if it has none: those of the prototype do not.
func Peek(b []byte) (host model.NodeID, at model.Time, ok bool) {
	if len(b) < weftHead || Layout(b[0]&0x3f) != Weft {
		return 0, 0, false
	}
	be := binary.BigEndian
	return model.NodeID(be.Uint32(b[8:])), model.Time(be.Uint64(b[16:])), true
}
