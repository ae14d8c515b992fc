package incident

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Evidence is one finding of one source.
type Evidence struct {
	// At is when it was found, by the collector's clock. That is behind the switches' while its
	// host is overloaded: no evidence counts as found before what it shows.
	At   model.Time
	From model.Time // when the fault it shows started
	// Until is when what it shows was over, if its source dates that; 0: At. An account of
	// losses that is made at the end of a long flow may be of much earlier.
	Until model.Time
	// Interval is how far apart readings of counters were; 0: the source dates what it
	// shows. Nothing within an interval has an order, and the next evidence comes no
	// sooner than after one.
	Interval  time.Duration
	Source    anomaly.Source
	Cause     anomaly.Cause
	Confirmed bool // the source rules out harmless explanations
	Minor     bool // the fault is there but costs next to nothing

	// Location is where the fault is: a switch's port, or the switch alone
	// (port 0). A storm is located at the host.
	Location model.Port
	// NextHop is the node downstream of Location, if the source knows it: packets
	// may be lost in either, or on the link between them.
	NextHop    model.NodeID
	HasNextHop bool
	// Extent is every node that the fault affects: the nodes of a loop, those that
	// PFC spreads over.
	Extent        []model.NodeID
	Path          []model.Port // how PFC spread, from the victim on
	DeadlockCycle []model.Port // ports that wait for each other

	// Receiver is the host that all culprits send to, if HasReceiver. AtReceiver says
	// that Location is the port that it is attached to.
	Receiver    model.NodeID
	HasReceiver bool
	AtReceiver  bool

	Flows    []model.FlowKey // affected
	Culprits []model.FlowKey // that cause it
	Text     string          // a sentence
	// Scale orders sentences about one fault: the packets or flows that it affects.
	Scale uint64
	// LostPackets of SentPackets were lost, and are in no other evidence.
	LostPackets, SentPackets uint64
	Remedy                   string // what an operator tries first; empty: the cause's remedy
	Ref                      string // id of the diagnosis, trace or probe that shows it
}

// keepOrder makes At no earlier than From.
func (e *Evidence) keepOrder() { e.At = max(e.At, e.From) }

// isMinor reports whether evidence shows no more than normal background congestion.
func (e *Evidence) isMinor() bool { return e.Minor || e.Cause.Severity() == anomaly.Notice }

// anyNode reports whether f is true for a node of the evidence; it stops at the
// first one.
func (e *Evidence) anyNode(f func(model.NodeID) bool) bool {
	if f(e.Location.Node) || e.HasNextHop && f(e.NextHop) {
		return true
	}
	for _, n := range e.Extent {
		if f(n) {
			return true
		}
	}
	return false
}
