package epoch

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Flow is the counters of one flow in one priority of one egress port in one
// epoch, with PortEpoch's rules. There may be several records of one flow and
// epoch, some of them evicted: their sum counts.
type Flow struct {
	Epoch       uint32       // see Header.Start
	Out         model.PortID // egress port
	In          model.PortID // ingress port of its last packet
	Priority    model.Priority
	Evicted     bool // another flow took its table slot during the epoch
	Key         model.FlowKey
	Packets     uint32
	Paused      uint32 // of Packets
	Bytes       uint64 // of Packets: Ethernet header to payload, no FCS
	Depth       uint64 // packets; summed over the packets not paused
	PausedDepth uint64 // packets; summed over the paused ones
	// When its first and last packet was enqueued, relative to the start of the
	// epoch. On the wire they have 32 bits of ns and saturate.
	First, Last time.Duration
}

// IsZero reports whether the record carries no information.
func (f *Flow) IsZero() bool {
	return f.Packets == 0 && f.Paused == 0 && f.Bytes == 0 && f.Depth == 0 && f.PausedDepth == 0
}

// AppendTo appends the record; its kind follows the family of the key. The low
// three bits of Priority are written.
func (f Flow) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	if f.Key.V6 {
		b = append(b, byte(KindFlow6), Flow6Size)
	} else {
		b = append(b, byte(KindFlow4), Flow4Size)
	}
	b = be.AppendUint32(b, f.Epoch)
	b = be.AppendUint16(b, uint16(f.Out))
	b = be.AppendUint16(b, uint16(f.In))
	b = append(b, byte(f.Priority&7), boolByte(f.Evicted))
	b = be.AppendUint32(b, f.Packets)
	b = be.AppendUint32(b, f.Paused)
	b = be.AppendUint64(b, f.Bytes)
	b = be.AppendUint64(b, f.Depth)
	b = be.AppendUint64(b, f.PausedDepth)
	b = be.AppendUint32(b, uint32(min(f.First, math.MaxUint32)))
	b = be.AppendUint32(b, uint32(min(f.Last, math.MaxUint32)))
	return f.Key.AppendTo(b)
}

// Parse decodes the record at the start of b, of kind KindFlow4 or KindFlow6,
// and returns the bytes it used. It overwrites every field of f and keeps no
// reference to b.
func (f *Flow) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*f = Flow{}
	kind, n := KindFlow4, Flow4Size
	if len(b) > 0 && Kind(b[0]) == KindFlow6 {
		kind, n = KindFlow6, Flow6Size
	}
	if err := checkHead(b, kind); err != nil {
		return 0, err
	}
	if b[10] > 7 || b[11] > 1 {
		return 0, ErrReserved
	}
	*f = Flow{
		Epoch:       be.Uint32(b[2:]),
		Out:         model.PortID(be.Uint16(b[6:])),
		In:          model.PortID(be.Uint16(b[8:])),
		Priority:    model.Priority(b[10]),
		Evicted:     b[11] == 1,
		Packets:     be.Uint32(b[12:]),
		Paused:      be.Uint32(b[16:]),
		Bytes:       be.Uint64(b[20:]),
		Depth:       be.Uint64(b[28:]),
		PausedDepth: be.Uint64(b[36:]),
		First:       time.Duration(be.Uint32(b[44:])),
		Last:        time.Duration(be.Uint32(b[48:])),
	}
	return n, f.Key.Parse(b[flowSize:n])
}

// AnyPriority is the Priority in a Meter of a switch that meters all priorities
// together.
const AnyPriority model.Priority = 0xff

// Meter is the traffic from one port to another in one epoch: only through this
// traffic can a pause of Out make the switch pause In.
type Meter struct {
	Epoch    uint32 // see Header.Start
	In, Out  model.PortID
	Priority model.Priority // 0 to 7, or AnyPriority
	Packets  uint32
	Bytes    uint64 // of Packets: Ethernet header to payload, no FCS
}

// IsZero reports whether the record carries no information.
func (m Meter) IsZero() bool { return m.Packets == 0 && m.Bytes == 0 }

// AppendTo appends the record. The low three bits of a Priority other than
// AnyPriority are written.
func (m Meter) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	if m.Priority != AnyPriority {
		m.Priority &= 7
	}
	b = append(b, byte(KindMeter), MeterSize)
	b = be.AppendUint32(b, m.Epoch)
	b = be.AppendUint16(b, uint16(m.In))
	b = be.AppendUint16(b, uint16(m.Out))
	b = append(b, byte(m.Priority), 0)
	b = be.AppendUint32(b, m.Packets)
	return be.AppendUint64(b, m.Bytes)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of m and keeps no reference to b.
func (m *Meter) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*m = Meter{}
	if err := checkHead(b, KindMeter); err != nil {
		return 0, err
	}
	priority := model.Priority(b[10])
	if priority > 7 && priority != AnyPriority || b[11] != 0 {
		return 0, ErrReserved
	}
	*m = Meter{
		Epoch:    be.Uint32(b[2:]),
		In:       model.PortID(be.Uint16(b[6:])),
		Out:      model.PortID(be.Uint16(b[8:])),
		Priority: priority,
		Packets:  be.Uint32(b[12:]),
		Bytes:    be.Uint64(b[16:]),
	}
	return MeterSize, nil
}
