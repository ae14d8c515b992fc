package incident

import (
	"github.com/weft-telemetry/weft/model"
)

// Source is who says something.
type Source uint8

// Sources.
const (
	Flowsets   Source = iota // counters of every flow, slot by slot
	Traces                   // mirrored packets
	Labels                   // queues and latencies that rode on packets
	Epochs                   // what switches remembered when a slow flow was polled
	Probes                   // packets sent on purpose
	Counters                 // what ports count of themselves
	NumSources               // how many there are
)

var sourceNames = [NumSources]string{"flowsets", "traces", "labels", "epochs", "probes", "counters"}

// String prints the source's name.
func (s Source) String() string { return sourceNames[s] }

// MarshalText writes String's form.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Cause is what is wrong. They ascend by how much they explain: a loop fills
// queues and lets packets die, so queues and losses on it are its consequences,
// never the other way round.
type Cause uint8

// Causes.
const (
	Imbalance    Cause = iota // equal-cost ports share the load unevenly
	Contention                // flows that meet in a queue
	Stall                     // packets stand in queues that PFC pauses
	Loss                      // packets vanish at random
	DeadLink                  // nothing gets through
	Incast                    // flows, most often of many senders to one, that overfill a queue, and PFC behind it
	SlowReceiver              // a host that takes in less than it is sent
	Blackhole                 // packets of certain flows vanish, all of them
	WrongRoute                // a switch that forwards otherwise than it should
	Deadlock                  // queues that wait for each other in a circle
	Storm                     // a host that pauses its switch without end
	Loop                      // packets that go round
	numCauses
)

var causeNames = [numCauses]string{
	"imbalance", "contention", "stall", "loss", "dead-link", "incast", "slow-receiver", "blackhole", "wrong-route", "deadlock", "storm", "loop",
}

// CauseNames are those of all causes.
func CauseNames() []string { return causeNames[:] }

// String prints the cause's name.
func (c Cause) String() string { return causeNames[c] }

// MarshalText writes String's form.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Severity is how much an incident matters.
type Severity uint8

// Severities.
const (
	Notice   Severity = iota // ordinary life of a busy fabric
	Warning                  // it costs performance
	Critical                 // it costs packets, or stands still
)

// String prints the severity's name.
func (s Severity) String() string { return [...]string{"notice", "warning", "critical"}[s] }

// MarshalText writes String's form.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Severity of a cause.
func (c Cause) Severity() Severity {
	switch c {
	case Contention:
		return Notice
	case Imbalance, Stall, Incast, SlowReceiver:
		return Warning
	default:
		return Critical
	}
}

// Evidence is one statement of one source.
type Evidence struct {
	At     model.Time // when it was said, by the collector's clock
	From   model.Time // when what it speaks of began
	Source Source
	Cause  Cause
	Sure   bool // the source excludes what is harmless
	Minor  bool // it is so, and costs next to nothing

	// Place is where the trouble begins: a switch's port, or the switch alone
	// (port 0). A storm begins at the host.
	Place model.Port
	// Next is the node behind Place, where the source knows it: packets may be
	// lost in either, or between them.
	Next    model.NodeID
	HasNext bool
	// Extent is every node that it touches: the nodes of a loop, those that
	// pauses spread over.
	Extent []model.NodeID
	Path   []model.Port // how pauses spread, from the victim on
	Loop   []model.Port // ports that wait for each other

	Flows    []model.FlowKey // that suffer
	Culprits []model.FlowKey // that cause it
	Text     string          // a sentence
	Remedy   string          // what an operator would try; empty: the cause's own
	Ref      string          // of the diagnosis, trace or probe it rests on
}

// nodes calls f with every node that e speaks of until it returns true.
func (e *Evidence) touches(f func(model.NodeID) bool) bool {
	if f(e.Place.Node) || e.HasNext && f(e.Next) {
		return true
	}
	for _, n := range e.Extent {
		if f(n) {
			return true
		}
	}
	return false
}
