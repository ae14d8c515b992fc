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

// IngestFlowRecord takes what a switch counted of a flow. Of several switches on its path
// one is believed, and switches that send flowsets are not asked.
func (c *Controller) IngestFlowRecord(now model.Time, r *portstat.FlowRecord) {
	c.now = max(c.now, now)
	c.stats.Counters.FlowRecords++
	if c.cfg.Forward != nil {
		c.cfg.Forward.FlowRecord(c.now, r)
		return
	}
	switch {
	case !c.fabric.HasNode(r.Node):
		c.stats.Counters.Unknown++
		return
	case !c.timely(now, r.To) || r.Interval() < 0:
		c.stats.Counters.Untimely++
		return
	}
	c.protect("flow records", func() {
		if !c.exporters.Choose(r.Node, &r.Flow, r.To) || c.countsFlows(now, r.Node) {
			c.stats.Counters.Elsewhere++
			return
		}
		path := c.recordHops.take(1)
		path[0] = record.FlowHop{Switch: c.nodeName(r.Node), Packets: r.Packets}
		c.batch.Flows = append(c.batch.Flows, record.FlowSlot{
			Time: c.wallTime(r.From), Slot: max(r.Interval(), shortestRecord), Flow: r.Flow, Packets: r.Packets, Bytes: r.Bytes, Exact: r.Sampling == 1, Samples: samplesOf(r),
			Src: c.hostName(r.Flow.Src), Dst: c.hostName(r.Flow.Dst), Path: path,
		})
	})
	c.liveness.markAlive(now, FlowRecord, r.Node)
}

// samplesOf returns how many packets an exporter that samples has counted; 0: it counts all.
func samplesOf(r *portstat.FlowRecord) uint64 {
	if r.Sampling <= 1 {
		return 0
	}
	return max(1, r.Packets/uint64(r.Sampling))
}

// shortestRecord is the time of a flow of one packet, whose record begins when it ends.
const shortestRecord = time.Millisecond

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
			Time: start, Slot: length, Flow: f.Key, Packets: f.Packets, Bytes: f.Bytes, Samples: uint64(f.Samples),
			Src: c.hostName(f.Key.Src), Dst: c.hostName(f.Key.Dst), Path: path,
		})
	}
}
