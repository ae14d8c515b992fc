package portstat

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// NumClasses is how many 802.1p classes a port has.
const NumClasses = 8

// Reading is what one port counted from From to To: differences of counters,
// maxima of watermarks, the newest of states. Both instants are the switch's own
// clock.
type Reading struct {
	Port     model.Port
	From, To model.Time
	Source   Source
	Counters
}

// Interval returns how long the reading counted.
func (r *Reading) Interval() time.Duration { return r.To.Sub(r.From) }

// Source is the protocol that a record came by.
type Source uint8

// Sources.
const (
	UnknownSource Source = iota
	SFlow
	GNMI
	OTLP
	IPFIX
	Simulated // by the simulator, in process
	numSources
)

// String returns the source's name.
func (s Source) String() string {
	names := [numSources]string{"unknown", "sFlow", "gNMI", "OTLP", "IPFIX", "simulated"}
	if s >= numSources {
		s = UnknownSource
	}
	return names[s]
}

// Counters are those of one port: of an interval in a Reading, or totals since
// the switch started. SAI's names are in brackets.
type Counters struct {
	Has Fields

	RxBytes, TxBytes       uint64 // [IF_IN_OCTETS, IF_OUT_OCTETS]
	RxPackets, TxPackets   uint64 // all casts, without pause frames
	RxDiscards, TxDiscards uint64 // [IF_IN_DISCARDS, IF_OUT_DISCARDS]
	RxErrors, TxErrors     uint64 // [IF_IN_ERRORS, IF_OUT_ERRORS]; RxErrors contains FCSErrors
	FCSErrors              uint64 // frames with a wrong CRC [ETHER_STATS_CRC_ALIGN_ERRORS]
	FECCorrected           uint64 // code words that FEC repaired [IF_IN_FEC_CORRECTABLE_FRAMES]
	FECUncorrectable       uint64 // code words that FEC could not repair [IF_IN_FEC_NOT_CORRECTABLE_FRAMES]

	// Drops are the discards whose reason is known; those of DropReasons present
	// count, others are unknown.
	Drops       [NumReasons]uint64
	DropReasons ReasonSet

	Class [NumClasses]ClassCounters
}

// ClassCounters are the counters of one 802.1p class of a port. "Rx" of pauses is
// the direction of the frame: a pause that the port received stops its sending.
type ClassCounters struct {
	Has ClassFields

	RxPauses, TxPauses uint64        // PFC frames, resumes included [PFC_n_RX_PKTS, PFC_n_TX_PKTS]
	RxTransitions      uint64        // from sending to paused [PFC_n_ON2OFF_RX_PKTS]
	RxPaused, TxPaused time.Duration // time that this end, or its neighbour, had to be silent [PFC_n_RX_PAUSE_DURATION_US]

	TxBytes   uint64 // that left the egress queue [QUEUE_STAT_BYTES]
	Dropped   uint64 // packets that the egress queue dropped [QUEUE_STAT_DROPPED_PACKETS]
	ECNMarked uint64 // packets [QUEUE_STAT_WRED_ECN_MARKED_PACKETS]

	QueueWatermark    model.Bytes // longest egress queue [QUEUE_STAT_SHARED_WATERMARK_BYTES]
	PGWatermark       model.Bytes // most that an ingress priority group held [INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES]
	HeadroomWatermark model.Bytes // most of its headroom [..._XOFF_ROOM_WATERMARK_BYTES]

	Watchdog Watchdog // newest state of the PFC watchdog
	Storms   uint64   // that the PFC watchdog detected [PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED]
}

// Watchdog is the state of a queue's PFC watchdog.
type Watchdog uint8

// States.
const (
	Operational Watchdog = iota // no storm
	Stormed                     // paused for longer than the detection time
)

// Fields is a set of the fields of Counters.
type Fields uint32

// Fields. Bytes, packets, discards and errors are pairs: received and sent.
const (
	HasBytes Fields = 1 << iota
	HasPackets
	HasDiscards
	HasErrors
	HasFCSErrors
	HasFECCorrected
	HasFECUncorrectable
)

// All reports whether all of want are present.
func (f Fields) All(want Fields) bool { return f&want == want }

// ClassFields is a set of the fields of ClassCounters.
type ClassFields uint32

// Fields of a class.
const (
	HasRxPauses ClassFields = 1 << iota
	HasTxPauses
	HasRxTransitions
	HasRxPaused
	HasTxPaused
	HasClassBytes
	HasDropped
	HasECNMarked
	HasQueueWatermark
	HasPGWatermark
	HasHeadroomWatermark
	HasWatchdog // state and count of storms
)

// All reports whether all of want are present.
func (f ClassFields) All(want ClassFields) bool { return f&want == want }
