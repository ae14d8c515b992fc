package lateness

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Oracle logs a network for accounts of its packets. It is a sim.Observer that
// passes on every event to the one before it.
type Oracle struct {
	sim.Observer
	net    *sim.Network
	window engine.Time
	step   engine.Time // see pieces; 0: the time of a full frame

	first   []int32 // by node: index of its first port in Network.Ports
	ports   []*portLog
	queues  []*queue
	holding map[ingress][]*queue // queues that ever held packets of an ingress

	received []receiveLog // by node

	parties    []party
	partyOf    map[partyKey]int32
	free       []int32
	sweepAt    int
	generation int64
}

// ingress is an ingress counter: a port and a class of a switch.
type ingress struct {
	port  int32
	class int8
}

// party is the sender of packets: one direction of a flow, or whatever else has
// a key.
type party struct {
	partyKey
	origin int32 // the host's port that sent its last packet; -1 for none
	live   bool
}

type partyKey struct {
	key  model.FlowKey
	acks bool // from the flow's destination: their key may be that of another flow's data
	pfc  bool // pause frames have no flow
}

var _ sim.QueueObserver = (*Oracle)(nil)

// Watch makes an Oracle the network's observer. The log has the last window of
// simulated time. The run must not have started.
func Watch(n *sim.Network, window time.Duration) (*Oracle, error) {
	if window <= 0 {
		return nil, fmt.Errorf("lateness: window %v, want above 0", window)
	}
	if n.Now() != 0 || n.Counts.Events != 0 {
		return nil, fmt.Errorf("lateness: the run is at %v, want one that has not started", n.Now().Model())
	}
	o := &Oracle{
		Observer: n.Observer(), net: n, window: engine.Of(window),
		first: make([]int32, len(n.Fabric().Nodes())), holding: map[ingress][]*queue{},
		partyOf: map[partyKey]int32{}, sweepAt: 1 << 10,
		received: make([]receiveLog, len(n.Fabric().Nodes())),
	}
	if o.Observer == nil {
		o.Observer = sim.NopObserver{}
	}
	for i, p := range n.Ports() {
		if p.ID == 1 {
			o.first[p.Node] = int32(i)
		}
	}
	for i, p := range n.Ports() {
		l := &portLog{
			port: p, index: int32(i), peer: o.portIndex(p.Peer()),
			lag: p.Delay() + p.Peer().PauseFrameTime(),
		}
		for c := range l.queues {
			l.queues[c] = &queue{id: int32(len(o.queues)), port: l, class: int8(c)}
			o.queues = append(o.queues, l.queues[c])
		}
		o.ports = append(o.ports, l)
		before := p.Tap()
		p.SetTap(func(now engine.Time, pkt *sim.Packet) {
			if before != nil {
				before(now, pkt)
			}
			o.transmitted(now, pkt, l)
		})
	}
	n.Observe(o)
	return o, nil
}

func (o *Oracle) portIndex(p *sim.Port) int32 { return o.first[p.Node] + int32(p.ID) - 1 }

// grain returns the longest piece of a pause.
func (o *Oracle) grain(q *queue) engine.Time {
	if o.step > 0 {
		return o.step
	}
	return q.port.port.TransmitTime(int32(o.net.MaxFrame()))
}

// horizon is where the log begins.
func (o *Oracle) horizon(now engine.Time) engine.Time { return now - o.window }

// Queued is part of sim.QueueObserver.
func (o *Oracle) Queued(now engine.Time, p *sim.Packet, out *sim.Port) {
	if before, ok := o.Observer.(sim.QueueObserver); ok {
		before.Queued(now, p, out)
	}
	l := o.ports[o.portIndex(out)]
	class := int8(p.Priority)
	if p.Control {
		class = controlClass
	}
	q := l.queues[class]
	who := o.intern(p, l)
	q.join(now, p, who, o.horizon(now))
	if in := p.Ingress(); in != 0 && out.Switch() != nil {
		o.hold(q, in, int64(p.Size))
	}
}

// hold notes the ingress of the queue's newest record.
func (o *Oracle) hold(q *queue, in model.PortID, size int64) {
	if q.from == nil {
		q.from = map[model.PortID]*ingressLog{}
	}
	l := q.from[in]
	if l == nil {
		l = &ingressLog{}
		q.from[in] = l
		key := ingress{o.first[q.port.port.Node] + int32(in) - 1, q.class}
		o.holding[key] = append(o.holding[key], q)
	}
	if n := len(l.bytes); n > 0 {
		size += l.bytes[n-1]
	}
	l.index = append(l.index, q.end()-1)
	l.bytes = append(l.bytes, size)
}

