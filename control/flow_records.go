package control

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// flowRecords adds records of the flows of a slot, each with its path, as far as they
// are stored one by one, and sums of the others: see package flowreduce.
func (c *Controller) flowRecords(s *flowwatch.Slot) {
	var choice flowreduce.Choice
	at := c.wallTime(s.Start())
	if s.Remote() {
		c.remoteFlowRecords(s, at)
		return
	}
	var referred []flowreduce.Flow
	if s.Len() > c.cfg.Reduction.Keep {
		referred = c.referredFlows(s)
	}
	choice, c.batch.Counters = c.reducer.Reduce(at, s.Parts(), referred, c.batch.Counters)
	if choice.All {
		c.batch.Flows = slices.Grow(c.batch.Flows, s.Len())
		for f := range s.Flows() {
			c.addFlowRecord(f, at, s.Length, false)
		}
		return
	}
	c.batch.Flows = slices.Grow(c.batch.Flows, len(choice.Kept)+len(choice.Ended))
	for _, f := range choice.Kept {
		flow := flowwatch.FlowOf(f.Map, f.Number)
		c.addFlowRecord(&flow, at, s.Length, true)
	}
	for _, f := range choice.Ended {
		flow := flowwatch.FlowOf(f.Map, f.Number)
		c.addFlowRecord(&flow, c.wallTime(f.Map.Start()), f.Map.Length, true)
	}
}

// remoteFlowRecords adds records of the flows of a slot that other processes analysed: all
// of them, or the largest and those that its findings refer to.
func (c *Controller) remoteFlowRecords(s *flowwatch.Slot, at time.Time) {
	keep := c.cfg.Reduction.Keep
	if s.Len() <= keep {
		for f := range s.Flows() {
			c.addFlowRecord(f, at, s.Length, false)
		}
		return
	}
	referred := map[model.FlowKey]bool{}
	for i := range s.Losses {
		referred[s.Losses[i].Flow] = true
	}
	for i := range s.Paths {
		for _, k := range s.Paths[i].Flows {
			referred[k] = true
		}
	}
	// Of flows as large as the smallest that is kept the first by key are, as in one process.
	all := make([]*flowwatch.Flow, 0, s.Len())
	for f := range s.Flows() { // each stays valid: the slot has no map
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *flowwatch.Flow) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), a.Key.Compare(*b.Key))
	})
	for _, f := range all[:keep] {
		referred[*f.Key] = true
	}
	for f := range s.Flows() {
		if referred[*f.Key] {
			c.addFlowRecord(f, at, s.Length, true)
		}
	}
}

// addFlowRecord adds the record of a flow of a slot. partial: not every flow of the slot
// has one.
func (c *Controller) addFlowRecord(f *flowwatch.Flow, at time.Time, length time.Duration, partial bool) {
	path := c.recordHops.take(len(f.Hops))
	for i := range f.Hops {
		h := &f.Hops[i]
		path[i] = record.FlowHop{Switch: c.nodeName(h.Switch), Packets: h.Packets}
	}
	c.batch.Flows = append(c.batch.Flows, record.FlowSlot{
		Time: at, Slot: length, Flow: *f.Key, Exact: f.Exact, Packets: f.Packets, Bytes: f.Bytes,
		Src: c.hostName(f.Key.Src), Dst: c.hostName(f.Key.Dst), Path: path, Partial: partial,
	})
}

// hopBlock is memory for the paths of records: one allocation serves many. Records of one
// block are of the same or successive slots, and are released at about the same time.
type hopBlock []record.FlowHop

const hopBlockLen = 1024

func (b *hopBlock) take(n int) []record.FlowHop {
	if n > len(*b) {
		*b = make([]record.FlowHop, max(n, hopBlockLen))
	}
	list := (*b)[:n:n]
	*b = (*b)[n:]
	return list
}

// referredFlows are the flows of a slot that its findings and open incidents refer to,
// and those that someone asked for.
func (c *Controller) referredFlows(s *flowwatch.Slot) (list []flowreduce.Flow) {
	add := func(k *model.FlowKey) {
		if m, n, ok := s.Find(k); ok {
			list = append(list, flowreduce.Flow{Map: m, Number: n})
		}
	}
	for i := range s.Losses {
		add(&s.Losses[i].Flow)
	}
	for i := range s.Paths {
		for k := range s.Paths[i].Flows {
			add(&s.Paths[i].Flows[k])
		}
	}
	for _, in := range c.correlator.OpenIncidents() {
		for k := range in.Flows {
			add(&in.Flows[k])
		}
	}
	for k, at := range c.tracedFlows {
		if c.now.Sub(at) < tracedFor {
			add(&k)
		}
	}
	return list
}

// flowNames are the names of what flows are added up by.
func (c *Controller) flowNames() flowreduce.Names {
	return flowreduce.Names{Host: c.hostName, Switch: c.nodeName, Job: c.jobOf}
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
