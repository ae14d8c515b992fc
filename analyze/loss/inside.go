package loss

import (
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
)

// Drop is packets of a flow that a switch received in a slot and did not send.
type Drop struct {
	Flow     model.FlowKey
	Switch   model.NodeID
	Out      model.PortID // the port that its first packet was routed to; 0: none, or not known
	Slot     uint32
	Packets  uint64 // dropped
	Received uint64
}

// Inside compares the flowsets of a switch's incoming and outgoing packets of one slot,
// which have a packet in the slot in which it arrived: none is in flight between them, so
// that every difference is a drop. Flows whose counts are not exact in both are only
// counted, as uncertain.
//
// Paper: flowlets of successive switches, which must have ended. Here also a flow that
// never pauses shows its drops at the end of the slot.
func Inside(in, out *flows.Decoded) (drops []Drop, uncertain int) {
	if out.Missed > 0 {
		return nil, len(in.Records) // they may be of any flow
	}
	sent := make(map[model.FlowKey]*flows.Record, len(out.Records))
	for i := range out.Records {
		sent[out.Records[i].Key] = &out.Records[i]
	}
	for i := range in.Records {
		r := &in.Records[i]
		s := sent[r.Key]
		packets := uint64(0)
		switch {
		case s != nil:
			packets = s.Packets
		case !out.Absent(r.Key):
			uncertain++
			continue
		}
		if r.Grade != flows.Exact || s != nil && s.Grade != flows.Exact {
			uncertain++
			continue
		}
		if packets < r.Packets {
			drops = append(drops, Drop{r.Key, in.Switch, r.Out, in.Slot, r.Packets - packets, r.Packets})
		}
	}
	return drops, uncertain
}
