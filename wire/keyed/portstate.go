package keyed

import (
	"encoding/binary"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// PortStateSize is the length of an encoded PortState: with the checksum of a
// Key-Write slot it fills 56 bytes.
const PortStateSize = 52

// PortState is the state of a port's egress side at an instant. Counts are since the
// switch started, load and share over the time since the state before.
type PortState struct {
	Time        model.Time    // by the switch's clock
	Queue       model.Bytes   // in all queues of the port; at most 4 GiB
	MaxQueue    model.Bytes   // of the fullest queue
	Bytes       uint64        // sent
	Discards    uint64        // packets that found no buffer
	PausedTime  time.Duration // of the priority that was paused for longest
	Load        model.Rate    // sent
	PausedShare uint16        // of the time, in parts of 65535, of the priority that was paused for longest
	PausedClass uint8         // priorities that are paused at this instant, one bit each
}

// AppendTo appends the encoded state. Queues beyond 4 GiB are capped.
func (s PortState) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.Time))
	b = binary.BigEndian.AppendUint64(b, s.Bytes)
	b = binary.BigEndian.AppendUint64(b, s.Discards)
	b = binary.BigEndian.AppendUint64(b, uint64(s.PausedTime))
	b = binary.BigEndian.AppendUint32(b, uint32(min(s.Queue, 1<<32-1)))
	b = binary.BigEndian.AppendUint32(b, uint32(min(s.MaxQueue, 1<<32-1)))
	b = binary.BigEndian.AppendUint64(b, uint64(max(s.Load, 0)))
	b = append(b, s.PausedClass, 0)
	return binary.BigEndian.AppendUint16(b, s.PausedShare)
}

// Parse decodes a whole value.
func (s *PortState) Parse(b []byte) error {
	*s = PortState{}
	if len(b) != PortStateSize {
		return ErrShort
	}
	if b[49] != 0 || b[0]|b[24]|b[40] >= 1<<7 {
		return ErrZero // times and rates are not negative
	}
	*s = PortState{
		Time: model.Time(binary.BigEndian.Uint64(b)), Bytes: binary.BigEndian.Uint64(b[8:]),
		Discards: binary.BigEndian.Uint64(b[16:]), PausedTime: time.Duration(binary.BigEndian.Uint64(b[24:])),
		Queue:    model.Bytes(binary.BigEndian.Uint32(b[32:])),
		MaxQueue: model.Bytes(binary.BigEndian.Uint32(b[36:])), Load: model.Rate(binary.BigEndian.Uint64(b[40:])),
		PausedClass: b[48], PausedShare: binary.BigEndian.Uint16(b[50:]),
	}
	return nil
}
