package epoch

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Settings are the thresholds and limits of a switch that its other records
// depend on. There is one record in a report, the first.
type Settings struct {
	CongestionThreshold time.Duration // queue length that is congestion, as the time that the link takes to send it
	PauseBurstGap       time.Duration // longest gap between two pauses of one burst
	// IntervalMemory is for how long after its last pause or congestion a queue
	// has Intervals in reports.
	IntervalMemory time.Duration
	MTU            model.Bytes // longest IP packet; 0: unknown
	// Xoff and Xon are the lengths of an ingress queue (port and priority) from
	// which the switch pauses a neighbour, and lets it resume; 0: they are dynamic
	// or unknown.
	Xoff, Xon           model.Bytes
	PauseIntervals      uint8 // kept one by one, per queue; 0: none
	CongestionIntervals uint8
}

// IsZero reports whether the record carries no information.
func (s Settings) IsZero() bool { return s == Settings{} }

// AppendTo appends the record. Values saturate at 32 bits.
func (s Settings) AppendTo(b []byte) []byte {
	b = append(b, byte(KindSettings), SettingsSize)
	for _, v := range [...]int64{
		int64(s.CongestionThreshold), int64(s.PauseBurstGap), int64(s.IntervalMemory), int64(s.MTU), int64(s.Xoff), int64(s.Xon),
	} {
		b = binary.BigEndian.AppendUint32(b, uint32(min(max(v, 0), math.MaxUint32)))
	}
	return append(b, s.PauseIntervals, s.CongestionIntervals)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of s and keeps no reference to b.
func (s *Settings) Parse(b []byte) (int, error) {
	*s = Settings{}
	if err := checkHead(b, KindSettings); err != nil {
		return 0, err
	}
	be := binary.BigEndian
	*s = Settings{
		CongestionThreshold: time.Duration(be.Uint32(b[2:])),
		PauseBurstGap:       time.Duration(be.Uint32(b[6:])),
		IntervalMemory:      time.Duration(be.Uint32(b[10:])),
		MTU:                 model.Bytes(be.Uint32(b[14:])),
		Xoff:                model.Bytes(be.Uint32(b[18:])),
		Xon:                 model.Bytes(be.Uint32(b[22:])),
		PauseIntervals:      b[26],
		CongestionIntervals: b[27],
	}
	return SettingsSize, nil
}
