package attribution

import (
	"math"
	"slices"
)

// cycle is a deadlock cycle in numbers.
type cycle struct {
	queues     []int32 // in wait-for order, from the lowest on
	pauses     []int32 // of each, the one that is part of the cycle
	persistent bool
}

// queuesOf returns the queues of slices, ascending.
func (e *engine) queuesOf(members []int32) []int32 {
	list := make([]int32, len(members))
	for i, m := range members {
		list[i] = e.states[m].queue
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// lastPause returns the latest pause of a queue among slices.
func (e *engine) lastPause(members []int32, queue int32) (last int32) {
	for _, m := range members {
		if s := &e.states[m]; s.queue == queue {
			last = max(last, s.pause)
		}
	}
	return last
}

// closed reports whether the pauses of a cycle all held at once, for as long as
// a pause takes to pass along the cycle: else they followed each other and none
// returned to where it began.
func (e *engine) closed(members, queues []int32) Answer {
	from, to := math.Inf(-1), math.Inf(1)
	around, clocks := 0.0, 0.0
	for _, n := range queues {
		q := e.queue(int(n))
		p := &q.pauses[e.lastPause(members, n)]
		from, to = max(from, p.from), min(to, p.to)
		around += q.delay
		clocks = max(clocks, q.clockError)
	}
	return before(from+around, to, 2*clocks)
}

// addCycle notes a deadlock cycle and returns its root.
func (e *engine) addCycle(members, queues []int32) int32 {
	c := cycle{persistent: true, queues: e.waitForOrder(members, queues)}
	for _, n := range c.queues {
		last := e.lastPause(members, n)
		p := &e.queue(int(n)).pauses[last]
		c.pauses = append(c.pauses, last)
		c.persistent = c.persistent && p.open
	}
	index := slices.IndexFunc(e.cycles, func(o cycle) bool { return slices.Equal(o.queues, c.queues) && slices.Equal(o.pauses, c.pauses) })
	if index < 0 {
		index = len(e.cycles)
		e.cycles = append(e.cycles, c)
	}
	r := e.addRoot(rootKey{queue: queues[0], kind: Deadlock, since: float64(index)}, e.states[members[0]].to)
	e.roots[r].cycle = index
	return r
}

// waitForOrder orders the queues of a cycle: from the lowest on, always to the
// one that it waits for most and that is not yet listed; the others follow.
func (e *engine) waitForOrder(members, queues []int32) (walk []int32) {
	order := e.states[members[0]].order
	for at := queues[0]; at >= 0; {
		walk = append(walk, at)
		weights := map[int32]float64{}
		for _, m := range members {
			if s := &e.states[m]; s.queue == at {
				for _, n := range s.edges {
					if n.state >= 0 && e.states[n.state].order == order {
						weights[e.states[n.state].queue] += n.share * (s.to - s.from)
					}
				}
			}
		}
		at = -1
		for n, w := range weights {
			if slices.Contains(walk, n) {
				continue
			}
			if at < 0 || w > weights[at] || w == weights[at] && n < at {
				at = n
			}
		}
	}
	for _, n := range queues {
		if !slices.Contains(walk, n) {
			walk = append(walk, n)
		}
	}
	return walk
}

// closedAt returns when the last pause of a cycle began.
func (e *engine) closedAt(c *cycle) float64 {
	at := math.Inf(-1)
	for i, n := range c.queues {
		at = max(at, e.queue(int(n)).pauses[c.pauses[i]].from)
	}
	return at
}

// reachTriggers adds the slices of the pauses of all cycles at which these closed, which
// lead to the triggers, as if all of the lateness were due to each.
func (e *engine) reachTriggers(late float64) {
	for i := range e.cycles {
		c := &e.cycles[i]
		for j := range c.queues {
			e.reached(e.closingSlice(c, j), late)
		}
	}
}

// sliceAt returns the state of a pause at an instant, or -1.
func (e *engine) sliceAt(q *queue, index int, at float64) (slice int32) {
	slice = -1
	e.eachSlice(q, pausePart{pause: index, from: at, to: at}, func(state int32, _ float64) { slice = state })
	return slice
}
