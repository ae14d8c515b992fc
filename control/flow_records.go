package control

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// slotRecords are the records of one slot before they are reduced. Their memory is
// used again, because most of them are not stored.
type slotRecords struct {
	list []record.FlowSlot
	// hops are the paths of this slot, and those of the slot before, which the reducer
	// still has.
	hops, last []record.FlowHop
}

// flowRecords adds records of the flows of a slot, each with its path, as far as they
// are stored one by one: see package flowreduce.
func (c *Controller) flowRecords(s *flowwatch.Slot) {
	m := &c.slotRecords
	m.hops, m.last = m.last[:0], m.hops
	clear(m.list)
	m.list = m.list[:0]
	at := c.wallTime(s.Start())
	for f := range s.Flows() {
		first := len(m.hops)
		for _, h := range f.Hops {
			m.hops = append(m.hops, record.FlowHop{Switch: c.nodeName(h.Switch), Packets: h.Packets})
		}
		m.list = append(m.list, record.FlowSlot{
			Time: at, Slot: s.Length, Flow: f.Key, Exact: f.Exact, Packets: f.Packets, Bytes: f.Bytes,
			Src: c.hostName(f.Key.Src), Dst: c.hostName(f.Key.Dst), Path: m.hops[first:len(m.hops):len(m.hops)],
		})
	}
	c.storeFlows(s, m.list)
}

// storeFlows adds the records of a slot to the batch that are stored one by one, and
// sums of the others. The records and their paths are copied.
func (c *Controller) storeFlows(s *flowwatch.Slot, list []record.FlowSlot) {
	var referred map[model.FlowKey]bool
	if len(list) > c.cfg.Reduction.Keep {
		referred = c.referredFlows(s)
	}
	var kept []record.FlowSlot
	kept, c.batch.Counters = c.reducer.Reduce(list, c.batch.Counters, func(r *record.FlowSlot) bool { return referred[r.Flow] })
	c.batch.Flows = slices.Grow(c.batch.Flows, len(kept))
	for i := range kept {
		kept[i].Path = slices.Clone(kept[i].Path)
		c.batch.Flows = append(c.batch.Flows, kept[i])
	}
}

// referredFlows are the flows that findings of a slot and open incidents refer to,
// and those that someone asked for.
func (c *Controller) referredFlows(s *flowwatch.Slot) map[model.FlowKey]bool {
	referred := map[model.FlowKey]bool{}
	for i := range s.Losses {
		referred[s.Losses[i].Flow] = true
	}
	for i := range s.Paths {
		for _, k := range s.Paths[i].Flows {
			referred[k] = true
		}
	}
	for _, in := range c.correlator.OpenIncidents() {
		for _, k := range in.Flows {
			referred[k] = true
		}
	}
	for k, at := range c.tracedFlows {
		if c.now.Sub(at) < tracedFor {
			referred[k] = true
		}
	}
	return referred
}

const (
	// tracedFor is how long a flow is stored in every slot after a packet of its was
	// traced: someone asked for it, by a mark or a filter.
	tracedFor = time.Second
	// maxTraced limits the flows that are stored for that.
	maxTraced = 4096
)

// noteTraced notes a flow of which a packet was traced.
func (c *Controller) noteTraced(k model.FlowKey) {
	if c.tracedFlows == nil {
		c.tracedFlows = map[model.FlowKey]model.Time{}
	}
	if _, known := c.tracedFlows[k]; !known && len(c.tracedFlows) >= maxTraced {
		maps.DeleteFunc(c.tracedFlows, func(_ model.FlowKey, at model.Time) bool { return c.now.Sub(at) >= tracedFor })
		if len(c.tracedFlows) >= maxTraced {
			return
		}
	}
	c.tracedFlows[k] = c.now
}

// jobOf is the name of the first job that a flow is part of; empty: none.
func (c *Controller) jobOf(k *model.FlowKey) string {
	src, dst := c.jobsAt(k.Src), c.jobsAt(k.Dst)
	for _, i := range src {
		for _, j := range dst {
			if i == j {
				return c.cfg.Jobs[i].Name
			}
		}
	}
	return ""
}

// maxJobAddrs limits the addresses whose jobs are in memory.
const maxJobAddrs = 1 << 16

// jobsAt are the jobs that own an address, by index.
func (c *Controller) jobsAt(a model.Addr) []int {
	if len(c.cfg.Jobs) == 0 {
		return nil
	}
	if list, known := c.jobAddrs[a]; known {
		return list
	}
	if c.jobAddrs == nil || len(c.jobAddrs) >= maxJobAddrs {
		c.jobAddrs = map[model.Addr][]int{}
	}
	var list []int
	for i := range c.cfg.Jobs {
		if c.cfg.Jobs[i].owns(c.fabric, a) {
			list = append(list, i)
		}
	}
	c.jobAddrs[a] = list
	return list
}
