package lateness

import (
	"slices"
	"sort"

	"github.com/weft-telemetry/weft/sim/engine"
)

// pauseID names a pause of a queue.
type pauseID struct{ queue, pause int32 }

// pieces cuts a pause wherever what the peer held of this link, or why, may
// change: where a packet joins or leaves one of its queues or such a queue is
// paused or resumed, a pause frame's flight later, and at least once in the
// time of a full frame, because a queue without pauses would drain meanwhile.
// The cause of a piece is that of its middle.
type pieces struct {
	start []engine.Time
	end   engine.Time
	cause [][]cause
	known []bool
}

// cause is one of the queues in which the peer of a paused queue holds bytes of
// their link.
type cause struct {
	queue   *queue
	bytes   int64
	first   int // of the records that wait
	at      engine.Time
	backlog backlog
}

func (p *pieces) endOf(i int) engine.Time {
	if i+1 < len(p.start) {
		return p.start[i+1]
	}
	return p.end
}

// find returns the piece of an instant.
func (p *pieces) find(t engine.Time) int {
	return sort.Search(len(p.start), func(i int) bool { return p.start[i] > t }) - 1
}

// downstream returns the queues in which the peer has held bytes of a queue.
func (o *Oracle) downstream(q *queue) []*queue { return o.holding[ingress{q.port.peer, q.class}] }

// pieces returns those of a pause.
func (l *ledger) pieces(q *queue, k int) *pieces {
	id := pauseID{q.id, int32(k)}
	if p := l.cut[id]; p != nil {
		return p
	}
	pause, lag := q.pauses.at(k), q.port.lag
	p := &pieces{start: []engine.Time{pause.begin}, end: min(pause.end, l.now)}
	from, to := max(pause.begin-lag, l.horizon), p.end-lag
	event := func(t engine.Time) {
		if t >= from && t < to {
			p.start = append(p.start, t+lag)
		}
	}
	event(from)
	for _, d := range l.oracle.downstream(q) {
		for i := d.joined(from); i < d.end() && d.at(i).enqueued < to; i++ {
			event(d.at(i).enqueued)
		}
		for i := d.left(from); i < d.end() && d.at(i).started < to; i++ {
			event(d.at(i).started)
		}
		for _, other := range d.pauses.list {
			event(other.begin)
			event(other.end)
		}
	}
	slices.Sort(p.start)
	p.start = slices.Compact(p.start)
	p.refine(l.oracle.grain(q), from+lag)
	p.cause, p.known = make([][]cause, len(p.start)), make([]bool, len(p.start))
	l.cut[id] = p
	return p
}

// refine cuts pieces after from that are longer than step.
func (p *pieces) refine(step, from engine.Time) {
	var fine []engine.Time
	for i, t := range p.start {
		fine = append(fine, t)
		if t < from {
			continue
		}
		for t += step; t < p.endOf(i); t += step {
			fine = append(fine, t)
		}
	}
	p.start = fine
}

// causes returns what the peer of a queue held in the middle of a piece of its
// pause; none if the log does not reach back to it.
func (l *ledger) causes(q *queue, p *pieces, i int) []cause {
	if !p.known[i] {
		p.known[i] = true
		// The middle of the piece; on a link shorter than a frame, the last
		// instant before the piece begins, so that time decreases.
		t := p.start[i] - q.port.lag + min((p.endOf(i)-p.start[i])/2, q.port.lag-1)
		if p.cause[i] = l.heldAt(q, t); p.cause[i] == nil {
			// The RESUME was due, and waited for the wire: what the peer held
			// last is the cause.
			p.cause[i] = l.heldAt(q, l.lastHeld(q, t))
		}
	}
	return p.cause[i]
}

// heldAt returns what the peer held of a queue's link at an instant.
func (l *ledger) heldAt(q *queue, t engine.Time) (all []cause) {
	if t < l.horizon {
		return nil
	}
	for _, d := range l.oracle.downstream(q) {
		d.extend(l.generation)
		first := d.left(t)
		bytes := d.from[q.port.port.Peer().ID].between(first, d.joined(t))
		if bytes > 0 {
			all = append(all, cause{queue: d, bytes: bytes, first: first, at: t, backlog: d.backlogAt(t)})
		}
	}
	return all
}

// lastHeld returns the last instant up to t when the peer held anything.
func (l *ledger) lastHeld(q *queue, t engine.Time) engine.Time {
	last := l.horizon - 1
	for _, d := range l.oracle.downstream(q) {
		list := d.from[q.port.port.Peer().ID].index
		if k := sort.SearchInts(list, d.left(t)) - 1; k >= 0 && list[k] >= d.base {
			last = max(last, d.at(list[k]).started-1)
		}
	}
	return last
}
