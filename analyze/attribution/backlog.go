package attribution

import (
	"cmp"
	"math"
	"slices"
)

// pause, congestion: intervals in nanoseconds since the packet was sent.
type pause struct {
	from, to float64
	open     bool
	bytes    float64
	coverage float64
}

type congestion struct {
	from, to float64
	open     bool
	peak     float64
	coverage float64
}

// paused returns how long the pause held in [from, to).
func (p *pause) paused(from, to float64) float64 {
	return p.coverage * max(0, min(p.to, to)-max(p.from, from))
}

// queue is a QueueRecord, prepared for questions.
type queue struct {
	*QueueRecord
	feeds       []Feed // those of QueueRecord that lead to queues of the peer
	index       int
	device      int // in Evidence.Devices, -1: none
	reported    bool
	peer        int // the device at the other end, -1: none
	rate        float64
	delay       float64
	threshold   float64
	since       float64
	snapshot    float64
	clockError  float64
	pauses      []pause
	congestions []congestion
	segments    []segment
	slices      [][]float64 // by pause: where its slices start
	curve       []known
	curves      [][]known // by feed
	curveError  float64
}

// segment is a part of a queue's time in which its backlog changes evenly. It
// lasts until the next begins; the last drains the queue.
type segment struct {
	from     float64
	bytes    float64 // queued at its start
	free     float64 // the same without the pauses of the busy period
	arrivals float64 // bytes per nanosecond
	coverage float64 // of a pause that holds
	busy     float64 // when the queue was last empty
}

// paused returns how long the queue was paused in [from, to).
func (q *queue) paused(from, to float64) (sum float64) {
	for i := q.firstPauseAfter(from); i < len(q.pauses) && q.pauses[i].from < to; i++ {
		sum += q.pauses[i].paused(from, to)
	}
	return sum
}

// firstPauseAfter returns the first pause that ends after an instant.
func (q *queue) firstPauseAfter(at float64) int {
	i, _ := slices.BinarySearchFunc(q.pauses, at, func(p pause, at float64) int {
		if p.to > at {
			return 1
		}
		return -1
	})
	return i
}

// pauseAt returns the pause that holds at an instant, or -1.
func (q *queue) pauseAt(at float64) int {
	if i := q.firstPauseAfter(at); i < len(q.pauses) && q.pauses[i].from <= at {
		return i
	}
	return -1
}

// congestionAt returns the congestion interval at an instant, or -1.
func (q *queue) congestionAt(at float64) int {
	return slices.IndexFunc(q.congestions, func(c congestion) bool { return c.from <= at && at < c.to })
}

// known is an instant at which the backlog is known.
type known struct{ at, bytes float64 }

// drainTime is how long the queue takes to send what counts as congestion: the
// time below which intervals count as adjacent.
func (q *queue) drainTime() float64 { return q.threshold / q.rate }

// known returns the instants at which the backlog is known, ascending.
func (q *queue) knownBacklogs(depths []known) []known {
	if len(q.curve) > 0 {
		// It says all since its first point.
		list := slices.DeleteFunc(q.inferredBacklogs(nil), func(k known) bool { return k.at >= q.curve[0].at })
		return q.extend(append(list, q.curve...))
	}
	return q.extend(q.inferredBacklogs(depths))
}

// extend adds that a queue which is congested at the snapshot stays as it is while
// its congestion is taken to go on.
func (q *queue) extend(list []known) []known {
	if n := len(q.congestions); n > 0 && q.congestions[n-1].open && len(list) > 0 && list[len(list)-1].at < q.congestions[n-1].to {
		list = append(list, known{q.congestions[n-1].to, list[len(list)-1].bytes})
	}
	return list
}

// inferredBacklogs returns what intervals and single depths say.
func (q *queue) inferredBacklogs(depths []known) []known {
	list := slices.Clone(depths)
	for i := range q.pauses {
		p := &q.pauses[i]
		list = append(list, known{p.from, p.bytes})
		if !q.congestedFrom(p.to) {
			// It ended below the threshold: what was there is all that is known.
			list = append(list, known{p.to, p.bytes})
		}
	}
	for i := range q.congestions {
		c := &q.congestions[i]
		threshold, peak := q.threshold*c.coverage, max(c.peak, q.threshold)*c.coverage
		end, isKnown := q.endLevel(c, peak, depths)
		top := q.peakTime(c, peak, end)
		if !isKnown {
			list = append(list, end)
		}
		if !q.resumedBefore(c.from) {
			list = append(list, known{c.from - q.ramp(threshold, peak, top-c.from), 0})
			if top > c.from {
				list = append(list, known{c.from, threshold})
			}
		}
		list = append(list, known{top, peak})
	}
	slices.SortStableFunc(list, func(a, b known) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.bytes, b.bytes)) })
	return list
}

// ramp returns how long a queue took to reach the threshold: it filled as fast
// as afterwards, and at least as fast as one link can fill it.
func (q *queue) ramp(threshold, peak, rise float64) float64 {
	ramp := threshold / q.rate
	if peak > threshold {
		ramp = min(ramp, threshold*rise/(peak-threshold))
	}
	return ramp
}

// congestedFrom reports whether a congestion interval covers an instant or
// begins right after it.
func (q *queue) congestedFrom(at float64) bool {
	return slices.ContainsFunc(q.congestions, func(c congestion) bool { return c.from <= at+q.drainTime() && at < c.to })
}

// resumedBefore reports whether a pause holds at an instant or ended right
// before it: a backlog found then grew in the pause.
func (q *queue) resumedBefore(at float64) bool {
	return slices.ContainsFunc(q.pauses, func(p pause) bool { return p.from <= at && at <= p.to+q.drainTime() })
}

