package fromgraph

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// victim returns the late packet. Its time begins when it joins its first
// switch: what it waits in its host is no part of its lateness.
func (b *builder) victim(source model.NodeID) *attribution.Victim {
	d := &b.detection
	v := &attribution.Victim{Flow: d.Victim, InFlight: d.InFlight, QueuedAt: -1, Size: b.out.MTU}
	seen, class := b.victimQueues()
	forward, first, wire := b.path(d.Victim, source, class, seen)
	v.Path = forward
	base := d.BaseRTT
	destination, ok := b.fabric.ByAddr(d.Victim.Dst)
	if ok {
		reverse, out, back := b.path(d.Victim.Reverse(), destination, class, nil)
		if base == 0 {
			base = first + wire + out + back
		}
		for _, q := range reverse {
			if q < len(b.g.Nodes) { // reported
				v.Reverse = append(v.Reverse, q)
			}
		}
	}
	v.Sent = b.axis.poll.Add(first - d.Latency)
	v.Took, v.Base = max(d.Latency-first, 0), max(base-first, 0)
	if d.InFlight {
		flow := b.g.Flow(d.Victim)
		for hop, q := range v.Path {
			for i := range b.g.QueuedFlows {
				if w := &b.g.QueuedFlows[i]; w.Flow == flow && w.Node == q && b.isFresh(q, v.Sent) {
					v.QueuedAt = hop // the last: the oldest packet is ahead of the others
				}
			}
		}
	}
	return v
}

// isFresh reports whether a queue's snapshot is younger than the packet: it may
// have been taken for another detection.
func (b *builder) isFresh(q int, sent model.Time) bool {
	n := &b.g.Nodes[q]
	return b.axis.time(n.Node, n.Snapshot) >= sent
}

// victimQueues returns the queue of each switch that reported the victim, and
// its class.
func (b *builder) victimQueues() (seen map[model.NodeID]int, class model.Priority) {
	seen, class = map[model.NodeID]int{}, b.detection.Class
	flow := b.g.Flow(b.detection.Victim)
	if flow < 0 {
		return seen, class
	}
	note := func(n int) {
		seen[b.g.Nodes[n].Node], class = n, b.g.Nodes[n].Priority
	}
	for i := range b.g.FlowEpochs {
		if b.g.FlowEpochs[i].Flow == flow {
			note(b.g.FlowEpochs[i].Node)
		}
	}
	for i := range b.g.QueuedFlows {
		if b.g.QueuedFlows[i].Flow == flow {
			note(b.g.QueuedFlows[i].Node)
		}
	}
	return seen, class
}

// path returns the queues of the switches that a flow's packets pass: where they
// were seen, else where the intended routes lead. first is the time on the
// host's link, wire that on the others.
func (b *builder) path(key model.FlowKey, from model.NodeID, class model.Priority, seen map[model.NodeID]int) (queues []int, first, wire time.Duration) {
	if !b.fabric.HasNode(from) {
		return nil, 0, 0
	}
	hops, _ := b.routes.Path(key, from)
	for _, h := range hops {
		port := b.fabric.Port(model.Port{Node: h.Node, Port: h.Out})
		if port == nil {
			continue
		}
		link := port.Delay + onWire(b.out.MTU, port.Rate)
		if !b.fabric.Node(h.Node).Role.IsSwitch() {
			first += link
			continue
		}
		wire += link
		q := provenance.Queue{Port: model.Port{Node: h.Node, Port: h.Out}, Priority: class}
		n, ok := seen[h.Node]
		if !ok {
			n = b.g.Node(q)
		}
		if n < 0 {
			n = len(b.out.Queues)
			b.out.Queues = append(b.out.Queues, b.record(q))
		}
		queues = append(queues, n)
	}
	return queues, first, wire
}