// Dequeued is part of sim.Observer. A packet that a program or a reset ends has
// no transmission.
func (o *Oracle) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) {
	o.Observer.Dequeued(now, p, out)
	o.ports[o.portIndex(out)].queues[p.Priority].leave(now, p)
}

// transmitted logs a transmission that begins.
func (o *Oracle) transmitted(now engine.Time, p *sim.Packet, l *portLog) {
	t := transmission{start: now, onWire: l.port.TransmitTime(p.Size), party: o.intern(p, l), class: notQueued, priority: int8(p.Priority)}
	if p.Kind != sim.KindPFC {
		if q := o.queueOf(now, p, l); q != nil {
			t.class = q.class
			q.settle(q.next-1, t.onWire)
			q.ownEnd = t.end()
		}
	}
	l.transmit(t, o.horizon(now))
}

// queueOf returns the queue that a packet left for its transmission, or nil.
func (o *Oracle) queueOf(now engine.Time, p *sim.Packet, l *portLog) *queue {
	data, control := l.queues[p.Priority], l.queues[controlClass]
	switch {
	case l.port.Switch() != nil && !p.Control:
		return data // Dequeued was called
	case control.leave(now, p):
		return control // a host may have moved it to another class since
	case data.leave(now, p):
		return data
	}
	return nil
}

// Dropped is part of sim.Observer.
func (o *Oracle) Dropped(now engine.Time, p *sim.Packet, at *sim.Port, why sim.Reason) {
	o.Observer.Dropped(now, p, at, why)
	l := o.ports[o.portIndex(at)]
	switch why {
	case sim.DropLinkDown: // with all that is in flight
		for k := len(l.list) - 1; k >= 0 && l.list[k].end()+at.Delay() > now; k-- {
			l.list[k].lost = true
		}
	case sim.DropHost:
		if at.Host() != nil {
			o.receive(now, p, at.Host())
		}
	case sim.DropSilent, sim.DropCorrupt:
		if k := len(l.list) - 1; k >= 0 && l.list[k].start == now && l.list[k].party == o.intern(p, l) {
			l.list[k].lost = true
		}
	}
}

// PauseChanged is part of sim.Observer.
func (o *Oracle) PauseChanged(now engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	o.Observer.PauseChanged(now, at, prio, stop)
	q := o.ports[o.portIndex(at)].queues[prio]
	if stop {
		q.pauses.begin(now, o.horizon(now))
	} else {
		q.pauses.resume(now)
	}
}

func (o *Oracle) partyKey(p *sim.Packet) partyKey {
	_, back := p.Flow()
	return partyKey{key: p.Key, acks: back, pfc: p.Kind == sim.KindPFC}
}

// intern returns the number of a packet's sender.
func (o *Oracle) intern(p *sim.Packet, l *portLog) int32 {
	k := o.partyKey(p)
	i, ok := o.partyOf[k]
	if !ok {
		if len(o.partyOf) >= o.sweepAt {
			o.sweep()
		}
		if n := len(o.free); n > 0 {
			i, o.free = o.free[n-1], o.free[:n-1]
			o.parties[i] = party{partyKey: k, origin: -1}
		} else {
			i = int32(len(o.parties))
			o.parties = append(o.parties, party{partyKey: k, origin: -1})
		}
		o.partyOf[k] = i
	}
	if l.port.Host() != nil {
		o.parties[i].origin = l.index
	}
	return i
}

// sweep forgets the parties that the log no longer names.
func (o *Oracle) sweep() {
	for _, l := range o.ports {
		for i := range l.list {
			o.parties[l.list[i].party].live = true
		}
	}
	for _, q := range o.queues {
		for i := range q.list {
			o.parties[q.list[i].party].live = true
		}
	}
	for i := range o.received {
		for _, r := range o.received[i].list {
			o.parties[r.party].live = true
		}
	}
	for i := range o.parties {
		p := &o.parties[i]
		if known, ok := o.partyOf[p.partyKey]; !p.live && ok && known == int32(i) {
			delete(o.partyOf, p.partyKey)
			o.free = append(o.free, int32(i))
		}
		p.live = false
	}
	o.sweepAt = max(1<<10, 2*len(o.partyOf))
}
