package diagnose

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
)

// culprits returns the flows that compete for a queue's link, by their share of
// what waits for it: in the queue itself, and in the paused queues right before
// it, where PFC makes a part of every burst wait.
//
// Paper: flows with positive weight in the replayed queue. Those weights are
// what a flow gives to others less what it gets: of four equal flows in an
// incast each weighs about nothing, and the rule would find no flow at all. A
// share of the queue has no such blind spot. The paper's weight still decides
// where nothing waits any more and only the epochs are left.
func (m *matching) culprits(n int) []Culprit {
	weights := m.queuedFor(n)
	if len(weights) == 0 {
		weights = m.passed(n)
	}
	total, most := 0.0, 0.0
	for _, w := range weights {
		total += w
		most = max(most, w)
	}
	var list []Culprit
	for f, w := range weights {
		if w >= m.cfg.Part*most {
			list = append(list, Culprit{m.g.Flows[f], w / total})
		}
	}
	slices.SortFunc(list, func(a, b Culprit) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.Flow.Compare(b.Flow))
	})
	return list
}

// queuedFor returns the bytes of each flow that wait for a queue's link.
func (m *matching) queuedFor(n int) map[int]float64 {
	weights := map[int]float64{}
	passes := map[int]bool{}
	for _, w := range m.g.WaitingAt(n) {
		weights[w.Flow] += float64(w.Bytes)
		passes[w.Flow] = true
	}
	for _, p := range m.g.PassagesAt(n) {
		passes[p.Flow] = true
	}
	for _, up := range m.waitingFor(n) {
		for _, w := range m.g.WaitingAt(up) {
			if passes[w.Flow] {
				weights[w.Flow] += float64(w.Bytes)
			}
		}
	}
	return weights
}

// waitingFor returns the paused queues of which a queue holds packets.
func (m *matching) waitingFor(n int) (list []int) {
	if m.before == nil {
		m.before = map[int][]int{}
		for _, e := range m.g.Held {
			if m.g.Nodes[e.From].Stands() {
				m.before[e.To] = append(m.before[e.To], e.From)
			}
		}
	}
	return m.before[n]
}

// passed weighs flows by what they did in the epochs: by the paper's
// contribution where somebody has one, else by packets that were not paused.
func (m *matching) passed(n int) map[int]float64 {
	weights := map[int]float64{}
	most := 0.0
	for _, e := range provenance.Out(m.g.PortFlow, n) {
		most = max(most, e.Weight)
	}
	if most > clear*m.g.Nodes[n].Depth {
		for _, e := range provenance.Out(m.g.PortFlow, n) {
			if e.Weight > 0 {
				weights[e.To] = e.Weight
			}
		}
		return weights
	}
	for _, p := range m.g.PassagesAt(n) {
		weights[p.Flow] += float64(p.Did.Packets - p.Did.Paused)
	}
	return weights
}

// clear is the share of a queue's depth that a contribution must reach to tell
// contributors from victims.
const clear = 0.2

// routingFault finds the entry behind a loop: one that sends packets of the
// loop another way than intended, or, where static routes are intended so, away
// from their destination. Of several the one with most waiting.
func (m *matching) routingFault(loop []int) *RoutingFault {
	type candidate struct {
		fault  RoutingFault
		grade  int
		weight float64
	}
	var best *candidate
	weights := map[RoutingFault]float64{}
	look := func(n, flow int, bytes float64) {
		node := &m.g.Nodes[n]
		key := m.g.Flows[flow]
		dst, ok := m.fabric.ByAddr(key.Dst)
		if !ok {
			return
		}
		grade := 0
		here, ok1 := m.routes.Distance(node.Node, key.Dst)
		there, ok2 := m.routes.Distance(node.Peer.Node, key.Dst)
		if ok1 && ok2 && there >= here {
			grade++
		}
		if !slices.Contains(m.routes.NextHops(node.Node, key.Dst), node.Port.Port) {
			grade += 2
		}
		if grade == 0 {
			return
		}
		f := RoutingFault{node.Node, dst, node.Peer.Node}
		weights[f] += bytes
		if best == nil || cmp.Or(cmp.Compare(grade, best.grade), cmp.Compare(weights[f], best.weight)) > 0 {
			best = &candidate{f, grade, weights[f]}
		}
	}
	for _, n := range loop {
		for _, w := range m.g.WaitingAt(n) {
			look(n, w.Flow, float64(w.Bytes))
		}
		for _, p := range m.g.PassagesAt(n) {
			look(n, p.Flow, 1)
		}
	}
	if best == nil {
		return nil
	}
	return &best.fault
}
