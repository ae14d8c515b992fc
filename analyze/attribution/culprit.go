package attribution

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// culprits returns the flows of a contention by their share of the backlog,
// from when the queue was last empty to when the backlog counted. If no flow of that
// time is recorded any more, it returns those that the queue had next.
func (e *engine) culprits(t *termSum) (list []Culprit, later bool) {
	weights := map[model.FlowKey]float64{}
	byRoot := map[int32]float64{}
	var roots []int32
	for _, r := range t.roots {
		if _, ok := byRoot[r.root]; !ok {
			roots = append(roots, r.root)
		}
		byRoot[r.root] += r.share
	}
	slices.Sort(roots)
	for _, r := range roots {
		e.addFlows(weights, e.queue(int(e.roots[r].queue)), e.roots[r].since, e.roots[r].until, byRoot[r])
	}
	if later = len(weights) == 0; later {
		for _, r := range roots {
			e.addFlows(weights, e.queue(int(e.roots[r].queue)), e.roots[r].since, math.Inf(1), byRoot[r])
		}
	}
	all := 0.0
	for f, w := range weights {
		list = append(list, Culprit{f, w})
	}
	slices.SortFunc(list, func(a, b Culprit) int { return cmp.Or(cmp.Compare(b.Share, a.Share), a.Flow.Compare(b.Flow)) })
	for i := range list {
		all += list[i].Share
	}
	for i := range list {
		list[i].Share /= all
	}
	return list, later && len(list) > 0
}

// CommonShare returns the share that two lists of culprits have in common, 0 to 1.
func CommonShare(a, b []Culprit) (sum float64) {
	shares := make(map[model.FlowKey]float64, len(a))
	for _, x := range a {
		shares[x.Flow] = x.Share
	}
	for _, x := range b {
		sum += min(x.Share, shares[x.Flow])
	}
	return sum
}

// end returns when the packet arrived or was found missing.
func (e *engine) end() float64 { return float64(e.victim.Took) }

// addFlows adds the flows of a queue in a span, with a weight together.
func (e *engine) addFlows(weights map[model.FlowKey]float64, q *queue, from, until, weight float64) {
	in := func(f *FlowShare) float64 {
		start, end := e.ns(f.From), min(e.ns(f.Until), e.end())
		if within(until, start, end, q.clockError) == No && within(start, from, until, q.clockError) == No {
			return 0
		}
		overlap := min(end, until+q.clockError) - max(start, from-q.clockError)
		return float64(f.Bytes) * max(overlap, 1) // an instant counts as a nanosecond
	}
	all := 0.0
	for i := range q.Flows {
		all += in(&q.Flows[i])
	}
	if all <= 0 {
		return
	}
	for i := range q.Flows {
		if w := in(&q.Flows[i]); w > 0 {
			weights[q.Flows[i].Flow] += weight * w / all
		}
	}
}
