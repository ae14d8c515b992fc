package fromgraph

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// addCurve adds how the backlog of a queue changed: the sum of what came from each
// ingress port.
func (b *builder) addCurve(q *attribution.QueueRecord, r *provenance.Report) {
	var curves []pairCurve
	for i := range r.BacklogHistories {
		if h := &r.BacklogHistories[i]; h.Out == q.Queue.Port.Port && h.Priority == q.Queue.Class {
			curves = append(curves, b.pairCurve(r, h))
		}
	}
	if len(curves) > 0 {
		q.Curve = sumCurves(curves)
		q.CurveError = epoch.BacklogError(r.Settings.MTU) * model.Bytes(len(curves))
	}
}

// addHistoryFeeds adds to a paused queue how the next switch's backlogs of its packets
// changed.
func (b *builder) addHistoryFeeds(q *attribution.QueueRecord, r *provenance.Report) {
	for i := range r.BacklogHistories {
		h := &r.BacklogHistories[i]
		to := b.g.Node(provenance.Queue{Port: model.Port{Node: r.Switch, Port: h.Out}, Priority: h.Priority})
		if h.In != q.Peer.Port || h.Priority != q.Queue.Class || to < 0 {
			continue
		}
		c := b.pairCurve(r, h)
		peak := model.Bytes(0)
		for _, p := range c.points {
			peak = max(peak, p.Bytes)
		}
		q.Feeds = append(q.Feeds, attribution.Feed{To: to, From: c.points[0].At, Until: always, Bytes: peak, Curve: c.points})
	}
}

// pairCurve returns a history on the axis.
func (b *builder) pairCurve(r *provenance.Report, h *epoch.BacklogHistory) pairCurve {
	points := h.All()
	c := pairCurve{cut: h.Cut, points: make([]attribution.Depth, 0, len(points))}
	for _, p := range points {
		c.points = append(c.points, attribution.Depth{At: b.axis.time(r.Switch, r.Snapshot.Add(-p.At.Duration())), Bytes: model.Bytes(p.Bytes)})
	}
	return c
}

// pairCurve is the backlog of a pair of ports over time: 0 before the first point,
// or unknown if it was cut; after the last point as there.
type pairCurve struct {
	points []attribution.Depth
	cut    bool
	next   int // the first point that is not before the last instant asked for
}

// sumCurves adds up curves, since all of them are known.
func sumCurves(list []pairCurve) (sum []attribution.Depth) {
	if len(list) == 1 {
		return list[0].points
	}
	var since model.Time
	n := 0
	for i := range list {
		n += len(list[i].points)
		if list[i].cut {
			since = max(since, list[i].points[0].At)
		}
	}
	times := make([]model.Time, 0, n)
	for i := range list {
		for _, p := range list[i].points {
			times = append(times, p.At)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	sum = make([]attribution.Depth, 0, len(times)+len(times)/8)
	for _, at := range times {
		before, after := model.Bytes(0), model.Bytes(0)
		for i := range list {
			low, high := list[i].around(at)
			before, after = before+low, after+high
		}
		if at < since {
			continue
		}
		if before != after {
			sum = append(sum, attribution.Depth{At: at, Bytes: before})
		}
		sum = append(sum, attribution.Depth{At: at, Bytes: after})
	}
	return sum
}

// around returns a curve's value right before an instant and from it on: they
// differ where two points share the instant. Instants must ascend from call to call.
func (c *pairCurve) around(at model.Time) (before, after model.Bytes) {
	for c.next < len(c.points) && c.points[c.next].At < at {
		c.next++
	}
	first := c.next
	switch {
	case first == len(c.points):
		last := c.points[first-1].Bytes
		return last, last
	case c.points[first].At > at:
		if first == 0 {
			return 0, 0
		}
		a, b := &c.points[first-1], &c.points[first]
		v := a.Bytes + model.Bytes(float64(b.Bytes-a.Bytes)*float64(at.Sub(a.At))/float64(b.At.Sub(a.At)))
		return v, v
	}
	last := first
	for last+1 < len(c.points) && c.points[last+1].At == at {
		last++
	}
	return c.points[first].Bytes, c.points[last].Bytes
}
