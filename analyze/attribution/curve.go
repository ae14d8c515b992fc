package attribution

import (
	"math"
	"sort"
)

// valueAt returns the value of a curve at an instant: 0 before its first point,
// that of the last point after it.
func valueAt(curve []known, at float64) float64 {
	i := sort.Search(len(curve), func(i int) bool { return curve[i].at > at })
	switch {
	case i == 0:
		return 0
	case i == len(curve):
		return curve[i-1].bytes
	}
	a, b := &curve[i-1], &curve[i]
	return a.bytes + (b.bytes-a.bytes)*(at-a.at)/(b.at-a.at)
}

// lastAbove returns the last instant up to another at which a curve was above 0,
// or -Inf.
func lastAbove(curve []known, at float64) float64 {
	if valueAt(curve, at) > 0 {
		return at
	}
	for i := sort.Search(len(curve), func(i int) bool { return curve[i].at > at }) - 1; i > 0; i-- {
		if curve[i-1].bytes > 0 {
			return (curve[i-1].at + curve[i].at) / 2
		}
	}
	return math.Inf(-1)
}

// curveHolders returns the queues that held packets of a paused one at an instant,
// where that was recorded over time. If none did, a frame that resumes the queue
// was in flight: then it returns the one that held them last, since the pause was
// sent. What was sent on before that cannot have paused it.
func (e *engine) curveHolders(q *queue, pause int, at float64) (list []holder) {
	list = e.scratch[:0]
	latest, last := -1, math.Inf(-1)
	sent := q.pauses[pause].from - q.delay
	for i := range q.feeds {
		f := &q.feeds[i]
		if f.Curve == nil {
			continue
		}
		curve, to := e.feedCurve(q, i), e.queue(f.To)
		clocks := q.clockError + to.clockError
		if w := valueAt(curve, at); w > 0 && to.stateAt(at).bytes > 0 {
			sure := valueAt(curve, at-clocks) > 0 && valueAt(curve, at+clocks) > 0 && to.pauseAt(at-clocks) == to.pauseAt(at+clocks)
			list = append(list, holder{queue: to, at: at, weight: w, sure: sure})
		}
		if before := lastAbove(curve, at+clocks); before > last && before >= sent-clocks && to.stateAt(before).bytes > 0 {
			latest, last = f.To, before
		}
	}
	if len(list) == 0 && latest >= 0 {
		list = append(list, holder{queue: e.queue(latest), at: last, weight: 1})
	}
	e.scratch = list
	return list
}

// feedCurve returns the curve of a feed.
func (e *engine) feedCurve(q *queue, feed int) []known {
	if q.curves == nil {
		q.curves = make([][]known, len(q.feeds))
	}
	if q.curves[feed] == nil {
		q.curves[feed] = e.curve(q.feeds[feed].Curve)
	}
	return q.curves[feed]
}
