package lateness

import (
	"sort"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

const (
	controlClass = 8 // the queue that PFC never pauses
	classes      = controlClass + 1
	notQueued    = -1 // class of a transmission that no queue held
)

// record is one packet in one queue.
type record struct {
	enqueued engine.Time
	started  engine.Time // its transmission; Forever while it waits
	busy     engine.Time // when the busy period began
	ready    engine.Time // available time of the wire when it joined; see portLog

	// In the wire's available time, were there no pauses: when its transmission
	// ends. And all the time that packets up to this one take on the wire.
	ends, work engine.Time

	onWire  engine.Time // its transmission time; 0 if it left without
	sent    engine.Time // Packet.Sent
	party   int32
	size    int32 // when it joined: what the buffer is charged
	ingress model.PortID
	kind    sim.Kind
}

// queue is the log of one class of one port. Indexes of records count from the
// start of the run; base is that of the first one kept.
type queue struct {
	id     int32
	port   *portLog
	class  int8
	base   int
	list   []record
	next   int           // index of the first record that waits
	packet []*sim.Packet // those that wait, to compare pointers only
	ownEnd engine.Time   // when its last transmission ends
	pauses pauseLog

	// The list's values for those that wait are provisional: they are computed
	// when an account needs them.
	extended int64 // generation of accounts

	from map[model.PortID]*ingressLog
}

func (q *queue) at(i int) *record { return &q.list[i-q.base] }

func (q *queue) end() int { return q.base + len(q.list) }

// ingressLog lists the records of a queue that came in by one port.
type ingressLog struct {
	index []int
	bytes []int64 // of all up to this one
}

// between returns the bytes of the records from index i up to j.
func (l *ingressLog) between(i, j int) int64 {
	a, b := sort.SearchInts(l.index, i), sort.SearchInts(l.index, j)
	if a == b {
		return 0
	}
	if a == 0 {
		// The first entry is only kept for its sum where others were forgotten.
		return l.bytes[b-1]
	}
	return l.bytes[b-1] - l.bytes[a-1]
}

// joined returns how many records joined the queue up to an instant, and left
// how many began their transmission: as indexes, those between wait then.
func (q *queue) joined(t engine.Time) int {
	return q.base + sort.Search(len(q.list), func(i int) bool { return q.list[i].enqueued > t })
}

func (q *queue) left(t engine.Time) int {
	return q.base + sort.Search(len(q.list), func(i int) bool { return q.list[i].started > t })
}

// join logs a packet that joins.
func (q *queue) join(now engine.Time, p *sim.Packet, party int32, horizon engine.Time) {
	if len(q.list) == cap(q.list) {
		q.forget(horizon)
	}
	r := record{
		enqueued: now, started: engine.Forever, busy: now, ready: q.availableNow(now),
		sent: p.Sent, party: party, size: p.Size, ingress: p.Ingress(), kind: p.Kind,
	}
	if q.next < q.end() || now < q.ownEnd {
		r.busy = q.at(q.end() - 1).busy
	}
	q.list = append(q.list, r)
	q.packet = append(q.packet, p)
}

// leave logs that a packet leaves, and reports whether the queue held it.
// Packets before it are gone without a trace: a program ended them.
func (q *queue) leave(now engine.Time, p *sim.Packet) bool {
	for i, other := range q.packet {
		if other != p {
			continue
		}
		for range i + 1 {
			r := q.at(q.next)
			r.started = now
			q.settle(q.next, 0)
			q.next++
		}
		q.packet = q.packet[:copy(q.packet, q.packet[i+1:])]
		return true
	}
	return false
}

// settle computes a record's place in the queue without pauses.
func (q *queue) settle(i int, onWire engine.Time) {
	r := q.at(i)
	r.onWire = onWire
	r.ends, r.work = r.ready, 0
	if i > q.base {
		before := q.at(i - 1)
		r.ends, r.work = max(r.ready, before.ends), before.work
	}
	r.ends += onWire
	r.work += onWire
}

// extend settles the records that wait, as if they were sent as they are.
func (q *queue) extend(generation int64) {
	if q.extended == generation {
		return
	}
	q.extended = generation
	for i := q.next; i < q.end(); i++ {
		q.settle(i, q.port.port.TransmitTime(q.at(i).size))
	}
}

// forget drops what ended before the horizon, but for the last record, whose
// sums go on.
func (q *queue) forget(horizon engine.Time) {
	n := sort.Search(q.next-q.base, func(i int) bool { return q.list[i].started+q.list[i].onWire >= horizon })
	if n--; n < len(q.list)/2 || n <= 0 {
		return
	}
	q.list = q.list[:copy(q.list, q.list[n:])]
	q.base += n
	for _, l := range q.from {
		if k := sort.SearchInts(l.index, q.base) - 1; k > 0 {
			l.index = l.index[:copy(l.index, l.index[k:])]
			l.bytes = l.bytes[:copy(l.bytes, l.bytes[k:])]
		}
	}
}

// portLog is the log of a port's wire. The time that other packets hold the
// wire is not available to a queue.
type portLog struct {
	port   *sim.Port
	index  int32
	peer   int32
	lag    engine.Time // of a pause frame from the peer
	queues [classes]*queue
	list   []transmission
}

type transmission struct {
	start, onWire engine.Time
	before        engine.Time // time on the wire of all before it
	party         int32
	class         int8 // of its queue, or notQueued
	priority      int8
	lost          bool // on the link
}

func (t *transmission) end() engine.Time { return t.start + t.onWire }

// transmit logs a transmission.
func (l *portLog) transmit(t transmission, horizon engine.Time) {
	if n := len(l.list); n > 0 {
		t.before = l.list[n-1].before + l.list[n-1].onWire
		if n == cap(l.list) {
			k := sort.Search(n, func(i int) bool { return l.list[i].end() >= horizon })
			if k--; k >= n/2 && k > 0 {
				l.list = l.list[:copy(l.list, l.list[k:])]
			}
		}
	}
	l.list = append(l.list, t)
}

// last returns the position of the last transmission that started up to t, or
// -1.
func (l *portLog) last(t engine.Time) int {
	return sort.Search(len(l.list), func(i int) bool { return l.list[i].start > t }) - 1
}

// held returns for how long the wire was busy before t.
func (l *portLog) used(t engine.Time) engine.Time {
	k := l.last(t)
	if k < 0 {
		return 0
	}
	return l.list[k].before + min(t-l.list[k].start, l.list[k].onWire)
}

// own returns the time that packets of the queue held the wire up to t.
func (q *queue) own(t engine.Time) engine.Time {
	m := q.left(t)
	if m == q.base {
		return 0
	}
	r := q.at(m - 1)
	return r.work - max(0, r.started+r.onWire-t)
}

// availableNow is available at the end of the log.
func (q *queue) availableNow(now engine.Time) engine.Time {
	available := now
	if n := len(q.port.list); n > 0 {
		last := &q.port.list[n-1]
		available -= last.before + min(now-last.start, last.onWire)
	}
	if q.next > q.base {
		available += q.at(q.next-1).work - max(0, q.ownEnd-now)
	}
	return available
}

// available returns how long the wire was not held by others up to t.
func (q *queue) available(t engine.Time) engine.Time { return t - q.port.used(t) + q.own(t) }
