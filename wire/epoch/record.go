package epoch

import (
	"encoding/binary"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Kind is the type of a record. Every record opens with its kind and its whole
// length in bytes, so a reader skips unknown kinds.
type Kind uint8

// The kinds of version 1.
const (
	KindPort              Kind = 1  // Port
	KindPortEpoch         Kind = 2  // PortEpoch
	KindFlow4             Kind = 3  // Flow with an IPv4 key
	KindFlow6             Kind = 4  // Flow with an IPv6 key
	KindMeter             Kind = 5  // Meter
	KindPause             Kind = 6  // Pause
	KindFlowBacklog4      Kind = 7  // FlowBacklog with an IPv4 key
	KindFlowBacklog6      Kind = 8  // FlowBacklog with an IPv6 key
	KindPortPairBacklog   Kind = 9  // PortPairBacklog
	KindCongestionEpisode Kind = 10 // CongestionEpisode
	KindPollRef           Kind = 11 // PollRef

	KindPauseIntervals      Kind = 12 // Intervals of pauses
	KindCongestionIntervals Kind = 13 // Intervals of congestion
	KindSettings            Kind = 14 // Settings
	KindBacklogHistory      Kind = 15 // BacklogHistory
)

// Lengths of the records.
const (
	recordHead            = 2
	PortSize              = 38
	PortEpochSize         = 38
	flowSize              = 52 // without the key
	Flow4Size             = flowSize + model.KeyLen4
	Flow6Size             = flowSize + model.KeyLen6
	MeterSize             = 24
	PauseSize             = 54
	PortPairBacklogSize   = 20
	CongestionEpisodeSize = 30
	PollRefSize           = recordHead + 8
	SettingsSize          = recordHead + 6*4 + 2
	FlowBacklog4Size      = PortPairBacklogSize + model.KeyLen4
	FlowBacklog6Size      = PortPairBacklogSize + model.KeyLen6
	maxRecord             = Flow6Size // of fixed length; see MaxIntervalsSize
)

// sizes holds the length of each known kind that is fixed.
var sizes = [...]uint8{
	KindPort: PortSize, KindPortEpoch: PortEpochSize,
	KindFlow4: Flow4Size, KindFlow6: Flow6Size, KindMeter: MeterSize,
	KindPause: PauseSize, KindFlowBacklog4: FlowBacklog4Size, KindFlowBacklog6: FlowBacklog6Size,
	KindPortPairBacklog:   PortPairBacklogSize,
	KindCongestionEpisode: CongestionEpisodeSize, KindPollRef: PollRefSize,
	KindSettings: SettingsSize,
}

// isLength reports whether a record of a kind may have a length.
func isLength(k Kind, n uint8) bool {
	switch k {
	case KindPauseIntervals, KindCongestionIntervals:
		return isIntervalsSize(int(n))
	case KindBacklogHistory:
		return isBacklogHistorySize(int(n))
	}
	return int(k) >= len(sizes) || sizes[k] == n
}

// recordLen returns the length of the record at the start of b.
func recordLen(b []byte) (int, error) {
	if len(b) < recordHead {
		return 0, ErrShort
	}
	n := b[1]
	if n < recordHead || !isLength(Kind(b[0]), n) {
		return 0, ErrRecord
	}
	if len(b) < int(n) {
		return 0, ErrShort
	}
	return int(n), nil
}

// checkHead checks that a record of kind k starts b.
func checkHead(b []byte, k Kind) error {
	if len(b) > 0 && Kind(b[0]) != k {
		return ErrRecord
	}
	_, err := recordLen(b)
	return err
}

// Port is the state of one priority of one egress port at the snapshot. The
// counters start with the switch: two snapshots distinguish a stalled queue from
// one that transmits.
type Port struct {
	Port        model.PortID
	Priority    model.Priority // 0 to 7
	Paused      bool           // by the neighbour, at this instant
	Remaining   time.Duration  // of the pause, if no frame changes it
	PauseFrames uint64         // received that paused this class
	Queued      uint64         // bytes in the queue
	Sent        uint64         // packets that left this queue
}

// IsZero reports whether the record carries no information.
func (p Port) IsZero() bool {
	return !p.Paused && p.Remaining == 0 && p.PauseFrames == 0 && p.Queued == 0 && p.Sent == 0
}

// AppendTo appends the record. The low three bits of Priority are written.
func (p Port) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindPort), PortSize)
	b = be.AppendUint16(b, uint16(p.Port))
	b = append(b, byte(p.Priority&7), boolByte(p.Paused))
	b = be.AppendUint64(b, uint64(p.Remaining))
	b = be.AppendUint64(b, p.PauseFrames)
	b = be.AppendUint64(b, p.Queued)
	return be.AppendUint64(b, p.Sent)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of p and keeps no reference to b.
