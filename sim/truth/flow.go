package truth

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// FlowTotal is the fate of the packets of one direction of a flow.
type FlowTotal struct {
	Delivered int64       // packets
	Payload   model.Bytes // bytes, retransmissions included
	Dropped   int64       // packets

	First, Last engine.Time // deliveries
}

type flowTotals struct {
	by    []FlowTotal // by direction
	other []FlowTotal // packets of no flow, such as probes, polls and reports, by the node where they ended
}

func (f *flowTotals) total(p *sim.Packet, at model.NodeID) *FlowTotal {
	d := direction(p)
	if d < 0 {
		return &f.other[at]
	}
	if int(d) >= len(f.by) { // never on several cores: see ObservesParallel
		f.by = reach(f.by, d)
	}
	return &f.by[d]
}

func (f *flowTotals) delivered(now engine.Time, p *sim.Packet, at model.NodeID) {
	t := f.total(p, at)
	// Deliveries of several hosts are not in time order.
	if t.Delivered == 0 || now < t.First {
		t.First = now
	}
	t.Delivered++
	t.Payload += model.Bytes(p.Payload)
	t.Last = max(t.Last, now)
}

func (f *flowTotals) dropped(p *sim.Packet, at model.NodeID) {
	if p.Kind != sim.KindPFC {
		f.total(p, at).Dropped++
	}
}

// Flow returns the totals of one direction of a flow. A flow of -1 is all
// packets without a flow, except pause frames.
func (r *Recorder) Flow(flow int, reverse bool) FlowTotal {
	if r.flows == nil {
		return FlowTotal{}
	}
	if flow < 0 {
		return r.flows.sumOther()
	}
	if d := directionOf(flow, reverse); int(d) < len(r.flows.by) {
		return r.flows.by[d]
	}
	return FlowTotal{}
}

// sumOther returns the totals of packets of no flow.
func (f *flowTotals) sumOther() (sum FlowTotal) {
	for _, t := range f.other {
		if t.Delivered > 0 && (sum.Delivered == 0 || t.First < sum.First) {
			sum.First = t.First
		}
		sum.Last = max(sum.Last, t.Last)
		sum.Delivered += t.Delivered
		sum.Payload += t.Payload
		sum.Dropped += t.Dropped
	}
	return sum
}
