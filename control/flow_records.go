package control

import (
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model/record"
)

// flowRecords adds records of the flows of a slot, each with its path.
func (c *Controller) flowRecords(s *flowwatch.Slot) {
	for f := range s.Flows() {
		r := record.FlowSlot{
			Time: c.wallTime(s.Start()), Slot: s.Length, Flow: f.Key, Exact: f.Exact, Packets: f.Packets, Bytes: f.Bytes,
			Src: c.hostName(f.Key.Src), Dst: c.hostName(f.Key.Dst),
		}
		for _, h := range f.Hops {
			r.Path = append(r.Path, record.FlowHop{Switch: c.nodeName(h.Switch), Packets: h.Packets})
		}
		c.batch.Flows = append(c.batch.Flows, r)
	}
}
