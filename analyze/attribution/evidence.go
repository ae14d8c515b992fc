package attribution

import (
	"cmp"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Queue names one class of one egress port, of a switch or of a host.
type Queue struct {
	Port  model.Port
	Class model.Priority
}

// Compare orders queues by port, then class.
func (q Queue) Compare(o Queue) int {
	return cmp.Or(q.Port.Compare(o.Port), cmp.Compare(q.Class, o.Class))
}

// Evidence is what was reported of a fabric around the time of a late packet,
// on one time axis.
type Evidence struct {
	MTU     model.Bytes
	Devices []Device      // switches, and hosts whose NIC queues are known; ascending by Node
	Queues  []QueueRecord // in any order; a Feed and a Victim refer to them by index
	// Load completes a queue with its Feeds, Flows and Curve when an account asks for
	// it, once or again: most accounts ask for few queues. Nil: they are there.
	Load func(queue int)
}

// Device says what is known of the report of a switch or host.
type Device struct {
	Node     model.NodeID
	Reported bool
	Complete bool // all parts of the report arrived
	// Snapshot is when the report was taken: open intervals lasted until then.
	Snapshot model.Time
	// ClockError is how far the device's times may be off, in either direction.
	ClockError time.Duration
}

// QueueRecord is what a device reported of one queue. Lists of intervals are
// ascending and disjoint.
type QueueRecord struct {
	Queue      Queue
	Peer       model.Port // at the other end of the link
	PeerIsHost bool
	Rate       model.Rate
	Delay      time.Duration // of the link
	// Threshold is the backlog from which on the queue counts as congested.
	Threshold model.Bytes

	Pauses      []Pause
	Congestions []Congestion
	Depths      []Depth // known backlogs, as at the snapshot; ascending
	// Curve is the backlog over time, where it was recorded: from the first point
	// on it changed evenly between points, up to CurveError. Points may share an
	// instant.
	Curve      []Depth
	CurveError model.Bytes
	// Since is from when on no interval is lost; 0: from the beginning.
	Since model.Time

	Feeds []Feed
	Flows []FlowShare
}

// Pause is an interval in which PFC paused a queue.
type Pause struct {
	From, To model.Time
	Open     bool        // until the snapshot; To is not read
	Bytes    model.Bytes // queued when it began
	// Coverage is the paused share of the interval where it sums up several
	// pauses; 0 counts as 1.
	Coverage float64
}

// Congestion is an interval in which packets found at least the threshold
// queued.
type Congestion struct {
	From, To model.Time
	Open     bool
	Peak     model.Bytes
	Coverage float64 // as for Pause
}

// Depth is the backlog at an instant.
type Depth struct {
	At    model.Time
	Bytes model.Bytes
}

// Feed says what a queue of the next switch had of a queue's packets in a span
// of time.
type Feed struct {
	To          int // in Evidence.Queues
	From, Until model.Time
	Bytes       model.Bytes
	// Held: the queue held these bytes in all of the span. Else that many came
	// to it in the span.
	Held bool
	// Curve is what the queue held over time, as QueueRecord.Curve; From, Until
	// and Bytes are then those of all of it.
	Curve []Depth
}

// FlowShare says what a queue held of a flow in a span of time.
type FlowShare struct {
	Flow        model.FlowKey
	From, Until model.Time
	Bytes       model.Bytes // on average over the span
}

// Victim is the late packet.
type Victim struct {
	Flow model.FlowKey
	// Path lists the queues of the packet, Reverse those of its
	// acknowledgement, if known: indexes in Evidence.Queues, or -1 for a queue
	// that no record describes.
	Path, Reverse []int
	Size, AckSize model.Bytes // 0: the MTU; the least that the link counts
	Sent          model.Time
	ClockError    time.Duration // of Sent
	// Took is the round-trip time, or the packet's age if it is InFlight.
	Took time.Duration
	// Base is the round-trip time without any wait. Of a packet in flight it bounds
	// the time on the wire, once it has passed all known queues.
	Base     time.Duration
	InFlight bool
	// QueuedAt is the position in Path, then Reverse, of the last queue that holds
	// packets of the flow, if the packet is in flight. It holds this one, unless an
	// earlier queue cannot have sent it yet, or its own Curve says that it has.
	// -1: unknown.
	QueuedAt int
	// AckQueuedAt is the same of its acknowledgement: the position in Reverse.
	AckQueuedAt int
}

// OneWay returns the packet without its acknowledgement.
func (v Victim) OneWay() *Victim {
	v.Reverse = nil
	return &v
}

// Acknowledged returns the packet as one that arrived: if it seems to be in flight, its
// acknowledgement is.
func (v Victim) Acknowledged() *Victim {
	v.QueuedAt = -1
	if v.AckQueuedAt >= 0 {
		v.QueuedAt = len(v.Path) + v.AckQueuedAt
	}
	return &v
}
