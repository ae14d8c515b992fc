package loss

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Segment is a part of a flow's path: from one switch that counted it to the
// next one that did. Packets lost there were dropped in the queue of From, on
// the wire, or before To counted them.
type Segment struct {
	From model.Port // the port packets left through; port 0: not known
	To   model.Port // the port they arrived at; the zero Port: no switch saw them again
	// WholePath is set where counters do not show between which switches of the
	// path packets were lost: From is then the first that may have lost them, by any of
	// its ports, and To the last one that is known.
	WholePath bool
}

// Event is a loss of one flow on one segment.
type Event struct {
	Flow model.FlowKey
	Segment

	Packets uint64 // lost
	Sent    uint64 // counted at From in the same flowlet from FirstSlot up to now
	// FirstSlot and LastSlot bound when the packets passed From. Where clocks differ
	// they may be wrong by more than a slot: only counts and places are proven.
	FirstSlot, LastSlot int64
	FoundSlot           int64 // slot whose map showed it
	// Final is set at the end of a flowlet: Packets is then the loss since the
	// last event of the flow on this segment, and no event follows. Before that
	// it is a part: packets that certainly cannot arrive any more.
	Final bool
}

// Describe returns the event as a sentence with the fabric's names.
func (e *Event) Describe(f *topo.Fabric) string {
	where := "after " + f.PortName(e.From)
	if e.To != (model.Port{}) {
		where = "between " + f.PortName(e.From) + " and " + f.PortName(e.To)
	}
	return fmt.Sprintf("slot %d: %v lost %d of %d packets %s in slots %d to %d",
		e.FoundSlot, e.Flow, e.Packets, e.Sent, where, e.FirstSlot, e.LastSlot)
}
