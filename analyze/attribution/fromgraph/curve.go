package fromgraph

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// addHistories adds how the backlogs of a switch changed: to the queues that held
// them, and to the paused queues that they came from.
func (b *builder) addHistories(r *provenance.Report, feeders map[provenance.Queue]int) {
	curves := map[int][]pairCurve{}
	for i := range r.BacklogHistories {
		h := &r.BacklogHistories[i]
		to := b.g.Node(provenance.Queue{Port: model.Port{Node: r.Switch, Port: h.Out}, Priority: h.Priority})
		if to < 0 {
			continue
		}
		points := h.All()
		c := pairCurve{cut: h.Cut, points: make([]attribution.Depth, 0, len(points))}
		peak := model.Bytes(0)
		for _, p := range points {
			at := b.axis.time(r.Switch, r.Snapshot.Add(-p.At.Duration()))
			c.points = append(c.points, attribution.Depth{At: at, Bytes: model.Bytes(p.Bytes)})
			peak = max(peak, model.Bytes(p.Bytes))
		}
		curves[to] = append(curves[to], c)
		if from, ok := feeders[provenance.Queue{Port: model.Port{Node: r.Switch, Port: h.In}, Priority: h.Priority}]; ok {
			q := &b.out.Queues[from]
			q.Feeds = append(q.Feeds, attribution.Feed{To: to, From: c.points[0].At, Until: always, Bytes: peak, Curve: c.points})
		}
	}
	for to, list := range curves {
		q := &b.out.Queues[to]
		q.Curve = sumCurves(list)
		q.CurveError = epoch.BacklogError(r.Settings.MTU) * model.Bytes(len(list))
	}
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
