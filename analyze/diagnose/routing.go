package diagnose

import (
	"cmp"
	"slices"
)

// routingFault finds the route that closes a cycle: one that sends packets of
// the cycle off the intended routes, or, where static routes are intended so,
// away from their destination. Of several it returns the one with most bytes
// waiting.
func (m *analysis) routingFault(cycle []int) *RoutingFault {
	type candidate struct {
		fault  RoutingFault
		grade  int
		weight float64
	}
	var best *candidate
	weights := map[RoutingFault]float64{}
	consider := func(n, flow int, bytes float64) {
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
	for _, n := range cycle {
		for _, w := range m.g.QueuedAt(n) {
			consider(n, w.Flow, float64(w.Bytes))
		}
		for _, p := range m.g.FlowEpochsAt(n) {
			consider(n, p.Flow, 1)
		}
	}
	if best == nil {
		return nil
	}
	return &best.fault
}
