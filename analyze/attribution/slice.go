package attribution

import "slices"

// pauseSlices returns where the slices of a pause start: at its start and
// wherever a queue changes that it may wait for, directly or through pauses of
// others.
func (e *engine) pauseSlices(q *queue, index int) []float64 {
	if q.slices[index] != nil {
		return q.slices[index]
	}
	p := &q.pauses[index]
	cuts := append(e.cuts[:0], p.from)
	if !q.PeerIsHost {
		e.chain = append(e.chain[:0], q.index)
		cuts = e.appendCuts(cuts, q, p.from, p.to, 0, 1)
		for i := 1; i < evenSlices; i++ {
			cuts = append(cuts, p.from+(p.to-p.from)*float64(i)/evenSlices)
		}
	}
	e.cuts = cuts
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for len(cuts) > maxSlices {
		kept := cuts[:1]
		for i := 2; i < len(cuts); i += 2 {
			kept = append(kept, cuts[i])
		}
		cuts = kept
	}
	q.slices[index] = slices.Clone(cuts)
	return q.slices[index]
}

// Changes further downstream cut a pause if at least a share of smallestBranch
// of its bytes went there, over at most longestChain switches.
const (
	smallestBranch = 1.0 / 16
	longestChain   = 16
	evenSlices     = 16 // no slice is longer than this part of its pause
)

// appendCuts appends the instants at which the queues that q feeds change while
// it is paused in [from, to), later by a delay; and for those that are paused
// themselves, the instants at which the queues change that they feed.
func (e *engine) appendCuts(cuts []float64, q *queue, from, to, delay, share float64) []float64 {
	add := func(at float64) {
		if at > from && at < to {
			cuts = append(cuts, at+delay)
		}
	}
	all := 0.0
	for i := range q.feeds {
		all += float64(q.feeds[i].Bytes)
	}
	for i := range q.feeds {
		f := &q.feeds[i]
		branch := share * float64(f.Bytes) / all
		if len(e.chain) > 1 && branch < smallestBranch {
			continue
		}
		if f.Curve != nil {
			for _, p := range e.feedCurve(q, i) {
				add(p.at + q.delay)
			}
		} else {
			add(e.ns(f.From) + q.delay)
			add(e.ns(f.Until) + q.delay)
		}
		n := e.queue(f.To)
		for j := range n.congestions {
			add(n.congestions[j].from + q.delay)
			add(n.congestions[j].to + q.delay)
		}
		for j := n.firstPauseAfter(from - q.delay); j < len(n.pauses) && n.pauses[j].from < to-q.delay; j++ {
			p := &n.pauses[j]
			add(p.from + q.delay)
			add(p.to + q.delay)
			if branch >= smallestBranch && len(e.chain) < longestChain && !n.PeerIsHost && !slices.Contains(e.chain, n.index) {
				e.chain = append(e.chain, n.index)
				cuts = e.appendCuts(cuts, n, max(p.from, from-q.delay), min(p.to, to-q.delay), delay+q.delay, branch)
				e.chain = e.chain[:len(e.chain)-1]
			}
		}
	}
	return cuts
}

// eachSlice calls f with the states of the slices of a part of a pause, and the
// share of the part that each covers.
func (e *engine) eachSlice(q *queue, part pausePart, f func(state int32, share float64)) {
	cuts := e.pauseSlices(q, part.pause)
	first, found := slices.BinarySearch(cuts, part.from)
	if !found {
		first = max(first-1, 0)
	}
	length := part.to - part.from
	for i := first; i < len(cuts); i++ {
		end := q.pauses[part.pause].to
		if i+1 < len(cuts) {
			end = cuts[i+1]
		}
		share := 1.0
		if length > 0 {
			share = (min(end, part.to) - max(cuts[i], part.from)) / length
		}
		if share <= 0 {
			return
		}
		f(e.addState(stateKey{int32(q.index), int32(part.pause), int32(i)}, cuts[i], end), share)
		if length <= 0 {
			return
		}
	}
}
