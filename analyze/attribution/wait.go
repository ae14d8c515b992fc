package attribution

// leaves returns when a packet that finds a backlog at an instant leaves: when
// the backlog is sent, and the queue is not paused.
func (q *queue) leaves(at, bytes float64) float64 {
	need := bytes / q.rate
	for i := q.firstPauseAfter(at); i < len(q.pauses); i++ {
		p := &q.pauses[i]
		if gap := p.from - at; gap > 0 {
			if need < gap {
				break
			}
			need, at = need-gap, p.from
		}
		sent := (p.to - at) * (1 - p.coverage)
		if p.coverage < 1 && need <= sent {
			return at + need/(1-p.coverage)
		}
		need, at = need-sent, p.to
	}
	return at + need
}

// waitBounds is the wait of a packet that joins at an instant: as the backlog
// says, and the least and the most that the intervals allow.
type waitBounds struct{ least, estimate, most float64 }

// waitOf returns the wait of a packet that joins at an instant, which is known
// up to an error.
func (q *queue) waitOf(at, clockError float64) waitBounds {
	bytes := q.stateAt(at).bytes
	low, high := 0.0, bytes
	if q.onCurve(at) {
		near, far := q.stateAt(at-clockError).bytes, q.stateAt(at+clockError).bytes
		low = max(0, min(bytes, near, far)-q.curveError)
		high = max(bytes, near, far) + q.curveError
	} else if i := q.congestionAt(at); i >= 0 {
		c := &q.congestions[i]
		if c.coverage == 1 && within(at, c.from, c.to, clockError) == Yes {
			low = min(bytes, q.threshold)
		}
		high = max(bytes, min(c.peak, q.threshold+q.rate*(c.to-at-q.paused(at, c.to))))
	}
	w := waitBounds{q.leaves(at, low) - at, q.leaves(at, bytes) - at, q.leaves(at, high) - at}
	if i := q.pauseAt(at); i >= 0 && q.pauses[i].coverage < 1 {
		// Nothing says when in the interval the pauses were: they may all be ahead.
		p := &q.pauses[i]
		w.most = max(w.most, min(p.to-at, p.paused(p.from, p.to)))
	}
	w.most = max(w.most, w.estimate)
	return w
}

// between returns the wait at a position from -1, the least, over 0, the
// estimate, to 1, the most.
func (w waitBounds) between(position float64) float64 {
	if position < 0 {
		return w.estimate + position*(w.estimate-w.least)
	}
	return w.estimate + position*(w.most-w.estimate)
}

// waitSplit is what a wait in a queue is due to.
type waitSplit struct {
	contention float64
	busy       float64     // since when the queue was not empty
	pauses     []pausePart // the latest first
	rest       float64     // due to nothing that was reported
}

// pausePart is a part of a pause: its instants in [from, to), and how much of a
// wait is due to them.
type pausePart struct {
	pause    int
	from, to float64
	time     float64
	behind   float64 // of time: after the pause, while what it left drained
}

// split splits the wait of a packet that joins at an instant and leaves at
// another. known is the latest instant of which pauses count. A summary of
// pauses counts evenly, or, if bunched, as if all of them were in this wait.
func (q *queue) split(at, leaves, known float64, bunched bool, parts []pausePart) waitSplit {
	s := q.stateAt(at)
	wait := leaves - at
	w := waitSplit{contention: min(s.free/q.rate, wait), busy: min(s.busy, at), pauses: parts}
	left := wait - w.contention
	last := q.firstPauseAfter(known)
	if last == len(q.pauses) || q.pauses[last].from >= known && q.pauses[last].from > at {
		last--
	}
	for i := last; i >= 0 && left > 0 && q.pauses[i].to > w.busy; i-- {
		p := &q.pauses[i]
		from, to := max(p.from, w.busy), min(p.to, max(leaves, at))
		use := min(left, p.paused(from, to))
		if bunched {
			use = min(left, max(0, to-from), p.paused(p.from, p.to))
		}
		if use <= 0 {
			continue
		}
		behind := max(0, use-max(0, to-max(from, at)))
		if p.from <= at && at < p.to {
			// It holds when the packet joins: these are its instants.
			from = max(from, min(at, to-use/p.coverage))
		} else {
			from = max(from, to-use/p.coverage)
		}
		w.pauses = append(w.pauses, pausePart{i, from, to, use, behind})
		left -= use
	}
	w.rest = max(left, 0)
	return w
}

// splitWait splits the wait of a packet of a path, which may be shorter or
// longer than the backlog says. What is longer is due to pauses as far as they
// lasted, then to contention as far as the intervals allow.
func (q *queue) splitWait(at, wait float64, bounds waitBounds) waitSplit {
	if wait <= bounds.estimate {
		w := q.split(at, at+bounds.estimate, at+bounds.estimate, false, nil)
		if bounds.estimate > 0 {
			w.scale(wait / bounds.estimate)
		}
		return w
	}
	w := q.split(at, at+wait, at+wait, true, nil)
	more := min(w.rest, bounds.most-bounds.estimate)
	w.contention, w.rest = w.contention+more, w.rest-more
	return w
}

// scale multiplies all parts.
func (w *waitSplit) scale(by float64) {
	w.contention *= by
	w.rest *= by
	for i := range w.pauses {
		w.pauses[i].time *= by
		w.pauses[i].behind *= by
	}
}
