package diagnose

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Culprit is a flow and its share in the contention at the initial port.
type Culprit struct {
	Flow   model.FlowKey
	Weight float64 // share of the packets in the queue, 0 to 1
}

// RoutingFault is a route of a switch that closes a cyclic buffer dependency
// and deviates from the intended routes.
type RoutingFault struct {
	Node    model.NodeID // the switch
	Dst     model.NodeID // the host whose packets it misroutes
	NextHop model.NodeID // where it sends them
}

// Times split the time from detection to verdict.
type Times struct {
	Polling    time.Duration // until the last switch took its snapshot
	Collection time.Duration // from then until the last report arrived
	Analysis   time.Duration // graph and diagnosis; measured, so it differs from run to run
}

// Total returns the sum of the times.
func (t Times) Total() time.Duration { return t.Polling + t.Collection + t.Analysis }

// Verdict is one anomaly found for one detection. A detection may have several.
type Verdict struct {
	Event  poll.Event
	Victim model.FlowKey

	Anomaly anomaly.Type
	Cause   anomaly.RootCause
	Detail  anomaly.Detail

	// Initial is the port whose queue the wait-for path ends at: the congested
	// one, or the one that a host pauses. It is the zero port if there is none.
	Initial  model.Port
	Culprits []Culprit // heaviest first; none if a host is the cause: it is at the other end of Initial

	// Path is how PFC spread, from a queue that delayed the victim to Initial:
	// each port waited for the next.
	Path          []model.Port
	DeadlockCycle []model.Port    // ports that wait for each other
	Spreaders     []model.FlowKey // flows that were paused at two consecutive ports of the path
	Victims       []model.FlowKey // all flows that it paused
	CycleClosed   model.Time      // when the deadlock cycle closed, as far as was reported
	// Persistent is set once a second snapshot showed the cycle without progress.
	Persistent bool
	Fault      *RoutingFault

	// Account says how long the late packet waited for which cause, and Timeline what
	// that rests on; nil if the host measured no packet.
	Account  *attribution.Account
	Timeline attribution.Timeline

	// Share is the part of the lateness that is due to it, and Confidence the part
	// that is explained at all: 0 to 1.
	Share, Confidence float64

	Evidence   []string // what supports it, and what is missing
	Incomplete bool     // a report that it needed is missing
	Remedy     string   // what an operator tries first

	// At is the time of the newest snapshot, and Reach how far back the reports go.
	// BurstDuration is how long the link of Initial takes for what the culprits sent
	// in the reported epochs.
	At            model.Time
	Reach         time.Duration
	BurstDuration time.Duration

	Switches  int         // that reported
	Telemetry model.Bytes // size of their reports
	Times     Times
}
