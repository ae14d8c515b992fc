package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// Host is an endpoint of flows: one or more NIC ports, each with a round-robin
// scheduler of the flows that may send.
type Host struct {
	ID   model.NodeID
	Name string

	net    *Network
	w      *worker
	node   *node
	ports  []*Port
	nics   []nic
	slowRx *slowRxBuffer // receive buffer of a slow receiver; nil usually
	mux    *mux          // of a host of that role

	flowObserver FlowObserver // of its RDMA flows; nil: none

	pausing [numPriorities]int // faults that pause its switches, counted per priority

	cores      map[uint8]*core // of computations; nil: none yet
	stragglers []*Straggler    // faults that slow it

	sendQueues map[uint32]*sendQueue // of flows with a Queue; nil: none yet

	receiver func(p *Packet) // of packets without a flow; nil usually
}

// nic schedules the flows of one port. A flow is in at most one of its lists,
// or in none while it has nothing to send or its window is full.
type nic struct {
	ready   flowList                // may send now, served round robin
	waiting flowHeap                // paced: due at nextSend
	parked  [numPriorities]flowList // their priority is paused

	roundRobin roundRobin // instead of all these with NS3
}

func newHost(n *Network, tn *topo.Node, ports []*Port) *Host {
	h := &Host{ID: tn.ID, Name: tn.Name, net: n, ports: ports, nics: make([]nic, len(ports))}
	for _, p := range ports {
		p.host = h
	}
	if tn.Role == topo.Mux {
		h.mux = newMux(h)
	}
	return h
}

func (p *Port) nic() *nic { return &p.host.nics[p.ID-1] }

// activate adds a flow to its port's scheduler, unless it is in it.
func (f *flow) activate() {
	if f.nicState != notListed {
		if f.nicState == inRoundRobin {
			f.port.kick()
		}
		return
	}
	c := f.port.nic()
	if f.net.cfg.NS3 {
		c.roundRobin.addFlow(f)
	} else if f.nextSend > f.src.w.now {
		c.waiting.push(f)
	} else {
		c.ready.push(f)
	}
	f.port.kick()
}

// nextPacket makes the next packet of the flow whose turn it is, or returns nil
// and schedules the port for the next flow that is due.
func (h *Host) nextPacket(p *Port) *Packet {
	now, c := h.w.now, p.nic()
	if h.net.cfg.NS3 {
		return c.roundRobin.nextPacket(p, now)
	}
	for len(c.waiting) > 0 && c.waiting[0].nextSend <= now {
		c.ready.push(c.waiting.pop())
	}
	for f := c.ready.pop(); f != nil; f = c.ready.pop() {
		switch {
		case p.Paused(f.prio):
			c.parked[f.prio].push(f)
		case f.nextSend > now:
			c.waiting.push(f)
		case !f.maySend():
			// Nothing to send, or a full window: an acknowledgement reactivates
			// it.
		default:
			pkt := f.makePacket()
			if f.maySend() {
				if f.nextSend <= now+p.serialize(pkt.Size) {
					c.ready.push(f)
				} else {
					c.waiting.push(f)
				}
			}
			return pkt
		}
	}
	if len(c.waiting) > 0 {
		p.wakeBy(c.waiting[0].nextSend)
	}
	return nil
}

// backlogged reports whether a flow can send when the port is free again. If
// the next one is due later, it schedules the port for it.
func (h *Host) backlogged(p *Port) bool {
	c := p.nic()
	if c.ready.head != nil || len(c.roundRobin.flows) > 0 {
		return true
	}
	if len(c.waiting) == 0 {
		return false
	}
	due := c.waiting[0].nextSend
	if due <= p.busyUntil {
		return true
	}
	p.wakeBy(due)
	return false
}

// wakeBy schedules the port's scheduler, unless it is scheduled before.
func (p *Port) wakeBy(at engine.Time) {
	if at < p.wakeAt {
		p.wakeAt = max(at, p.w.now)
		p.scheduleAt(p.wakeAt)
	}
}

// resumed reactivates the flows of a priority that is no longer paused.
func (h *Host) resumed(p *Port, prio model.Priority) {
	c := p.nic()
	for f := c.parked[prio].pop(); f != nil; f = c.parked[prio].pop() {
		c.ready.push(f)
	}
}

// receive handles a packet that arrived.
func (h *Host) receive(p *Port, pkt *Packet) {
	if h.slowRx != nil {
		h.slowRx.enqueue(p, pkt)
		return
	}
	h.deliver(p, pkt)
}

// deliver passes a packet to its flow, mux or receiver.
func (h *Host) deliver(p *Port, pkt *Packet) {
	n, w := h.net, h.w
	if pkt.flow == noFlow {
		if h.mux != nil && h.mux.receive(p, pkt) {
			return
		}
		for pkt.tunnelled() && n.routes.Owns(h.ID, pkt.Extra.Outer[0].Dst) {
			w.decapsulate(pkt)
		}
		w.counts.Delivered++
		if n.observer != nil {
			n.observer.Delivered(w.now, pkt, h)
		}
		if h.receiver != nil {
			h.receiver(pkt)
		}
		w.pool.put(pkt)
		return
	}
	f := n.flowOf(pkt)
	if f == nil {
		n.drop(pkt, p, DropHost)
		return
	}
	back := pkt.direction == 1
	if back && f.src != h || !back && f.dst != h {
		if h.mux == nil || !h.mux.receive(p, pkt) {
			n.drop(pkt, p, DropHost) // misrouted: a real stack ignores it too
		}
		return
	}
	w.counts.Delivered++
	if n.observer != nil {
		n.observer.Delivered(w.now, pkt, h)
	}
	if back {
		f.receiveAck(pkt)
	} else {
		f.receiveData(pkt)
	}
	w.pool.put(pkt)
}

// nicState is the list of its NIC that a flow is in.
type nicState uint8

const (
	notListed nicState = iota
	inReady
	inWaiting
	inRoundRobin
)

// flowList is an intrusive FIFO of flows.
type flowList struct{ head, tail *flow }

func (l *flowList) push(f *flow) {
	f.nicState, f.next = inReady, nil
	if l.tail == nil {
		l.head = f
	} else {
		l.tail.next = f
	}
	l.tail = f
}

func (l *flowList) pop() *flow {
	f := l.head
	if f == nil {
		return nil
	}
	l.head = f.next
	if l.head == nil {
		l.tail = nil
	}
	f.nicState, f.next = notListed, nil
	return f
}

// flowHeap is a binary heap of flows by (nextSend, id).
type flowHeap []*flow

func (h flowHeap) less(i, j int) bool {
	if h[i].nextSend != h[j].nextSend {
		return h[i].nextSend < h[j].nextSend
	}
	return h[i].id < h[j].id
}

func (h flowHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
}

func (h flowHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h flowHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

func (h *flowHeap) push(f *flow) {
	f.nicState = inWaiting
	*h = append(*h, f)
	h.up(len(*h) - 1)
}

func (h *flowHeap) pop() *flow {
	a := *h
	f := a[0]
	last := len(a) - 1
	a.swap(0, last)
	a[last] = nil
	*h = a[:last]
	h.down(0)
	f.nicState = notListed
	return f
}
