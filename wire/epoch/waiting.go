package epoch

import (
	"encoding/binary"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Pause is the history of pauses of one class of one egress port. There is one
// for every queue that was ever paused. Pauses come in fits: each at most Calm
// after the one before.
type Pause struct {
	Port     model.PortID
	Priority model.Priority // 0 to 7
	Began    model.Time     // the present pause, or the last one
	Ended    model.Time     // the last one that is over; 0 if none is
	First    model.Time     // when the first of the fit began
	Behind   uint64         // bytes that waited at First: deep if the queue was overfull by itself
	Pauses   uint64         // how often it was paused, since the switch started; frames that only prolong a pause do not count
	Time     time.Duration  // it spent paused, since the switch started
}

// Calm is how long a queue must be without pauses to have come to rest.
const Calm = 100 * time.Microsecond

// IsZero tells whether the record says nothing.
func (p Pause) IsZero() bool { return p.Pauses == 0 }

// AppendTo appends the record. The low three bits of Priority are written.
func (p Pause) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindPause), PauseSize)
	b = be.AppendUint16(b, uint16(p.Port))
	b = append(b, byte(p.Priority&7), 0)
	b = be.AppendUint64(b, uint64(p.Began))
	b = be.AppendUint64(b, uint64(p.Ended))
	b = be.AppendUint64(b, uint64(p.First))
	b = be.AppendUint64(b, p.Behind)
	b = be.AppendUint64(b, p.Pauses)
	return be.AppendUint64(b, uint64(p.Time))
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of p and keeps no reference to b.
func (p *Pause) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*p = Pause{}
	if err := open(b, KindPause); err != nil {
		return 0, err
	}
	if b[4] > 7 || b[5] != 0 {
		return 0, ErrReserved
	}
	*p = Pause{
		Port:     model.PortID(be.Uint16(b[2:])),
		Priority: model.Priority(b[4]),
		Began:    model.Time(be.Uint64(b[6:])),
		Ended:    model.Time(be.Uint64(b[14:])),
		First:    model.Time(be.Uint64(b[22:])),
		Behind:   be.Uint64(b[30:]),
		Pauses:   be.Uint64(b[38:]),
		Time:     time.Duration(be.Uint64(b[46:])),
	}
	return PauseSize, nil
}

// Held is what waits at the snapshot in one class of one egress port and came
// in by one port: what makes the switch pause that port.
type Held struct {
	In, Out  model.PortID
	Priority model.Priority // 0 to 7
	Packets  uint32
	Bytes    uint64 // of Packets: Ethernet header to payload, no FCS
}

// IsZero tells whether the record says nothing.
func (h Held) IsZero() bool { return h.Packets == 0 }

// AppendTo appends the record. The low three bits of Priority are written.
func (h Held) AppendTo(b []byte) []byte {
	return h.appendTo(append(b, byte(KindHeld), HeldSize))
}

func (h Held) appendTo(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, uint16(h.In))
	b = be.AppendUint16(b, uint16(h.Out))
	b = append(b, byte(h.Priority&7), 0)
	b = be.AppendUint32(b, h.Packets)
	return be.AppendUint64(b, h.Bytes)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of h and keeps no reference to b.
func (h *Held) Parse(b []byte) (int, error) {
	*h = Held{}
	if err := open(b, KindHeld); err != nil {
		return 0, err
	}
	if err := h.parse(b); err != nil {
		return 0, err
	}
	return HeldSize, nil
}

func (h *Held) parse(b []byte) error {
	be := binary.BigEndian
	if b[6] > 7 || b[7] != 0 {
		return ErrReserved
	}
	*h = Held{
		In: model.PortID(be.Uint16(b[2:])), Out: model.PortID(be.Uint16(b[4:])), Priority: model.Priority(b[6]),
		Packets: be.Uint32(b[8:]), Bytes: be.Uint64(b[12:]),
	}
	return nil
}

// Waiting is what waits of one flow at the snapshot, in one queue. In is where
// its last packet came in.
type Waiting struct {
	Held
	Key model.FlowKey
}

// AppendTo appends the record; its kind follows the family of the key. The low
// three bits of Priority are written.
func (w Waiting) AppendTo(b []byte) []byte {
	if w.Key.V6 {
		b = append(b, byte(KindWaiting6), Waiting6Size)
	} else {
		b = append(b, byte(KindWaiting4), Waiting4Size)
	}
	return w.Key.AppendTo(w.appendTo(b))
}

// Parse decodes the record at the start of b, of kind KindWaiting4 or
// KindWaiting6, and returns the bytes it used. It overwrites every field of w
// and keeps no reference to b.
func (w *Waiting) Parse(b []byte) (int, error) {
	*w = Waiting{}
	kind, n := KindWaiting4, Waiting4Size
	if len(b) > 0 && Kind(b[0]) == KindWaiting6 {
		kind, n = KindWaiting6, Waiting6Size
	}
	if err := open(b, kind); err != nil {
		return 0, err
	}
	if err := w.parse(b); err != nil {
		return 0, err
	}
	return n, w.Key.Parse(b[HeldSize:n])
}
