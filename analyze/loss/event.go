package loss

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Segment is a stretch of a flow's way: from one switch that counted it to the
// next one that did. Packets lost there were dropped in the queue of From, on
// the wire, or before To counted them.
type Segment struct {
	From model.Port // the port packets left by; port 0: not known
	To   model.Port // the port they came in by; the zero Port: nobody saw them again
	// WholePath is set where counters do not tell between which switches of the
	// way packets were lost: From is then the first switch, To the last one.
	WholePath bool
}

// Event is a loss of one flow on one segment.
type Event struct {
	Flow model.FlowKey
	Segment

	Packets uint64 // lost
	Sent    uint64 // counted at From in the same flowlet up to now
	// Begin and End are slots: the packets passed From in one of these. With
	// clocks apart, by up to a slot more.
	Begin, End int64
	Found      int64 // slot whose map showed it
	// Final is set at the end of a flowlet: Packets is then what was lost
	// since the last event of the flow on this segment, and nothing more will
	// come. Before that it is a part: what certainly cannot arrive any more.
	Final bool
}

// Describe says it in a sentence with the fabric's names.
func (e *Event) Describe(f *topo.Fabric) string {
	to := "nobody"
	if e.To != (model.Port{}) {
		to = f.PortRef(e.To)
	}
	return fmt.Sprintf("slot %d: %v lost %d of %d packets between %s and %s in slots %d to %d",
		e.Found, e.Flow, e.Packets, e.Sent, f.PortRef(e.From), to, e.Begin, e.End)
}
