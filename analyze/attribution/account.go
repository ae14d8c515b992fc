package attribution

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Kind is what a packet waited for in the end.
type Kind uint8

// Values of Kind.
const (
	Unexplained   Kind = iota
	Contention         // flows that together send more than the link carries
	HostInjection      // a host that sends pause frames
	Deadlock           // queues that wait for each other
)

// String returns "contention", "host injection", "deadlock" or "unexplained".
func (k Kind) String() string {
	return [...]string{"unexplained", "contention", "host injection", "deadlock"}[min(k, Deadlock)]
}

// Reason is why a part of the lateness is unexplained.
type Reason uint8

// Values of Reason.
const (
	NoWait       Reason = iota // no queue of the path is known to have delayed the packet that long
	NoReport                   // the device of the place sent no report
	NoPeerReport               // the switch that paused the place sent no report
	NoBacklog                  // the reports show no backlog that would explain it
	TooEarly                   // the intervals of that time are lost
	TooLate                    // the snapshot was taken before
	NotFollowed                // too small a part, or too many of them
)

// String returns the reason in words.
func (r Reason) String() string {
	return [...]string{
		"no wait is known", "no report", "no report from the next switch", "no backlog is known", "intervals of that time are lost",
		"the snapshot was taken before", "parts too small to be followed",
	}[min(r, NotFollowed)]
}

// Place is a queue and the other end of its link.
type Place struct {
	Queue
	Peer       model.Port
	PeerIsHost bool
}

// Account says what a late packet waited for.
type Account struct {
	Flow     model.FlowKey
	Late     time.Duration
	InFlight bool
	// Terms sum to Late: one for each place and kind, the longest first.
	Terms     []Term
	Deadlocks []DeadlockCycle
	Stays     []Stay // the packet's stays in the queues of its path, in order
	// Since is when the first of the causes began, as far as it counts; at the
	// latest when the packet was sent.
	Since model.Time
}

// Term is a part of the lateness with one cause.
type Term struct {
	Kind   Kind
	Reason Reason // if Unexplained
	Place  *Place // nil: unknown
	Time   time.Duration
	// Min is what holds whatever the clocks' errors, Max what the Min of the
	// other terms leaves.
	Min, Max time.Duration
	// Queued is the part that the packet waited at the place itself, while no
	// pause delayed it.
	Queued   time.Duration
	Via      []PausedQueue // from the packet's path to the place
	Culprits []Culprit     // of a contention, by share
	Later    bool          // Culprits are flows that the queue had next: none of that time is recorded
	Deadlock int           // in Account.Deadlocks; -1: none
}

// PausedQueue is a queue through whose pauses a cause reached the packet.
type PausedQueue struct {
	Place
	Time   time.Duration // of the term, passed through it
	Waited time.Duration // of Time, in this queue by the packet itself
	Behind time.Duration // of Waited, after a pause, behind what it left
}

// Culprit is a flow and its share of the backlog.
type Culprit struct {
	Flow  model.FlowKey
	Share float64
}

// DeadlockCycle is a cycle of queues that wait for each other.
type DeadlockCycle struct {
	Cycle []Place // each waits for the next, the last for the first
	// Closed is when the last of them was paused.
	Closed model.Time
	// Persistent: all are paused at their snapshots.
	Persistent bool
	// Trigger is what paused the first of them, nil if unknown; its kind is
	// Contention or HostInjection. Inside: at a queue of the cycle.
	Trigger     *Place
	TriggerKind Kind
	Inside      bool
	// TriggerCulprits are the flows of a trigger that is a contention, by share.
	TriggerCulprits []Culprit
}

// Stay is the packet's stay in one queue.
type Stay struct {
	Place       Place
	Queue       int // in Evidence.Queues; -1: no record describes it
	From, Until model.Time
}

// Explained returns the part of the lateness that has a cause.
func (a *Account) Explained() (sum time.Duration) {
	for i := range a.Terms {
		if a.Terms[i].Kind != Unexplained {
			sum += a.Terms[i].Time
		}
	}
	return sum
}

// Confidence returns Explained as a share of the lateness: 0 to 1. Of a packet
// that was not late nothing is unexplained.
func (a *Account) Confidence() float64 {
	if a.Late <= 0 {
		return 1
	}
	return float64(a.Explained()) / float64(a.Late)
}

// TopCause returns the longest term with a cause, or nil.
func (a *Account) TopCause() *Term {
	for i := range a.Terms {
		if a.Terms[i].Kind != Unexplained {
			return &a.Terms[i]
		}
	}
	return nil
}
