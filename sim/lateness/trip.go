package lateness

import (
	"sort"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// trip follows a packet through the log. A link carries one packet at a time,
// so the times of a transmission say which packet arrived.
type trip struct {
	oracle   *Oracle
	now      engine.Time
	sent, at engine.Time
	inFlight bool
	wire     engine.Time
	host     engine.Time // in a slow receiver
	end      *sim.Host   // that it reached
	data     int         // hops of the packet
	ack      int         // the first hop of its acknowledgement
	hops     []hop
}

type hop struct {
	Hop
	queue  *queue // nil where the packet was made as the wire was free
	record int
}

// follow follows a packet, and its acknowledgement if that is asked for.
func (t *trip) follow(key model.FlowKey, sent engine.Time, roundTrip bool) error {
	o := t.oracle
	who, ok := o.partyOf[partyKey{key: key}]
	if !ok || o.parties[who].origin < 0 {
		return ErrUnknown
	}
	l := o.ports[o.parties[who].origin]
	k := l.last(sent)
	if k < 0 || l.list[k].start != sent || l.list[k].party != who || sent < o.horizon(o.net.Now()) || sent > t.now {
		return ErrUnknown
	}
	x := &l.list[k]
	t.sent = x.start
	first := hop{Hop: Hop{Queue: Queue{portOf(l.port), uint8(x.priority)}, Enqueued: x.start, Began: x.start}}
	if x.class != notQueued {
		q := l.queues[x.class]
		first.queue, first.record = q, q.left(x.start)-1
		first.Queue, first.Enqueued = queueName(q), q.at(first.record).enqueued
		t.sent = first.Enqueued
	}
	if err := t.walk(l, first, x.onWire, who); err != nil || t.inFlight || !roundTrip {
		return err
	}
	return t.back(key, who, x.start)
}

// Nearest returns when the host sent the packet of a key that it sent nearest to
// an instant: hosts measure with clocks of their own. It is false if the log
// has none.
func (o *Oracle) Nearest(key model.FlowKey, to engine.Time) (sent engine.Time, ok bool) {
	who, ok := o.partyOf[partyKey{key: key}]
	if !ok || o.parties[who].origin < 0 {
		return 0, false
	}
	l, best := o.ports[o.parties[who].origin], engine.Forever
	k := l.last(to)
	for i := k; i >= 0 && best == engine.Forever; i-- {
		if l.list[i].party == who {
			sent, best = l.list[i].start, to-l.list[i].start
		}
	}
	for i := k + 1; i < len(l.list) && l.list[i].start-to < best; i++ {
		if l.list[i].party == who {
			return l.list[i].start, true
		}
	}
	return sent, best != engine.Forever
}

// walk follows a packet from its first queue to a host.
func (t *trip) walk(l *portLog, h hop, onWire engine.Time, who int32) error {
	for {
		if !h.Waiting && l.list[l.last(h.Began)].lost {
			return ErrLost
		}
		if !t.add(l, &h, onWire) {
			return nil
		}
		arrival := h.Began + onWire + l.port.Delay()
		l = t.oracle.ports[l.peer]
		if l.port.Host() != nil {
			t.at, t.end = arrival, l.port.Host()
			return nil
		}
		q, i := t.oracle.joinedAt(l, arrival, who)
		if q == nil {
			return ErrLost
		}
		r := q.at(i)
		l, onWire = q.port, r.onWire
		if h = t.hop(q, i); !h.Waiting && onWire == 0 {
			return ErrLost
		}
	}
}

// add adds a hop and reports whether the packet has arrived at its end.
func (t *trip) add(l *portLog, h *hop, onWire engine.Time) bool {
	if !h.Waiting {
		h.Wire = min(onWire+l.port.Delay(), t.now-h.Began)
	}
	if h.queue != nil {
		h.Paused = h.queue.pauses.paused(h.Began) - h.queue.pauses.paused(h.Enqueued)
	}
	h.Queued = h.Began - h.Enqueued - h.Paused
	t.wire += h.Wire
	t.hops = append(t.hops, *h)
	t.at = t.now
	t.inFlight = h.Waiting || h.Began+onWire+l.port.Delay() > t.now
	return !t.inFlight
}

// joinedAt returns the queue and the record of a party's packet that arrived at
// a switch's port at an instant; nil if it joined none.
func (o *Oracle) joinedAt(in *portLog, at engine.Time, who int32) (*queue, int) {
	for _, p := range in.port.Switch().Ports() {
		for _, q := range o.ports[o.portIndex(p)].queues {
			i := q.base + sort.Search(len(q.list), func(i int) bool { return q.list[i].enqueued >= at })
			for ; i < q.end() && q.at(i).enqueued == at; i++ {
				if r := q.at(i); r.party == who && r.ingress == in.port.ID {
					return q, i
				}
			}
		}
	}
	return nil, 0
}

// back follows a packet that arrived through the host's receive buffer, and its
// acknowledgement.
func (t *trip) back(key model.FlowKey, who int32, sent engine.Time) error {
	o, arrival := t.oracle, t.at
	t.data = len(t.hops)
	if o.net.Fabric().Node(t.end.ID).Role == topo.Mux {
		return nil
	}
	received, ok := o.received[t.end.ID].find(who, arrival, sent)
	if !ok || received > t.now {
		t.at, t.host, t.inFlight = t.now, t.now-arrival, true // in the buffer of a slow host
		return nil
	}
	t.at, t.host = received, received-arrival
	q, i := o.ackOf(t.end, key, received, sent)
	if q == nil {
		return nil
	}
	r := q.at(i)
	t.ack = len(t.hops)
	h := t.hop(q, i)
	if !h.Waiting && r.onWire == 0 {
		return ErrLost
	}
	return t.walk(q.port, h, r.onWire, r.party)
}

// hop returns the hop of a record.
func (t *trip) hop(q *queue, i int) hop {
	r := q.at(i)
	h := hop{Hop: Hop{Queue: queueName(q), Enqueued: r.enqueued, Began: r.started, Waiting: r.started > t.now}, queue: q, record: i}
	if h.Waiting {
		h.Began = t.now
	}
	return h
}

// ackOf returns the acknowledgement that a packet caused when its host received
// it; nil if there was none.
func (o *Oracle) ackOf(h *sim.Host, key model.FlowKey, received, sent engine.Time) (*queue, int) {
	for _, p := range h.Ports() {
		for _, q := range o.ports[o.portIndex(p)].queues {
			i := q.base + sort.Search(len(q.list), func(i int) bool { return q.list[i].enqueued >= received })
			for ; i < q.end() && q.at(i).enqueued == received; i++ {
				r := q.at(i)
				who := &o.parties[r.party]
				if r.sent == sent && (r.kind == sim.KindAck || r.kind == sim.KindNack || r.kind == sim.KindTCP) && who.acks && answers(who.key, key) {
					return q, i
				}
			}
		}
	}
	return nil, 0
}

// answers reports whether a key is that of acknowledgements of another. RoCEv2
// does not swap its ports.
func answers(back, key model.FlowKey) bool {
	swapped := back.SrcPort == key.DstPort && back.DstPort == key.SrcPort
	same := back.SrcPort == key.SrcPort && back.DstPort == key.DstPort
	return back.Src == key.Dst && back.Dst == key.Src && (swapped || same)
}

func portOf(p *sim.Port) model.Port { return model.Port{Node: p.Node, Port: p.ID} }

func queueName(q *queue) Queue { return Queue{portOf(q.port.port), uint8(q.class)} }
