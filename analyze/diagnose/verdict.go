package diagnose

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Anomaly is what is wrong with the fabric.
type Anomaly uint8

// Anomalies. None says that nothing was found; the Confidence of such a
// verdict says whether there was enough to look at.
const (
	None         Anomaly = iota
	Contention           // flows share a queue, and nobody was paused
	Backpressure         // pauses spread from a queue that flows overfill
	Storm                // pauses spread from a host
	InLoop               // queues wait for each other in a circle, which flows began in one of them
	OutOfLoop            // as InLoop, begun by something outside the circle
)

var anomalyNames = [...]string{
	None: "none", Contention: "flow-contention", Backpressure: "pfc-backpressure", Storm: "pfc-storm",
	InLoop: "deadlock-in-loop", OutOfLoop: "deadlock-out-of-loop",
}

// String is the anomaly's name in reports.
func (a Anomaly) String() string { return anomalyNames[a] }

// MarshalText writes String's form.
func (a Anomaly) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads it.
func (a *Anomaly) UnmarshalText(b []byte) error { return byName(a, b, anomalyNames[:], "anomaly") }

// Cause is what began it.
type Cause uint8

// Causes.
const (
	NoCause Cause = iota
	Flows         // that together sent more than a link carries
	Host          // that sent pauses
)

var causeNames = [...]string{NoCause: "none", Flows: "flow-contention", Host: "host-pfc-injection"}

// String is the cause's name in reports.
func (c Cause) String() string { return causeNames[c] }

// MarshalText writes String's form.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads it.
func (c *Cause) UnmarshalText(b []byte) error { return byName(c, b, causeNames[:], "root cause") }

// Detail is how the cause came about.
type Detail uint8

// Details.
const (
	Unknown      Detail = iota
	MicroBurst          // short flows at line rate, at one time
	Periodic            // bursts that come again and again
	Imbalance           // of equal paths one carries far more than its share
	Priority            // a class that goes first leaves the others little
	SlowReceiver        // a host takes less than the wire brings
	NICStorm            // a host that pauses without end
)

var detailNames = [...]string{
	Unknown: "unknown", MicroBurst: "micro-burst", Periodic: "periodic-burst", Imbalance: "ecmp-imbalance",
	Priority: "priority", SlowReceiver: "slow-receiver", NICStorm: "nic-storm",
}

// String is the detail's name in reports.
func (d Detail) String() string { return detailNames[d] }

// MarshalText writes String's form.
func (d Detail) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it.
func (d *Detail) UnmarshalText(b []byte) error { return byName(d, b, detailNames[:], "detail") }

// Culprit is a flow and its part in the contention that began it all.
type Culprit struct {
	Flow   model.FlowKey
	Weight float64 // of the packets in the queue, 0 to 1
}

// RoutingFault is an entry of a switch that is not as intended and closes a
// circle of waiting.
type RoutingFault struct {
	Node    model.NodeID // the switch
	Dst     model.NodeID // the host whose packets it sends the wrong way
	NextHop model.NodeID // where to
}

// Times say where the time from complaint to verdict went.
type Times struct {
	Polling    time.Duration // until the last switch froze its state
	Collection time.Duration // from then until the last report had arrived
	Analysis   time.Duration // of graph and match; measured, so no two runs agree
}

// Total is their sum.
func (t Times) Total() time.Duration { return t.Polling + t.Collection + t.Analysis }

// Verdict is one anomaly behind one complaint. A complaint may have several.
type Verdict struct {
	Event  poll.Event
	Victim model.FlowKey

	Anomaly Anomaly
	Cause   Cause
	Detail  Detail

	// Initial is the port whose queue the waiting ends at: the overfull one, or
	// the one that a host pauses. The zero port where there is none.
	Initial  model.Port
	Culprits []Culprit // heaviest first; none where a host is the cause: it is at the other end of Initial

	// Path is how pauses spread, from a queue that held the victim up to
	// Initial: a port each, which waited for the next.
	Path      []model.Port
	Loop      []model.Port    // ports that wait for each other in a circle
	Spreaders []model.FlowKey // that were paused at two ports of the path in a row
	Victims   []model.FlowKey // all flows that were paused by it
	Closed    model.Time      // when that circle closed, as far as is told
	// Standing is set once a second look found the loop unmoved.
	Standing bool
	Fault    *RoutingFault

	Confidence float64  // 0 to 1
	Evidence   []string // what it rests on, and what is missing
	Open       bool     // an answer that it needed is missing
	Remedy     string   // what an operator would try

	// At is the time of the newest snapshot, and Burst how long the link of
	// Initial takes for what the culprits sent in the epochs told.
	At    model.Time
	Burst time.Duration

	Switches  int         // that answered
	Telemetry model.Bytes // of their reports
	Times     Times
}
