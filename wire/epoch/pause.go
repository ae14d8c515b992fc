package epoch

import (
	"encoding/binary"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Pause is the pause history of one priority of one egress port. There is one
// record for every queue that was ever paused. Pauses form bursts: within a
// burst each pause starts at most PauseBurstGap after the previous one ended.
type Pause struct {
	Port              model.PortID
	Priority          model.Priority // 0 to 7
	LastStart         model.Time     // start of the current pause, or of the last one
	LastEnd           model.Time     // end of the last finished pause; 0 if none is finished
	BurstStart        model.Time     // start of the first pause of the current burst
	BytesAtBurstStart uint64         // queue length at BurstStart: large if the queue's own traffic congested it
	Pauses            uint64         // since the switch started; frames that only extend a pause do not count
	PausedTime        time.Duration  // total time paused since the switch started
}

// PauseBurstGap is the longest gap between two pauses of one burst.
const PauseBurstGap = 100 * time.Microsecond

// IsZero reports whether the record carries no information.
func (p Pause) IsZero() bool { return p.Pauses == 0 }

// AppendTo appends the record. The low three bits of Priority are written.
func (p Pause) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindPause), PauseSize)
	b = be.AppendUint16(b, uint16(p.Port))
	b = append(b, byte(p.Priority&7), 0)
	b = be.AppendUint64(b, uint64(p.LastStart))
	b = be.AppendUint64(b, uint64(p.LastEnd))
	b = be.AppendUint64(b, uint64(p.BurstStart))
	b = be.AppendUint64(b, p.BytesAtBurstStart)
	b = be.AppendUint64(b, p.Pauses)
	return be.AppendUint64(b, uint64(p.PausedTime))
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of p and keeps no reference to b.
func (p *Pause) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*p = Pause{}
	if err := checkHead(b, KindPause); err != nil {
		return 0, err
	}
	if b[4] > 7 || b[5] != 0 {
		return 0, ErrReserved
	}
	*p = Pause{
		Port:              model.PortID(be.Uint16(b[2:])),
		Priority:          model.Priority(b[4]),
		LastStart:         model.Time(be.Uint64(b[6:])),
		LastEnd:           model.Time(be.Uint64(b[14:])),
		BurstStart:        model.Time(be.Uint64(b[22:])),
		BytesAtBurstStart: be.Uint64(b[30:]),
		Pauses:            be.Uint64(b[38:]),
		PausedTime:        time.Duration(be.Uint64(b[46:])),
	}
	return PauseSize, nil
}

// PortPairBacklog is the traffic queued at the snapshot in one priority of one
// egress port that arrived at one ingress port: what makes the switch pause that
// ingress port.
type PortPairBacklog struct {
	In, Out  model.PortID
	Priority model.Priority // 0 to 7
	Packets  uint32
	Bytes    uint64 // of Packets: Ethernet header to payload, no FCS
}

// IsZero reports whether the record carries no information.
func (h PortPairBacklog) IsZero() bool { return h.Packets == 0 }

// AppendTo appends the record. The low three bits of Priority are written.
func (h PortPairBacklog) AppendTo(b []byte) []byte {
	return h.appendTo(append(b, byte(KindPortPairBacklog), PortPairBacklogSize))
}

func (h PortPairBacklog) appendTo(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, uint16(h.In))
	b = be.AppendUint16(b, uint16(h.Out))
	b = append(b, byte(h.Priority&7), 0)
	b = be.AppendUint32(b, h.Packets)
	return be.AppendUint64(b, h.Bytes)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of h and keeps no reference to b.
func (h *PortPairBacklog) Parse(b []byte) (int, error) {
	*h = PortPairBacklog{}
	if err := checkHead(b, KindPortPairBacklog); err != nil {
		return 0, err
	}
	if err := h.parse(b); err != nil {
		return 0, err
	}
	return PortPairBacklogSize, nil
}

func (h *PortPairBacklog) parse(b []byte) error {
	be := binary.BigEndian
	if b[6] > 7 || b[7] != 0 {
		return ErrReserved
	}
	*h = PortPairBacklog{
		In: model.PortID(be.Uint16(b[2:])), Out: model.PortID(be.Uint16(b[4:])), Priority: model.Priority(b[6]),
		Packets: be.Uint32(b[8:]), Bytes: be.Uint64(b[12:]),
	}
	return nil
}

// FlowBacklog is the traffic of one flow queued at the snapshot in one queue. In
// is the ingress port of its last packet.
type FlowBacklog struct {
	PortPairBacklog
	Key model.FlowKey
}

// AppendTo appends the record; its kind follows the family of the key. The low
// three bits of Priority are written.
func (w FlowBacklog) AppendTo(b []byte) []byte {
	if w.Key.V6 {
		b = append(b, byte(KindFlowBacklog6), FlowBacklog6Size)
	} else {
		b = append(b, byte(KindFlowBacklog4), FlowBacklog4Size)
	}
	return w.Key.AppendTo(w.appendTo(b))
}

// Parse decodes the record at the start of b, of kind KindFlowBacklog4 or
// KindFlowBacklog6, and returns the bytes it used. It overwrites every field of w
// and keeps no reference to b.
func (w *FlowBacklog) Parse(b []byte) (int, error) {
	*w = FlowBacklog{}
	kind, n := KindFlowBacklog4, FlowBacklog4Size
	if len(b) > 0 && Kind(b[0]) == KindFlowBacklog6 {
		kind, n = KindFlowBacklog6, FlowBacklog6Size
	}
	if err := checkHead(b, kind); err != nil {
		return 0, err
	}
	if err := w.parse(b); err != nil {
		return 0, err
	}
	return n, w.Key.Parse(b[PortPairBacklogSize:n])
}
