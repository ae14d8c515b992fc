package portstat

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// FlowRecord is what a switch counted of a flow from one instant to another, as NetFlow and
// IPFIX report it.
type FlowRecord struct {
	Node     model.NodeID
	From, To model.Time // first and last packet; To is not before From
	Source   Source
	Flow     model.FlowKey
	// Packets and Bytes are those of the flow: what was counted, times Sampling.
	Packets, Bytes uint64
	Sampling       uint32 // one of how many packets was counted; 1: all
}

// Interval is the time from the first packet to the last.
func (r *FlowRecord) Interval() time.Duration { return r.To.Sub(r.From) }
