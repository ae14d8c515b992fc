package lateness

import (
	"sort"

	"github.com/weft-telemetry/weft/sim/engine"
)

// backlog is what a packet that joined a queue at an instant would find.
type backlog struct {
	all       engine.Time // transmission time of what is ahead of it
	unpaused  engine.Time // the same, had there been no pauses in the busy period
	from, to  int         // records of unpaused
	low, high engine.Time // the paused time that the difference is owed to
}

// backlogAt returns the backlog at an instant. Its high is at the instant, and
// its low no earlier than the busy period.
func (q *queue) backlogAt(t engine.Time) (b backlog) {
	b.to = q.joined(t)
	if b.to == q.base {
		return b
	}
	last := q.at(b.to - 1)
	b.all = last.work - q.own(t)
	available := q.available(t)
	b.unpaused = min(max(0, last.ends-available), b.all)
	b.from = q.base + sort.Search(b.to-q.base, func(i int) bool { return q.list[i].ends > available })
	b.high = q.pauses.paused(t)
	b.low = max(b.high-(b.all-b.unpaused), q.pauses.paused(last.busy))
	return b
}

// wait is the wait of one record up to an instant, split by the rule.
type wait struct {
	contention engine.Time // what it would have waited without pauses
	ahead      engine.Time // of it for the records from..to, the rest for others on the wire
	from, to   int
	available  engine.Time

	low, high engine.Time // paused time that the rest is owed to
	others    engine.Time // what is left: others on the wire, after contention
}

// waitOf splits the wait of record i until the instant until.
func (q *queue) waitOf(i int, until engine.Time) (w wait) {
	r := q.at(i)
	w.available = r.ready
	w.from, w.to = i, i
	backlog := engine.Time(0)
	if i > q.base {
		backlog = max(0, q.at(i-1).ends-r.ready)
		w.from = q.base + sort.Search(i-q.base, func(k int) bool { return q.list[k].ends > r.ready })
	}
	start := min(q.serve(r.enqueued, backlog), until)
	w.contention = start - r.enqueued
	w.ahead = min(backlog, w.contention-q.heldByOthers(r.enqueued, start))
	rest := until - start
	w.high = q.pauses.paused(until)
	w.low = max(w.high-rest, q.pauses.paused(r.busy))
	w.others = rest - (w.high - w.low)
	return w
}

// serve returns when the wire has been available for a time since an instant,
// and is again.
func (q *queue) serve(t, need engine.Time) engine.Time {
	l := q.port
	for k := max(0, l.last(t)); k < len(l.list); k++ {
		x := &l.list[k]
		if x.end() <= t {
			continue
		}
		if free := x.start - t; free > 0 {
			if need < free {
				return t + need
			}
			need -= free
			t = x.start
		}
		if x.class == q.class {
			if need < x.end()-t {
				return t + need
			}
			need -= x.end() - t
		}
		t = x.end()
	}
	return t + need
}

// heldByOthers returns how long others held the wire in [from, to).
func (q *queue) heldByOthers(from, to engine.Time) (held engine.Time) {
	q.eachOther(from, to, func(_ int32, d engine.Time) { held += d })
	return held
}

// eachOther calls f with what others held of the wire in [from, to).
func (q *queue) eachOther(from, to engine.Time, f func(party int32, d engine.Time)) {
	l := q.port
	for k := max(0, l.last(from)); k < len(l.list) && l.list[k].start < to; k++ {
		x := &l.list[k]
		if x.class == q.class {
			continue
		}
		if d := min(x.end(), to) - max(x.start, from); d > 0 {
			f(x.party, d)
		}
	}
}

// eachAhead calls f with the transmission time of the records from..to that is
// left when the wire has been available for a time, up to a limit.
func (q *queue) eachAhead(from, to int, available, limit engine.Time, f func(party int32, d engine.Time)) {
	for i := from; i < to && limit > 0; i++ {
		r := q.at(i)
		d := min(r.onWire, r.ends-available, limit)
		f(r.party, d)
		limit -= d
	}
}
