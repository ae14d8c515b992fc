package epoch

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Wave is the last time that one class of one egress port was deep by itself:
// packets that joined it while it was not paused found much in it. Waves are
// told apart by the queue being empty between them. Epochs may be long beside
// what a packet waits; this says whether it was then.
type Wave struct {
	Port     model.PortID
	Priority model.Priority // 0 to 7
	From, To model.Time     // the first such packet, and the last
	Most     uint64         // bytes that one of them found, at most
}

// IsZero tells whether the record says nothing.
func (w Wave) IsZero() bool { return w.Most == 0 }

// AppendTo appends the record. The low three bits of Priority are written.
func (w Wave) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindWave), WaveSize)
	b = be.AppendUint16(b, uint16(w.Port))
	b = append(b, byte(w.Priority&7), 0)
	b = be.AppendUint64(b, uint64(w.From))
	b = be.AppendUint64(b, uint64(w.To))
	return be.AppendUint64(b, w.Most)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of w and keeps no reference to b.
func (w *Wave) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*w = Wave{}
	if err := open(b, KindWave); err != nil {
		return 0, err
	}
	if b[4] > 7 || b[5] != 0 {
		return 0, ErrReserved
	}
	*w = Wave{
		Port:     model.PortID(be.Uint16(b[2:])),
		Priority: model.Priority(b[4]),
		From:     model.Time(be.Uint64(b[6:])),
		To:       model.Time(be.Uint64(b[14:])),
		Most:     be.Uint64(b[22:]),
	}
	return WaveSize, nil
}
