package control

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/model/record"
)

// sampledWindow is the slot of flows that are estimated from samples: shorter ones would
// have few samples of a flow each.
const sampledWindow = time.Second

// addSampledFlow adds a sample to the estimates of flows. Switches that count every flow
// need no estimate, which would be a second record of the same packets.
func (c *Controller) addSampledFlow(now model.Time, s *portstat.Sample) {
	if s.Has.All(portstat.HasDrop) || c.countsFlows(now, s.Node) {
		return
	}
	if c.sampledFrom == 0 {
		c.sampledFrom = now
	}
	c.sampled.Add(s)
}

// countsFlows reports whether a switch has sent flowsets not long ago.
func (c *Controller) countsFlows(now model.Time, sw model.NodeID) bool {
	at := c.liveness.lastSeen[sw][Flowset]
	return at != 0 && now.Sub(at) < c.cfg.SilentAfter
}

// concludeSampledFlows records the flows of a window that has ended.
func (c *Controller) concludeSampledFlows(now model.Time) {
	if c.sampledFrom != 0 && now.Sub(c.sampledFrom) >= sampledWindow {
		c.recordSampledFlows(now)
	}
}

// recordSampledFlows records the flows of the window so far, and starts another.
func (c *Controller) recordSampledFlows(now model.Time) {
	start, length := c.wallTime(c.sampledFrom), now.Sub(c.sampledFrom)
	c.sampledFrom = 0
	list := c.sampled.Take(now)
	for i := range list {
		f := &list[i]
		path := c.recordHops.take(len(f.Hops))
		for k := range f.Hops {
			path[k] = record.FlowHop{Switch: c.nodeName(f.Hops[k].Switch), Packets: f.Hops[k].Packets}
		}
		c.batch.Flows = append(c.batch.Flows, record.FlowSlot{
			Time: start, Slot: length, Flow: f.Key, Packets: f.Packets, Bytes: f.Bytes,
			Src: c.hostName(f.Key.Src), Dst: c.hostName(f.Key.Dst), Path: path,
		})
	}
}
