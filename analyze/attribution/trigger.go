package attribution

import (
	"cmp"
	"maps"
	"slices"
)

// trigger is a cause of pauses: a host, or contention of the same flows in one queue or,
// as they travel together, in several.
type trigger struct {
	queue    int32 // the one with the largest share
	kind     Kind
	share    float64
	roots    []rootShare // at the queue
	culprits []Culprit
}

// trigger returns the cause with the largest share in what the pauses of a cycle go
// back to from the instant on at which it closed; nil if nothing explains them, or too
// little of it.
func (e *engine) trigger(c *cycle) *trigger {
	list, unknown := e.triggers(c, e.closingShares(c))
	if len(list) == 0 || list[0].share < unknown {
		return nil // it is likely in what is not reported
	}
	t := &list[0]
	if t.kind == Contention && t.culprits == nil {
		t.culprits = e.flowsOf(t)
	}
	return t
}

// closingShares returns what the pauses of a cycle go back to that held when the last of
// them began. Each counts the same: as long as the cycle stands, what waits passes through
// all of them. Before that instant one of the queues is not paused, so what passes along
// the others leaves the cycle.
func (e *engine) closingShares(c *cycle) []rootShare {
	ahead, next := map[int32]float64{}, map[int32]float64{}
	for i := range c.queues {
		if s := e.closingSlice(c, i); s >= 0 {
			ahead[s]++
		}
	}
	for range maxSlices {
		for _, from := range slices.Sorted(maps.Keys(ahead)) {
			s := &e.states[from]
			for i := range s.edges {
				n := &s.edges[i]
				if mass := ahead[from] * n.share; n.state >= 0 && e.states[n.state].order == s.order {
					next[n.state] += mass
				} else {
					e.sum.addEdge(e, n, mass, true)
				}
			}
		}
		clear(ahead)
		ahead, next = next, ahead
	}
	return e.sum.take()
}

// closingSlice returns the state of a pause of a cycle at the instant at which the cycle
// closed; -1 if it is the one that closed it.
func (e *engine) closingSlice(c *cycle, i int) int32 {
	q := e.queue(int(c.queues[i]))
	if closed := e.closedAt(c); q.pauses[c.pauses[i]].from < closed {
		return e.sliceAt(q, int(c.pauses[i]), closed)
	}
	return -1
}

// triggers sums up shares by cause, the largest first, and those that are unexplained.
func (e *engine) triggers(c *cycle, shares []rootShare) (list []trigger, unknown float64) {
	for _, r := range shares {
		root := &e.roots[r.root]
		switch {
		case root.kind == Unexplained:
			unknown += r.share
			continue
		case root.kind == Deadlock, root.kind == Contention && r.sure == 0 && slices.Contains(c.queues, root.queue):
			continue // it may have been paused already, as a part of the cycle
		}
		i := slices.IndexFunc(list, func(t trigger) bool { return t.queue == root.queue && t.kind == root.kind })
		if i < 0 {
			i = len(list)
			list = append(list, trigger{queue: root.queue, kind: root.kind})
		}
		list[i].share += r.share
		list[i].roots = append(list[i].roots, r)
	}
	bySize := func(a, b trigger) int { return cmp.Compare(b.share, a.share) }
	slices.SortStableFunc(list, bySize)
	list = e.joinFlows(list)
	slices.SortStableFunc(list, bySize)
	return list, unknown
}

// joinFlows adds to each contention those of the same flows in queues with a smaller
// share. Shares below smallestBranch stay what they are.
func (e *engine) joinFlows(list []trigger) (joined []trigger) {
	for _, t := range list {
		same := -1
		if t.kind == Contention && t.share >= smallestBranch {
			t.culprits = e.flowsOf(&t)
			same = slices.IndexFunc(joined, func(o trigger) bool { return o.kind == Contention && e.sameFlows(&o, &t) })
		}
		if same < 0 {
			joined = append(joined, t)
			continue
		}
		o := &joined[same]
		o.share += t.share
		if o.culprits == nil {
			o.culprits = t.culprits
		}
	}
	return joined
}

// sameFlows reports whether the same flows congested two queues: by their names or, where
// those of one are not recorded any more, since most of what was in one went on to the other.
func (e *engine) sameFlows(a, b *trigger) bool {
	if a.culprits == nil || b.culprits == nil {
		return e.feedsMostly(a.queue, b.queue) || e.feedsMostly(b.queue, a.queue)
	}
	return CommonShare(a.culprits, b.culprits) > 0.5
}

// feedsMostly reports whether more than half of the backlogs that a queue's packets made
// at the next switch were in one queue, by their peaks.
func (e *engine) feedsMostly(from, to int32) bool {
	all, there := 0.0, 0.0
	for _, f := range e.queue(int(from)).feeds {
		if f.Curve == nil {
			continue
		}
		all += float64(f.Bytes)
		if f.To == int(to) {
			there += float64(f.Bytes)
		}
	}
	return 2*there > all
}

// flowsOf returns the flows of a contention; nil if none of that time is recorded.
func (e *engine) flowsOf(t *trigger) []Culprit {
	flows, later := e.culprits(&termSum{roots: t.roots})
	if later {
		return nil
	}
	return flows
}