// endLevel returns the backlog at the end of a congestion interval: the
// threshold, or what a pause found that began then, or what a snapshot found.
// One that is open ends at the snapshot, or at its peak. isKnown reports whether
// that is a known instant already.
func (q *queue) endLevel(c *congestion, peak float64, depths []known) (end known, isKnown bool) {
	for i := range q.pauses {
		if p := &q.pauses[i]; math.Abs(p.from-c.to) <= q.drainTime() && p.bytes >= q.threshold*c.coverage {
			return known{p.from, p.bytes}, true
		}
	}
	for _, d := range slices.Backward(depths) {
		if math.Abs(d.at-c.to) <= q.drainTime() || c.open && d.at > c.from && d.at <= c.to {
			return d, true
		}
	}
	if c.open {
		return known{c.to, peak}, false
	}
	return known{c.to, q.threshold * c.coverage}, false
}

// peakTime returns the latest instant at which a congestion interval can have
// had its peak: the queue sends at most at its link's rate until the end.
func (q *queue) peakTime(c *congestion, peak float64, end known) float64 {
	at := min(end.at, c.to)
	need := (peak - end.bytes) / q.rate // time of sending
	for i := len(q.pauses) - 1; i >= 0 && need > 0; i-- {
		p := &q.pauses[i]
		if p.from >= at {
			continue
		}
		if sent := at - min(p.to, at); sent >= need {
			break
		} else {
			need -= sent
		}
		at = min(p.to, at)
		if sent := (at - p.from) * (1 - p.coverage); sent >= need {
			return max(c.from, at-need/(1-p.coverage))
		} else {
			need -= sent
		}
		at = p.from
	}
	return max(c.from, at-max(need, 0))
}

// covered reports whether pauses and congestion intervals cover a span, up to
// gaps in which the queue could not drain.
func (q *queue) covered(from, to float64) bool {
	for at := from; at < to; {
		next := at
		for i := range q.pauses {
			if p := &q.pauses[i]; p.from <= at && p.to > next {
				next = p.to
			}
		}
		for i := range q.congestions {
			if c := &q.congestions[i]; c.from <= at+q.drainTime() && c.to > next {
				next = c.to
			}
		}
		if next == at {
			return false
		}
		at = next
	}
	return true
}

// onCurve reports whether the backlog at an instant was recorded.
func (q *queue) onCurve(at float64) bool { return len(q.curve) > 0 && at >= q.curve[0].at }

// buildBacklog computes the segments.
func (q *queue) buildBacklog(depths []known) {
	list := q.knownBacklogs(depths)
	for i, k := range list {
		s := segment{from: k.at, bytes: k.bytes, free: k.bytes, busy: k.at}
		if len(q.segments) > 0 {
			s = q.stateAt(k.at)
			jump := k.bytes - s.bytes
			if s.bytes == 0 {
				s.busy = k.at
			}
			s.bytes, s.free = k.bytes, min(k.bytes, s.free+max(jump, 0))
		}
		if i+1 == len(list) {
			q.appendSegments(s, math.Inf(1), 0)
			break
		}
		next := list[i+1]
		if next.at == k.at {
			if len(q.segments) == 0 || q.segments[len(q.segments)-1].from < k.at {
				q.segments = append(q.segments, s)
			} else {
				q.segments[len(q.segments)-1] = s
			}
			continue
		}
		arrivals := 0.0
		if q.onCurve(k.at) || q.covered(k.at, next.at) {
			span := next.at - k.at
			arrivals = max(0, next.bytes-k.bytes+q.rate*(span-q.paused(k.at, next.at))) / span
		}
		q.appendSegments(s, next.at, arrivals)
	}
}

// appendSegments appends the segments from s on until an instant, one for each
// pause and each gap between pauses.
func (q *queue) appendSegments(s segment, until, arrivals float64) {
	s.arrivals = arrivals
	if n := len(q.segments); n > 0 && q.segments[n-1].from == s.from {
		q.segments = q.segments[:n-1]
	}
	for {
		i := q.firstPauseAfter(s.from)
		end := until
		s.coverage = 0
		if i < len(q.pauses) && q.pauses[i].from <= s.from {
			s.coverage, end = q.pauses[i].coverage, min(end, q.pauses[i].to)
		} else if i < len(q.pauses) {
			end = min(end, q.pauses[i].from)
		}
		if net := q.rate*(1-s.coverage) - s.arrivals; net > 0 && s.bytes > 0 && s.from+s.bytes/net < end {
			q.segments = append(q.segments, s)
			s = q.advance(&s, s.from+s.bytes/net)
			s.bytes, s.free = 0, 0
			s.busy = s.from
			if s.arrivals == 0 && math.IsInf(end, 1) {
				q.segments = append(q.segments, s)
				return
			}
		}
		q.segments = append(q.segments, s)
		if end >= until {
			return
		}
		s = q.advance(&s, end)
	}
}

// advance returns the state at an instant of a segment, as the start of one.
func (q *queue) advance(s *segment, at float64) segment {
	n, span := *s, at-s.from
	n.from = at
	n.bytes = max(0, s.bytes+span*(s.arrivals-q.rate*(1-s.coverage)))
	n.free = min(n.bytes, max(0, s.free+span*(s.arrivals-q.rate)))
	if s.bytes == 0 && n.bytes == 0 {
		n.busy = at
	}
	return n
}

// stateAt returns the state at an instant; before the first segment the queue is
// empty.
func (q *queue) stateAt(at float64) segment {
	i, found := slices.BinarySearchFunc(q.segments, at, func(s segment, at float64) int { return cmp.Compare(s.from, at) })
	if found {
		return q.segments[i]
	}
	if i == 0 {
		return segment{from: at, busy: at}
	}
	return q.advance(&q.segments[i-1], at)
}
