package provenance

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// FlowMeter is what a flow sent in the reported epochs, by the counters of one switch:
// the one that its host is connected to, or the first that its packets came to.
type FlowMeter struct {
	Flow      model.FlowKey
	Priority  model.Priority
	Switch    model.NodeID // whose counters they are
	Outs      []model.Port // egress ports at all switches that reported it, ascending
	Intervals []MeteredInterval
}

// MeteredInterval is from the first to the last packet of a flow in an epoch.
type MeteredInterval struct {
	From, To model.Time
	Packets  uint64
	Bytes    model.Bytes // Ethernet header to payload, no FCS
}

// FlowMeters returns what flows sent that were in queues which were paused or
// congested: the victim, and the largest of the others, at most limit. Omitted is the
// number of flows beyond.
func (g *Graph) FlowMeters(e *Evidence, f *topo.Fabric, limit int) (meters []FlowMeter, omitted int) {
	sum := make([]uint64, len(g.Flows)) // bytes in queues that were paused or congested
	for i := range g.FlowEpochs {
		p := &g.FlowEpochs[i]
		if n := &g.Nodes[p.Node]; len(n.PauseIntervals)+len(n.CongestionIntervals) > 0 {
			sum[p.Flow] += p.Record.Bytes
		}
	}
	victim := g.Flow(g.Victim)
	var chosen []int
	for i := range sum {
		if sum[i] > 0 || i == victim {
			chosen = append(chosen, i)
		}
	}
	slices.SortFunc(chosen, func(a, b int) int {
		return cmp.Or(boolOrder(b == victim, a == victim), cmp.Compare(sum[b], sum[a]), cmp.Compare(a, b))
	})
	omitted = max(0, len(chosen)-limit)
	chosen = chosen[:len(chosen)-omitted]
	slices.Sort(chosen)
	index := make([]int, len(g.Flows)) // 1 + index in chosen
	for i, flow := range chosen {
		index[flow] = i + 1
	}
	records := make([][]FlowEpoch, len(chosen))
	for _, p := range g.FlowEpochs {
		if i := index[p.Flow]; i > 0 {
			records[i-1] = append(records[i-1], p)
		}
	}
	for i, flow := range chosen {
		if m := g.flowMeter(e, f, records[i]); len(m.Intervals) > 0 {
			m.Flow = g.Flows[flow]
			meters = append(meters, m)
		}
	}
	return meters, omitted
}

// boolOrder orders false before true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// flowMeter returns the meter of the flow that the records are of.
func (g *Graph) flowMeter(e *Evidence, f *topo.Fabric, records []FlowEpoch) (m FlowMeter) {
	start := func(p *FlowEpoch) (model.Time, bool) {
		sw := g.Nodes[p.Node].Node
		i, found := slices.BinarySearchFunc(e.Reports, sw, func(r *Report, id model.NodeID) int { return cmp.Compare(r.Switch, id) })
		if !found {
			return 0, false
		}
		return e.Reports[i].Start(p.Record.Epoch), true
	}
	var at model.NodeID
	var first model.Time
	chosen, fromHost := false, false
	for i := range records {
		p := &records[i]
		n := &g.Nodes[p.Node]
		if !slices.Contains(m.Outs, n.Port) {
			m.Outs = append(m.Outs, n.Port)
		}
		begin, ok := start(p)
		if !ok || p.Record.Packets == 0 {
			continue
		}
		begin = begin.Add(p.Record.First)
		in := f.Port(model.Port{Node: n.Node, Port: p.Record.In})
		host := in != nil && !f.Node(in.Peer.Node).Role.IsSwitch()
		if !chosen || host && !fromHost || host == fromHost && begin < first {
			at, first, chosen, fromHost = n.Node, begin, true, host
		}
	}
	slices.SortFunc(m.Outs, func(a, b model.Port) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port)) })
	for i := range records {
		p := &records[i]
		begin, ok := start(p)
		if !ok || !chosen || g.Nodes[p.Node].Node != at || p.Record.Packets == 0 {
			continue
		}
		m.Switch, m.Priority = at, p.Record.Priority
		m.Intervals = append(m.Intervals, MeteredInterval{
			From: begin.Add(p.Record.First), To: begin.Add(max(p.Record.First, p.Record.Last)),
			Packets: uint64(p.Record.Packets), Bytes: model.Bytes(min(p.Record.Bytes, 1<<62)),
		})
	}
	slices.SortFunc(m.Intervals, func(a, b MeteredInterval) int { return cmp.Compare(a.From, b.From) })
	return m
}
