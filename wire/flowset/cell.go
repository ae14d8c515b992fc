package flowset

import (
	"encoding/binary"
	"math"

	"github.com/weft-telemetry/weft/model"
)

// Layout gives the width in bytes of each field of a cell. Fields follow each
// other without gaps in the order they have here.
type Layout struct {
	Key     uint8 // XOR of keys: model.KeyLen4 or model.KeyLen6
	Flows   uint8 // flow count: 1, 2 or 4
	Packets uint8 // packet count: 1, 2, 4 or 8
	Bytes   uint8 // byte count: 0 (absent), 1, 2, 4 or 8
	Ports   uint8 // XOR of in ports, then of out ports: 0 (both absent), 1 or 2 each
}

// Cell is one cell of the counting table: the sum of the flows that fell into
// it.
//
// A count wider than its field is written as the field's largest value, and
// that value means "this many or more". A decoder therefore never takes a cell
// whose flow count is at the limit for a pure cell, however many flows it has
// removed; and a flow found in another cell takes its packets and bytes from a
// cell where those are below the limit. Wrapping instead would keep sums exact,
// but a decoder could not detect it.
type Cell struct {
	Key     [model.MaxKeyLen]byte // XOR of canonical keys; zero past Layout.Key
	Flows   uint32
	Packets uint64
	Bytes   uint64 // counted as Counts.Bytes

	// XOR of the flows' ports. In fields of one byte, no port of the switch is above
	// 255: a XOR cannot saturate, so that its upper half would be missing unseen.
	InPort, OutPort model.PortID
}

func (l Layout) check() error {
	key := l.Key == model.KeyLen4 || l.Key == model.KeyLen6
	flows := l.Flows == 1 || l.Flows == 2 || l.Flows == 4
	packets := l.Packets == 1 || l.Packets == 2 || l.Packets == 4 || l.Packets == 8
	bytes := l.Bytes == 0 || l.Bytes == 1 || l.Bytes == 2 || l.Bytes == 4 || l.Bytes == 8
	ports := l.Ports <= 2
	if !key || !flows || !packets || !bytes || !ports {
		return ErrLayout
	}
	return nil
}

// Size returns the length of a cell in bytes.
func (l Layout) Size() int {
	return int(l.Key) + int(l.Flows) + int(l.Packets) + int(l.Bytes) + 2*int(l.Ports)
}

// Limits returns the largest value of each count, which means "this many or
// more". An absent byte count has the limit zero.
func (l Layout) Limits() (flows uint32, packets, bytes uint64) {
	return uint32(limit(l.Flows)), limit(l.Packets), limit(l.Bytes)
}

// AppendCell appends c, cut as Cell says, and returns the extended slice. l
// must be one that Header.Check accepts.
func (l Layout) AppendCell(b []byte, c *Cell) []byte {
	b = append(b, c.Key[:l.Key]...)
	b = appendUint(b, uint64(c.Flows), l.Flows)
	b = appendUint(b, c.Packets, l.Packets)
	b = appendUint(b, c.Bytes, l.Bytes)
	switch l.Ports {
	case 1:
		b = append(b, byte(c.InPort), byte(c.OutPort))
	case 2:
		b = binary.BigEndian.AppendUint16(b, uint16(c.InPort))
		b = binary.BigEndian.AppendUint16(b, uint16(c.OutPort))
	}
	return b
}

// Cell decodes cell i of the chunk, which holds cell First+i of the table,
// into out and overwrites all of it. The chunk must be of section Cells and i
// less than Len.
func (c *Chunk) Cell(i int, out *Cell) {
	l := c.Layout
	size := l.Size()
	b := c.Data[i*size : (i+1)*size]
	*out = Cell{}
	copy(out.Key[:], b[:l.Key])
	b = b[l.Key:]
	out.Flows = uint32(readUint(b, l.Flows))
	b = b[l.Flows:]
	out.Packets = readUint(b, l.Packets)
	b = b[l.Packets:]
	out.Bytes = readUint(b, l.Bytes)
	b = b[l.Bytes:]
	out.InPort = model.PortID(readUint(b, l.Ports))
	out.OutPort = model.PortID(readUint(b[l.Ports:], l.Ports))
}

// limit returns the largest value of a field of that many bytes.
func limit(width uint8) uint64 {
	if width >= 8 {
		return math.MaxUint64
	}
	return 1<<(8*width) - 1
}

func appendUint(b []byte, v uint64, width uint8) []byte {
	switch width {
	case 1:
		return append(b, byte(min(v, math.MaxUint8)))
	case 2:
		return binary.BigEndian.AppendUint16(b, uint16(min(v, math.MaxUint16)))
	case 4:
		return binary.BigEndian.AppendUint32(b, uint32(min(v, math.MaxUint32)))
	case 8:
		return binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func readUint(b []byte, width uint8) uint64 {
	switch width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}
