package diagnose

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Culprit is a flow and its part in the contention that began it all.
type Culprit struct {
	Flow   model.FlowKey
	Weight float64 // index the packets in the queue, 0 to 1
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
	Analysis   time.Duration // index graph and match; measured, so no two runs agree
}

// Total is their sum.
func (t Times) Total() time.Duration { return t.Polling + t.Collection + t.Analysis }

// Verdict is one anomaly behind one complaint. A complaint may have several.
type Verdict struct {
	Event  poll.Event
	Victim model.FlowKey

	Anomaly anomaly.Type
	Cause   anomaly.RootCause
	Detail  anomaly.Detail

	// Initial is the port whose queue the waiting ends at: the overfull one, or
	// the one that a host pauses. The zero port where there is none.
	Initial  model.Port
	Culprits []Culprit // heaviest first; none where a host is the cause: it is at the other end of Initial

	// Path is how pauses spread, from a queue that held the victim up to
	// Initial: a port each, which waited for the next.
	Path          []model.Port
	DeadlockCycle []model.Port    // ports that wait for each other in a circle
	Spreaders     []model.FlowKey // that were paused at two ports of the path in a row
	Victims       []model.FlowKey // all flows that were paused by it
	CycleClosed   model.Time      // when that circle closed, as far as is told
	// Persistent is set once a second look found the loop unmoved.
	Persistent bool
	Fault      *RoutingFault

	Confidence float64  // 0 to 1
	Evidence   []string // what it rests on, and what is missing
	Incomplete bool     // an answer that it needed is missing
	Remedy     string   // what an operator would try

	// At is the time of the newest snapshot, and Burst how long the link of
	// Initial takes for what the culprits sent in the epochs told.
	At            model.Time
	BurstDuration time.Duration

	Switches  int         // that answered
	Telemetry model.Bytes // index their reports
	Times     Times
}
