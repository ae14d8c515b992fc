package attribution

import (
	"math"
	"slices"
)

// holder is a queue that held packets of a paused one.
type holder struct {
	queue  *queue
	at     float64
	weight float64
	extra  float64 // bytes that a snapshot counted beyond the known backlog
	sure   bool
}

// edgesOf returns what a slice of a pause is due to.
func (e *engine) edgesOf(s state) []edge {
	q := e.queue(int(s.queue))
	at := (s.from+s.to)/2 - q.delay
	unexplained := func(reason Reason) []edge {
		return []edge{{-1, e.addRoot(rootKey{queue: s.queue, kind: Unexplained, reason: reason}, at), 1, true}}
	}
	switch {
	case q.PeerIsHost:
		return []edge{{-1, e.addRoot(rootKey{queue: s.queue, kind: HostInjection, since: q.pauses[s.pause].from}, at), 1, true}}
	case q.peer < 0 || !e.evidence.Devices[q.peer].Reported:
		return unexplained(NoPeerReport)
	}
	list, early := e.curveHolders(q, int(s.pause), at), false
	if len(list) == 0 {
		list, early = e.holders(q, at)
	}
	total := 0.0
	for i := range list {
		total += list[i].weight
	}
	if total == 0 {
		switch {
		case early:
			return unexplained(TooEarly)
		case at > e.ns(e.evidence.Devices[q.peer].Snapshot):
			return unexplained(TooLate)
		}
		return unexplained(NoBacklog)
	}
	var edges []edge
	for i := range list {
		edges = e.appendHolder(edges, &list[i], list[i].weight/total)
	}
	return edges
}

// holders returns the queues that held packets of a paused one at an instant.
// If none is known to, it returns those that may have within the clocks' errors.
// early reports whether one has lost its intervals of that time.
func (e *engine) holders(q *queue, at float64) (list []holder, early bool) {
	list = e.scratch[:0]
	held := slices.ContainsFunc(q.feeds, func(f Feed) bool { return f.Held && f.Curve == nil && f.Bytes > 0 && e.feedHolds(q, &f, at) })
	for _, maybe := range []bool{false, true} {
		for i := range q.feeds {
			f := &q.feeds[i]
			if f.Curve != nil || f.Held != held || f.Bytes <= 0 || !e.feedHolds(q, f, at) {
				continue
			}
			to := e.queue(f.To)
			h := holder{queue: to, at: at}
			clocks := q.clockError + to.clockError
			if maybe {
				h.at = to.nearest(at, clocks)
			}
			age := to.age(h.at)
			switch {
			case held:
				h.weight = float64(f.Bytes)
				h.extra = max(0, h.weight-to.stateAt(h.at).bytes)
				if age > 0 && to.pauseAt(h.at) >= 0 {
					h.extra = 0 // they came since the pause began
				}
			case age > 0:
				h.weight = float64(f.Bytes) / max(float64(f.Until.Sub(f.From)), 1) * age
			}
			h.sure = !maybe && to.age(at-clocks) > 0 && to.age(at+clocks) > 0 && to.pauseAt(at-clocks) == to.pauseAt(at+clocks)
			early = early || h.weight == 0 && at < to.since
			if h.weight > 0 {
				list = append(list, h)
			}
		}
		if len(list) > 0 {
			break
		}
	}
	e.scratch = list
	return list, early
}

// feedHolds reports whether a feed's span may cover an instant.
func (e *engine) feedHolds(q *queue, f *Feed, at float64) bool {
	return within(at, e.ns(f.From), e.ns(f.Until), q.clockError+e.queue(f.To).clockError) != No
}

// age returns how long the oldest packet in the queue has been there at an
// instant: the time that its backlog takes to send, and the pause so far.
func (q *queue) age(at float64) float64 {
	age := q.stateAt(at).bytes / q.rate
	if i := q.pauseAt(at); i >= 0 {
		age += q.pauses[i].coverage * (at - q.pauses[i].from)
	}
	return age
}

// nearest returns the instant nearest to another at which the queue was paused
// or congested, if one lies within the clocks' errors.
func (q *queue) nearest(at, clocks float64) float64 {
	best, distance := at, math.Inf(1)
	try := func(from, to float64) {
		if within(at, from, to, clocks) != Maybe {
			return
		}
		near := at
		if at < from {
			near = min(from+(from-at)/2, (from+to)/2) // inside: at its start nothing is queued
		} else if at >= to {
			near = max(to-(at-to)/2, (from+to)/2)
		}
		if d := math.Abs(near - at); d < distance {
			best, distance = near, d
		}
	}
	for i := range q.pauses {
		try(q.pauses[i].from, q.pauses[i].to)
	}
	for i := range q.congestions {
		try(q.congestions[i].from, q.congestions[i].to)
	}
	return best
}

// appendHolder appends what the bytes in a queue at an instant are due to: the
// parts of the wait of a packet that joins it then, as far as pauses had begun.
func (e *engine) appendHolder(edges []edge, h *holder, share float64) []edge {
	q := h.queue
	s := q.stateAt(h.at)
	leaves := h.at + s.bytes/q.rate
	if i := q.pauseAt(h.at); i >= 0 {
		leaves += q.pauses[i].paused(h.at, q.pauses[i].to)
	}
	w := q.split(h.at, leaves, h.at, false, e.parts[:0])
	e.parts = w.pauses
	wait := leaves - h.at + h.extra/q.rate
	switch late := h.at - q.snapshot - h.extra/q.rate; {
	case h.extra > 0 && late > q.clockError:
		// The link would have sent them since the snapshot. What kept it from that is
		// not reported.
		r := e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: TooLate}, h.at)
		edges = append(edges, edge{-1, r, share * h.extra / q.rate / wait, true})
	default:
		w.contention += h.extra / q.rate
	}
	if wait <= 0 {
		return append(edges, edge{-1, e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: NoBacklog}, h.at), share, true})
	}
	if w.contention > 0 {
		r := e.contentionRoot(q, w.busy, h.at)
		edges = append(edges, edge{-1, r, share * w.contention / wait, h.sure})
	}
	for _, part := range w.pauses {
		if p := &q.pauses[part.pause]; p.from <= h.at && h.at < p.to {
			part.from, part.to = h.at, h.at // it holds: it counts at this instant
		}
		e.eachSlice(q, part, func(state int32, of float64) {
			n := edge{state, -1, share * part.time / wait * of, h.sure}
			if state < 0 {
				n.root = e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: NotFollowed}, h.at)
			}
			edges = append(edges, n)
		})
	}
	if w.rest > 0 {
		r := e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: NoBacklog}, h.at)
		edges = append(edges, edge{-1, r, share * w.rest / wait, true})
	}
	return edges
}
