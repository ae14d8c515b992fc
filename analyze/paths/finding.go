package paths

import (
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Kind says what is wrong with a way.
type Kind uint8

// Kinds of finding.
const (
	Loop      Kind = iota // packets go round
	BlackHole             // packets arrive at a switch and go nowhere, those of other flows do
	Silent                // as BlackHole, but nothing at all gets through: the link or the port is dead, or paused
	WrongRoute              // a switch sends a flow by a port that is not among those intended
)

var kindNames = [...]string{Loop: "loop", BlackHole: "black hole", Silent: "silent link", WrongRoute: "wrong way"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Finding is something wrong with the ways of some flows in one slot, at one
// findingKey.
type Finding struct {
	Kind Kind
	Slot int64
	// Confirmed is set when nothing harmless explains it any more. A path that
	// findStop, or a loop that began within the slot, is first suspected and sure
	// one slot later: packets may have been on their way.
	Confirmed bool

	// At is where packets go wrong: the switch they were last seen at and the
	// port they left by, 0 if not known; of a Loop the switch they enter by.
	At model.Port
	// Next is where they should have been seen next. It is not set if that
	// switch does not report: then they were lost somewhere after At.
	Next     model.Port
	HasNext  bool
	Switches []model.NodeID // of a Loop, in order

	Flows []model.FlowKey // affected, ascending
	// Others counts flows that got through At's port in the same slot; for a
	// WrongRoute those that the switch sent as intended.
	Others int
}

// Share is the part of the flows at this place that is affected. For a switch
// with a corrupt table it is the share of flows that the corruption hits.
func (f *Finding) Share() float64 {
	return float64(len(f.Flows)) / float64(len(f.Flows)+f.Others)
}

// Describe says it in a sentence with the fabric's names.
func (f *Finding) Describe(fab *topo.Fabric) string {
	var b strings.Builder
	fmt.Fprintf(&b, "slot %d: %s ", f.Slot, f.Kind)
	switch f.Kind {
	case Loop:
		for _, id := range f.Switches {
			fmt.Fprintf(&b, "%s → ", fab.Node(id).Name)
		}
		b.WriteString(fab.Node(f.Switches[0]).Name)
	default:
		fmt.Fprintf(&b, "at %s", fab.PortRef(f.At))
		if f.HasNext {
			fmt.Fprintf(&b, " towards %s", fab.PortRef(f.Next))
		}
	}
	fmt.Fprintf(&b, ": %d of %s", len(f.Flows), plural.Count(len(f.Flows)+f.Others, "flow"))
	return b.String()
}