func (p *Port) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*p = Port{}
	if err := checkHead(b, KindPort); err != nil {
		return 0, err
	}
	if b[4] > 7 || b[5] > 1 {
		return 0, ErrReserved
	}
	*p = Port{
		Port:        model.PortID(be.Uint16(b[2:])),
		Priority:    model.Priority(b[4]),
		Paused:      b[5] == 1,
		Remaining:   time.Duration(be.Uint64(b[6:])),
		PauseFrames: be.Uint64(b[14:]),
		Queued:      be.Uint64(b[22:]),
		Sent:        be.Uint64(b[30:]),
	}
	return PortSize, nil
}

// PortEpoch is the counters of one priority of one egress port in one epoch.
//
// A packet counts in the epoch in which it is enqueued, and as paused if the
// queue is paused at that instant. Its depth is the number of packets queued
// before it. The mean depth of all packets is (Depth + PausedDepth) / Packets,
// that of contention alone Depth / (Packets − Paused).
type PortEpoch struct {
	Epoch       uint32 // see Header.Start
	Port        model.PortID
	Priority    model.Priority // 0 to 7
	Packets     uint32
	Paused      uint32 // of Packets
	PauseFrames uint32 // received in this epoch that paused this class
	Depth       uint64 // packets; summed over the packets not paused
	PausedDepth uint64 // packets; summed over the paused ones
}

// IsZero reports whether the record carries no information.
func (p PortEpoch) IsZero() bool {
	return p.Packets == 0 && p.Paused == 0 && p.PauseFrames == 0 && p.Depth == 0 && p.PausedDepth == 0
}

// AppendTo appends the record. The low three bits of Priority are written.
func (p PortEpoch) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, byte(KindPortEpoch), PortEpochSize)
	b = be.AppendUint32(b, p.Epoch)
	b = be.AppendUint16(b, uint16(p.Port))
	b = append(b, byte(p.Priority&7), 0)
	b = be.AppendUint32(b, p.Packets)
	b = be.AppendUint32(b, p.Paused)
	b = be.AppendUint32(b, p.PauseFrames)
	b = be.AppendUint64(b, p.Depth)
	return be.AppendUint64(b, p.PausedDepth)
}

// Parse decodes the record at the start of b and returns the bytes it used. It
// overwrites every field of p and keeps no reference to b.
func (p *PortEpoch) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*p = PortEpoch{}
	if err := checkHead(b, KindPortEpoch); err != nil {
		return 0, err
	}
	if b[8] > 7 || b[9] != 0 {
		return 0, ErrReserved
	}
	*p = PortEpoch{
		Epoch:       be.Uint32(b[2:]),
		Port:        model.PortID(be.Uint16(b[6:])),
		Priority:    model.Priority(b[8]),
		Packets:     be.Uint32(b[10:]),
		Paused:      be.Uint32(b[14:]),
		PauseFrames: be.Uint32(b[18:]),
		Depth:       be.Uint64(b[22:]),
		PausedDepth: be.Uint64(b[30:]),
	}
	return PortEpochSize, nil
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
