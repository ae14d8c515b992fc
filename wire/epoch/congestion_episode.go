package epoch

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// CongestionEpisode is the last time that one priority of one egress port was
// congested by its own traffic: packets that were enqueued while it was not
// paused found at least the switch's threshold of bytes in it. An episode ends
// when the queue is empty. Epochs may be much longer than a packet's queueing
// delay; the episode says when within them the queue was congested.
type CongestionEpisode struct {
	Port        model.PortID
	Priority    model.Priority // 0 to 7
	First, Last model.Time     // when the first and the last such packet was enqueued
	MaxBytes    uint64         // largest queue length that one of them found, in bytes
}

// IsZero reports whether the record carries no information.
func (w CongestionEpisode) IsZero() bool { return w.MaxBytes == 0 }

// AppendTo appends the record. The low three bits of Priority are written.
func (w CongestionEpisode) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindCongestionEpisode), CongestionEpisodeSize)
	b = be.AppendUint16(b, uint16(w.Port))
	b = append(b, byte(w.Priority&7), 0)
	b = be.AppendUint64(b, uint64(w.First))
	b = be.AppendUint64(b, uint64(w.Last))
	return be.AppendUint64(b, w.MaxBytes)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of w and keeps no reference to b.
func (w *CongestionEpisode) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*w = CongestionEpisode{}
	if err := checkHead(b, KindCongestionEpisode); err != nil {
		return 0, err
	}
	if b[4] > 7 || b[5] != 0 {
		return 0, ErrReserved
	}
	*w = CongestionEpisode{
		Port:     model.PortID(be.Uint16(b[2:])),
		Priority: model.Priority(b[4]),
		First:    model.Time(be.Uint64(b[6:])),
		Last:     model.Time(be.Uint64(b[14:])),
		MaxBytes: be.Uint64(b[22:]),
	}
	return CongestionEpisodeSize, nil
}
