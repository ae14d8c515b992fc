package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// assignNodes assigns the nodes to workers, from their costs so far.
func (n *Network) assignNodes() {
	s := &n.sched
	n.deliverCrossings()
	s.stale, s.flows, s.windows = false, len(n.flows), 0
	parallel := !s.oneCore
	if n.observer != nil {
		o, ok := n.observer.(ParallelObserver)
		parallel = parallel && ok && o.ObservesParallel(len(n.flows))
	}
	if !parallel {
		n.assignAll(func(*node) *worker { return s.workers[0] })
		s.shared = false
		return
	}
	if s.order == nil {
		s.order = n.byPod()
	}
	shares := divide(s.order, len(s.workers))
	n.assignAll(func(nd *node) *worker { return s.workers[shares[nd.id]] })
	s.shared = slices.ContainsFunc(shares, func(share int) bool { return share != 0 })
	for i := range n.nodes {
		n.nodes[i].cost /= 2
	}
}

// assignAll assigns every node. No packets may be between workers.
func (n *Network) assignAll(to func(*node) *worker) {
	for _, w := range n.sched.workers {
		clear(w.active)
		w.earliest = engine.Forever
	}
	for i := range n.nodes {
		nd := &n.nodes[i]
		if w := to(nd); w != nd.w {
			nd.assign(w)
		}
	}
	for _, p := range n.ports {
		if p.crosses = 0; p.w != p.peer.w {
			p.crosses = 1 + p.peer.w.index
		}
	}
	for i := range n.nodes {
		nd := &n.nodes[i]
		if next := nd.next; next != engine.Forever {
			nd.next = engine.Forever
			nd.w.wake(nd, next)
		}
	}
}

const (
	balanceEvery = 64 // windows
	maxImbalance = 24 // the largest load may exceed the mean by this part
)

// balanceLoads assigns nodes anew if the loads of the workers have drifted apart.
func (n *Network) balanceLoads() {
	s := &n.sched
	if s.windows++; s.windows < balanceEvery {
		return
	}
	s.windows = 0
	loads := make([]int64, len(s.workers))
	total := int64(0)
	for i := range n.nodes {
		nd := &n.nodes[i]
		loads[nd.w.index] += nd.weight()
		total += nd.weight()
	}
	mean := total / int64(len(loads))
	if slices.Max(loads) > mean+mean/maxImbalance {
		n.assignNodes()
	}
}

// weight is what the node costs, in the cost of a plain event.
func (nd *node) weight() int64 {
	if nd.sw != nil && nd.sw.slowPath {
		return 2 * nd.cost
	}
	return nd.cost
}

// divide returns the worker of each node, by id: successive parts of the order
// with about equal weights. Pinned nodes are the first worker's.
func divide(order []*node, workers int) []int {
	shares := make([]int, len(order))
	weight := (*node).weight
	if !slices.ContainsFunc(order, func(nd *node) bool { return nd.cost > 0 }) {
		weight = func(nd *node) int64 { return int64(1 + len(nd.ports)) }
	}
	var rest, used int64 // of nodes that are not pinned, and of the worker's so far
	for _, nd := range order {
		if nd.pinned {
			used += weight(nd)
		} else {
			rest += weight(nd)
		}
	}
	at := 0
	for _, nd := range order {
		if nd.pinned {
			continue
		}
		c := weight(nd)
		for at < workers-1 && used+c/2 > (used+rest)/int64(workers-at) {
			at, used = at+1, 0
		}
		shares[nd.id] = at
		used += c
		rest -= c
	}
	return shares
}

// byPod orders the nodes so that those with a short path between them are near
// each other: pod by pod, with a part of the top tier each. Pods are what
// remains connected without the switches that are farthest from hosts.
func (n *Network) byPod() []*node {
	level := make([]int, len(n.nodes)) // 1 + links to the nearest host; 0: none
	var queue []*node
	for _, h := range n.hosts {
		level[h.ID] = 1
		queue = append(queue, h.node)
	}
	for i := 0; i < len(queue); i++ {
		for _, p := range queue[i].ports {
			if to := p.peer.node; level[to.id] == 0 {
				level[to.id] = level[queue[i].id] + 1
				queue = append(queue, to)
			}
		}
	}
	top := slices.Max(level)
	var tops []*node
	var pods [][]*node
	seen := make([]bool, len(n.nodes))
	for i := range n.nodes {
		nd := &n.nodes[i]
		if level[i] == top {
			tops = append(tops, nd)
		}
		if seen[i] || level[i] == top {
			continue
		}
		pod := []*node{nd}
		seen[i] = true
		for j := 0; j < len(pod); j++ {
			for _, p := range pod[j].ports {
				if to := p.peer.node; !seen[to.id] && level[to.id] != top {
					seen[to.id] = true
					pod = append(pod, to)
				}
			}
		}
		pods = append(pods, pod)
	}
	order := make([]*node, 0, len(n.nodes))
	for i, pod := range pods {
		order = append(order, pod...)
		order = append(order, tops[len(tops)*i/len(pods):len(tops)*(i+1)/len(pods)]...)
	}
	if len(pods) == 0 {
		order = tops
	}
	return order
}
