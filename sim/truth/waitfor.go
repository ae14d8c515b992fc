package truth

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// WaitFor returns the wait-for graph of this instant. It reads every packet
// that waits somewhere. All nodes must have reached the instant: call it
// between runs, or from Network.At.
//
// A paused queue waits for what its neighbour holds of it, not for the flows in
// it. A queue that is not paused drains: it waits for the flows in it, which
// compete for the wire. Where a paused queue has no edge, the neighbour holds
// nothing of it any more: a RESUME is in flight, or the pause will expire.
func WaitFor(n *sim.Network) *Graph {
	b := builder{
		net: n, g: &Graph{At: n.Now(), fabric: n.Fabric()},
		flows: map[Node]Count{}, payload: map[int]int64{}, hosts: map[model.NodeID]bool{}, here: map[Node]Count{},
	}
	for _, p := range n.Ports() {
		for prio := range model.Priority(priorities) {
			if p.Paused(prio) || p.QueuePackets(prio) > 0 {
				b.queue(p, prio)
			}
		}
		b.sharing(p)
	}
	b.unsent()
	for flow, count := range b.flows {
		b.g.Nodes = append(b.g.Nodes, State{Node: flow, Name: b.flowName(flow), Count: count})
	}
	b.g.finish()
	return b.g
}

// builder builds a Graph.
type builder struct {
	net     *sim.Network
	g       *Graph
	flows   map[Node]Count // packets of each flow in any queue
	payload map[int]int64  // of it, by flow
	hosts   map[model.NodeID]bool

	// Of one queue, by flow and by ingress port.
	here map[Node]Count
	from []Count
}

// queue adds a queue, its flows, and what it waits for.
func (b *builder) queue(p *sim.Port, prio model.Priority) {
	queue, paused := QueueNode(portOf(p), prio), p.Paused(prio)
	b.g.Nodes = append(b.g.Nodes, State{Node: queue, Name: b.g.Name(queue), Paused: paused, Count: waitingIn(p, prio)})
	if h := p.Peer().Host(); h != nil && paused {
		b.host(h)
		b.edge(queue, HostNode(h.ID), ReasonPausedByHost, Count{})
	}
	clear(b.here)
	clear(b.from)
	p.EachQueued(prio, func(pkt *sim.Packet) {
		flow := FlowNode(pkt.Flow())
		b.here[flow] = b.here[flow].plus(pkt)
		if !flow.Reverse {
			b.payload[flow.Flow] += int64(pkt.Payload)
		}
		in := int32(pkt.Ingress())
		b.from = reach(b.from, in)
		b.from[in] = b.from[in].plus(pkt)
	})
	for flow, count := range b.here {
		all := b.flows[flow]
		b.flows[flow] = Count{all.Packets + count.Packets, all.Bytes + count.Bytes}
		b.edge(flow, queue, ReasonQueued, count)
		if !paused {
			b.edge(queue, flow, ReasonContends, count)
		}
	}
	for in, count := range b.from {
		if in == 0 || count.Packets == 0 {
			continue // packets of the switch itself have no ingress port
		}
		if up := p.Switch().Ports()[in-1].Peer(); up.Paused(prio) {
			b.edge(QueueNode(portOf(up), prio), queue, ReasonPausedBySwitch, count)
		}
	}
}

// sharing connects the queues of a port that are served round robin.
func (b *builder) sharing(p *sim.Port) {
	drains := func(prio model.Priority) bool { return p.QueuePackets(prio) > 0 && !p.Paused(prio) }
	for from := range model.Priority(priorities) {
		for to := range model.Priority(priorities) {
			if from != to && drains(from) && drains(to) {
				b.edge(QueueNode(portOf(p), from), QueueNode(portOf(p), to), ReasonSharesPort, waitingIn(p, to))
			}
		}
	}
}

func waitingIn(p *sim.Port, prio model.Priority) Count {
	return Count{int64(p.QueuePackets(prio)), model.Bytes(p.QueueBytes(prio))}
}

func (b *builder) host(h *sim.Host) {
	if !b.hosts[h.ID] {
		b.hosts[h.ID] = true
		b.g.Nodes = append(b.g.Nodes, State{Node: HostNode(h.ID), Name: h.Name})
	}
}

// unsent adds flows with bytes left to send whose host is paused: bytes that
// are neither acknowledged nor in a queue, which includes those in flight. A
// host with several ports counts as paused only if all are.
func (b *builder) unsent() {
	for _, r := range b.net.Records() {
		flow := FlowNode(r.ID, false)
		if all := int64(r.Spec.Bytes); r.Finished || all > 0 && r.Sent+b.payload[r.ID] >= all {
			continue
		}
		ports := b.net.Host(r.Spec.Src).Ports()
		if slices.ContainsFunc(ports, func(p *sim.Port) bool { return !p.Paused(r.Spec.Priority) }) {
			continue
		}
		if _, waits := b.flows[flow]; !waits {
			b.flows[flow] = Count{}
		}
		for _, p := range ports {
			b.edge(flow, QueueNode(portOf(p), r.Spec.Priority), ReasonUnsent, Count{})
		}
	}
}

func (b *builder) edge(from, to Node, why Reason, c Count) {
	b.g.Edges = append(b.g.Edges, Edge{from, to, why, c})
}

func (c Count) plus(p *sim.Packet) Count {
	return Count{c.Packets + 1, c.Bytes + model.Bytes(p.Size)}
}

func portOf(p *sim.Port) model.Port { return model.Port{Node: p.Node, Port: p.ID} }

func (b *builder) flowName(n Node) string {
	if n.Flow < 0 {
		return "no flow"
	}
	_, spec := b.net.FlowKey(n.Flow)
	f := b.net.Fabric()
	src, dst := f.Node(spec.Src).Name, f.Node(spec.Dst).Name
	if n.Reverse {
		return fmt.Sprintf("flow %d back %s>%s", n.Flow, dst, src)
	}
	return fmt.Sprintf("flow %d %s>%s", n.Flow, src, dst)
}
