package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// Ingress returns the port by which the packet entered the switch that holds
// it; 0 if the switch originated it.
func (p *Packet) Ingress() model.PortID { return p.ingress }

// Flow returns the index of the packet's flow in the order of AddFlows, and
// whether the packet goes from its destination to its source; -1 for none.
func (p *Packet) Flow() (id int, reverse bool) { return int(p.flow), p.direction == 1 }

// EachQueued calls f for every packet in a priority's queue, from the head on.
// f must not keep or change it.
func (p *Port) EachQueued(prio model.Priority, f func(*Packet)) {
	for pkt := p.queues[prio].head; pkt != nil; pkt = pkt.next {
		f(pkt)
	}
}

// EachArriving calls f for every packet in flight to this port, in order. f
// must not keep or change it.
func (p *Port) EachArriving(f func(*Packet)) {
	for pkt := p.inbox.head; pkt != nil; pkt = pkt.next {
		f(pkt)
	}
}

// Pausing reports whether this end has paused a priority of its neighbour.
func (p *Port) Pausing(prio model.Priority) bool { return p.pfcStop>>prio&1 != 0 }

// ControlQueue returns the length of the queue that PFC never pauses.
func (p *Port) ControlQueue() (bytes int64, packets int32) {
	q := &p.queues[controlQueue]
	return q.bytes, q.packets
}

// TransmitTime returns how long a packet of a size occupies the link.
func (p *Port) TransmitTime(size int32) engine.Time { return p.serialize(size) }

// Delay returns the propagation delay of the link.
func (p *Port) Delay() engine.Time { return p.delay }

// PauseFrameTime returns how long a pause frame that this end sends occupies the
// link.
func (p *Port) PauseFrameTime() engine.Time { return p.serialize(p.w.net.pfcSize) }

// PauseFrameSize returns the bytes of a pause frame on the wire.
func (n *Network) PauseFrameSize() model.Bytes { return model.Bytes(n.pfcSize) }

// Host returns the host at this end, or nil.
func (p *Port) Host() *Host { return p.host }

// Switch returns the switch at this end, or nil.
func (p *Port) Switch() *Switch { return p.sw }

// Ports returns all ports of the network, by node and number.
func (n *Network) Ports() []*Port { return n.ports }

// Switches returns all switches.
func (n *Network) Switches() []*Switch { return n.switches }

// Hosts returns all hosts.
func (n *Network) Hosts() []*Host { return n.hosts }

// Ports returns the host's ports; port 1 is the first.
func (h *Host) Ports() []*Port { return h.ports }

// ReceiveBacklog returns the number of packets in the receive buffer of a slow
// receiver.
func (h *Host) ReceiveBacklog() int64 {
	if h.slowRx == nil {
		return 0
	}
	return int64(h.slowRx.waiting.packets)
}

// Flows returns how many flows there are; their ids count from 0.
func (n *Network) Flows() int { return len(n.flows) }

// FlowKey returns the 5-tuple of a flow and its specification.
func (n *Network) FlowKey(id int) (model.FlowKey, traffic.Flow) {
	return n.flows[id].key, n.flows[id].spec
}

// Observer returns the observer, or nil; another that replaces it can call it.
func (n *Network) Observer() Observer { return n.observer }

// BackKey returns the 5-tuple of the packets that a flow's destination sends.
func (n *Network) BackKey(id int) model.FlowKey { return n.flows[id].reverseKey }

// Config returns the network's settings.
func (n *Network) Config() Config { return n.cfg }

// AcksWithData reports whether acknowledgements share queues with data at switches.
func (n *Network) AcksWithData() bool { return !n.cfg.AckControl || n.cfg.AckHosts }
