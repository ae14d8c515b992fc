package control

import (
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model/record"
)

// flowRecords adds records of the flows of a slot, each with its path.
func (c *Controller) flowRecords(s *flowwatch.Slot) {
	routes := c.cfg.Intent.At(s.Map.Start())
	for key := range s.Map.All() {
		r := record.FlowSlot{
			Time: c.wallTime(s.Map.Start()), Slot: s.Map.Length, Flow: key, Exact: true,
			Src: c.hostName(key.Src), Dst: c.hostName(key.Dst),
		}
		for _, h := range s.Map.FlowPath(key, routes).Hops {
			r.Path = append(r.Path, record.FlowHop{Switch: c.nodeName(h.Switch), Packets: h.Packets})
			r.Packets, r.Bytes = max(r.Packets, h.Packets), max(r.Bytes, h.Bytes)
			r.Exact = r.Exact && h.Exact
		}
		c.batch.Flows = append(c.batch.Flows, r)
	}
}
