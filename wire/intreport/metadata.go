package intreport

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Bits is the bitmap of a node's metadata. The format numbers its bits from the
// most significant, 0, to the least, 15; the values follow in that order.
type Bits uint16

// Values of a node. Bits 9 to 14 are reserved: Metadata keeps their words.
const (
	BitNode         Bits = 1 << 15 // in INT-MD only; reserved in a report, whose Group has the node
	BitPorts        Bits = 1 << 14
	BitHopLatency   Bits = 1 << 13
	BitQueue        Bits = 1 << 12
	BitIngressTime  Bits = 1 << 11
	BitEgressTime   Bits = 1 << 10
	BitLogicalPorts Bits = 1 << 9
	BitUtilisation  Bits = 1 << 8
	BitBuffer       Bits = 1 << 7
	BitLast         Bits = 1 << 0 // in a report: drop reason; in INT-MD: checksum complement

	wide = BitIngressTime | BitEgressTime | BitLogicalPorts // 8 bytes; the others have 4
)

// Size returns the length in bytes of the values that b announces.
func (b Bits) Size() int {
	return 4*bits.OnesCount16(uint16(b)) + 4*bits.OnesCount16(uint16(b&wide))
}

// max24 is the largest queue or buffer occupancy that fits its field.
const max24 = 1<<24 - 1

// Metadata is what one node reports. The units of times, latencies, occupancies
// and utilisation are device-specific: the format does not define them.
type Metadata struct {
	Bits    Bits // values on the wire
	Missing Bits // of those, the unknown ones: all ones on the wire, zero here

	Node                          uint32
	Ingress, Egress               uint16 // level 1 interfaces: physical ports
	HopLatency                    uint32
	Queue                         uint8
	QueueDepth                    uint32 // 24 bits; saturates
	IngressTime, EgressTime       uint64
	LogicalIngress, LogicalEgress uint32 // level 2 interfaces: LAG, VLAN or tunnel
	Utilisation                   uint32 // of the egress port's transmitter
	Buffer                        uint8
	BufferDepth                   uint32 // 24 bits; saturates
	Reserved                      [6]uint32
	Last                          uint32 // see Drop; in INT-MD the checksum complement
}

// Has reports whether the values of all bits in b are present and known.
func (m Metadata) Has(b Bits) bool { return m.Bits&^m.Missing&b == b }

// Drop returns Last as a report defines it: the queue a packet was dropped from
// and the device's code for the reason.
func (m Metadata) Drop() (queue, reason uint8) { return uint8(m.Last >> 24), uint8(m.Last >> 16) }

// SetDrop sets Last and its bit as a report defines them.
func (m *Metadata) SetDrop(queue, reason uint8) {
	m.Bits |= BitLast
	m.Last = uint32(queue)<<24 | uint32(reason)<<16
}

// Parse decodes the values that the bitmap announces from the start of b.
func (m *Metadata) Parse(announced Bits, b []byte) (int, error) {
	*m = Metadata{}
	n := announced.Size()
	if len(b) < n {
		return 0, ErrShort
	}
	m.Bits = announced
	for rest := announced; rest != 0; {
		bit := rest.first()
		rest &^= bit
		v, none := uint64(binary.BigEndian.Uint32(b)), uint64(math.MaxUint32)
		if bit&wide != 0 {
			v, none = binary.BigEndian.Uint64(b), math.MaxUint64
			b = b[4:]
		}
		b = b[4:]
		if v == none {
			m.Missing |= bit
		} else {
			m.set(bit, v)
		}
	}
	return n, nil
}

// AppendTo appends the values that Bits announces: all ones for those in
// Missing. A value that happens to be all ones reads as missing.
func (m Metadata) AppendTo(b []byte) []byte {
	for rest := m.Bits; rest != 0; {
		bit := rest.first()
		rest &^= bit
		v := uint64(math.MaxUint64)
		if m.Missing&bit == 0 {
			v = m.get(bit)
		}
		if bit&wide != 0 {
			b = binary.BigEndian.AppendUint64(b, v)
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// first returns the bit whose value comes first.
func (b Bits) first() Bits { return 1 << (bits.Len16(uint16(b)) - 1) }

// reserved returns the index of a reserved bit's word.
func reserved(bit Bits) int { return 6 - bits.TrailingZeros16(uint16(bit)) }

// set and get map each bit to the field that holds its value.
func (m *Metadata) set(bit Bits, v uint64) {
	switch bit {
	case BitNode:
		m.Node = uint32(v)
	case BitPorts:
		m.Ingress, m.Egress = uint16(v>>16), uint16(v)
	case BitHopLatency:
		m.HopLatency = uint32(v)
	case BitQueue:
		m.Queue, m.QueueDepth = uint8(v>>24), uint32(v)&max24
	case BitIngressTime:
		m.IngressTime = v
	case BitEgressTime:
		m.EgressTime = v
	case BitLogicalPorts:
		m.LogicalIngress, m.LogicalEgress = uint32(v>>32), uint32(v)
	case BitUtilisation:
		m.Utilisation = uint32(v)
	case BitBuffer:
		m.Buffer, m.BufferDepth = uint8(v>>24), uint32(v)&max24
	case BitLast:
		m.Last = uint32(v)
	default:
		m.Reserved[reserved(bit)] = uint32(v)
	}
}

func (m *Metadata) get(bit Bits) uint64 {
	switch bit {
	case BitNode:
		return uint64(m.Node)
	case BitPorts:
		return uint64(m.Ingress)<<16 | uint64(m.Egress)
	case BitHopLatency:
		return uint64(m.HopLatency)
	case BitQueue:
		return uint64(m.Queue)<<24 | uint64(min(m.QueueDepth, max24))
	case BitIngressTime:
		return m.IngressTime
	case BitEgressTime:
		return m.EgressTime
	case BitLogicalPorts:
		return uint64(m.LogicalIngress)<<32 | uint64(m.LogicalEgress)
	case BitUtilisation:
		return uint64(m.Utilisation)
	case BitBuffer:
		return uint64(m.Buffer)<<24 | uint64(min(m.BufferDepth, max24))
	case BitLast:
		return uint64(m.Last)
	default:
		return uint64(m.Reserved[reserved(bit)])
	}
}
