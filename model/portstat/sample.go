package portstat

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Sample is one packet of Rate that passed a switch, or one that it dropped.
type Sample struct {
	Node    model.NodeID
	In, Out model.PortID // 0: unknown; a dropped packet has often no Out
	At      model.Time   // when the switch, or else the collector, saw it
	Source  Source
	Has     SampleFields

	Flow     model.FlowKey
	Priority model.Priority // if HasPriority
	Bytes    uint32         // of the frame, as long as it was on the wire
	Rate     uint32         // one of Rate packets is sampled; 1 for drops that are not sampled
	Pool     uint64         // packets so far that came in by In and could have been sampled, if HasPool

	QueueDepth model.Bytes   // of the egress queue when the packet joined it, if HasQueueDepth
	Delay      time.Duration // from ingress to egress, if HasDelay

	Drop Reason // if HasDrop: the packet was dropped
}

// SampleFields is a set of what not every sample has.
type SampleFields uint8

// Fields of a sample.
const (
	HasPriority SampleFields = 1 << iota
	HasQueueDepth
	HasDelay
	HasDrop
	HasPool
)

// All reports whether all of want are present.
func (f SampleFields) All(want SampleFields) bool { return f&want == want }
