package paths

import (
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Kind is a kind of forwarding fault.
type Kind uint8

// Kinds of finding.
const (
	Loop       Kind = iota // packets loop
	BlackHole              // a switch drops all packets of some flows, and forwards those of others
	Silent                 // as BlackHole, but no flow passes at all: the link or the port is dead, or paused
	WrongRoute             // a switch forwards a flow through a port that is not among those intended
)

var kindNames = [...]string{Loop: "loop", BlackHole: "black hole", Silent: "silent link", WrongRoute: "wrong route"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Finding is a forwarding fault that affects some flows in one slot, at one
// location.
type Finding struct {
	Kind Kind
	Slot int64
	// Confirmed is set when nothing harmless explains it any more. A path that
	// stops, or a loop that started within the slot, is first suspected and
	// confirmed one slot later: packets may have been in flight.
	Confirmed bool

	// At is the location: the switch where packets were last seen and the port
	// they left through, 0 if not known; for a Loop the switch where they enter.
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

// Share returns the share of the flows at this location that is affected. For a
// switch with a corrupt table it is the share of flows that the corruption hits.
func (f *Finding) Share() float64 {
	return float64(len(f.Flows)) / float64(len(f.Flows)+f.Others)
}

// Describe returns the finding as a sentence with the fabric's names.
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
		fmt.Fprintf(&b, "at %s", fab.PortName(f.At))
		if f.HasNext {
			fmt.Fprintf(&b, ", not received by %s", fab.Node(f.Next.Node).Name)
		}
	}
	fmt.Fprintf(&b, ": %d of %s", len(f.Flows), plural.Count(len(f.Flows)+f.Others, "flow"))
	return b.String()
}
