package lateness

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// cycle is a deadlock cycle: queues, each paused because of the next and the
// last because of the first.
type cycle struct {
	queues   []*queue
	roots    map[*queue]*node // where the search for its trigger goes on
	deadlock *Deadlock        // once it is known
}

// cycleEntry is where a chain of paused queues meets a cycle.
type cycleEntry struct {
	via   *node // the last queue before it; nil: none
	cycle *cycle
}

// due is lateness that ended in a cycle.
type due struct {
	cycleEntry
	amount uint64
}

// stop ends a chain that returned from node last to node back within one and the
// same pause: the lateness is owed to the cycle. It returns the node at
// which the search for the cycle's trigger goes on.
func (l *ledger) stop(back, last *node, amount uint64) *node {
	var queues []*queue
	for n := last; ; n = n.parent {
		queues = append(queues, n.queue)
		if n == back {
			break
		}
	}
	slices.Reverse(queues)
	c := l.cycle(queues)
	entry := cycleEntry{back.parent, c}
	if l.stopped[entry] == nil {
		l.stopped[entry] = &due{cycleEntry: entry}
		l.entries = append(l.entries, l.stopped[entry])
	}
	l.stopped[entry].amount += amount
	if c.roots[back.queue] == nil {
		c.roots[back.queue] = l.newNode(nil, back.queue, c)
	}
	return c.roots[back.queue]
}

// cycle returns the cycle of these queues, from whichever of them on.
func (l *ledger) cycle(queues []*queue) *cycle {
	first := 0
	for i, q := range queues {
		if q.id < queues[first].id {
			first = i
		}
	}
	queues = append(slices.Clone(queues[first:]), queues[:first]...)
	key := ""
	for _, q := range queues {
		key += fmt.Sprint(q.id, " ")
	}
	if l.cycleOf[key] == nil {
		l.cycleOf[key] = &cycle{queues: queues, roots: map[*queue]*node{}}
		l.cycles = append(l.cycles, l.cycleOf[key])
	}
	return l.cycleOf[key]
}

// groups returns the strongly connected components of the pauses that have more
// than one, numbered.
func (l *ledger) groups() map[pauseID]int {
	next := map[pauseID][]pauseID{}
	for e := range l.edges {
		next[e[0]] = append(next[e[0]], e[1])
	}
	t := tarjan{next: next, index: map[pauseID]int{}, low: map[pauseID]int{}, onStack: map[pauseID]bool{}, group: map[pauseID]int{}}
	for p := range next {
		if t.index[p] == 0 {
			t.visit(p)
		}
	}
	return t.group
}

// tarjan is Tarjan's algorithm.
type tarjan struct {
	next       map[pauseID][]pauseID
	index, low map[pauseID]int // from 1 on
	stack      []pauseID
	onStack    map[pauseID]bool
	group      map[pauseID]int
	groups     int
}

func (t *tarjan) visit(p pauseID) {
	t.index[p] = len(t.index) + 1
	t.low[p] = t.index[p]
	t.stack = append(t.stack, p)
	t.onStack[p] = true
	for _, q := range t.next[p] {
		if t.index[q] == 0 {
			t.visit(q)
			t.low[p] = min(t.low[p], t.low[q])
		} else if t.onStack[q] {
			t.low[p] = min(t.low[p], t.index[q])
		}
	}
	if t.low[p] != t.index[p] {
		return
	}
	i := slices.Index(t.stack, p)
	members := t.stack[i:]
	t.groups++
	for _, q := range members {
		t.onStack[q] = false
		if len(members) > 1 {
			t.group[q] = t.groups
		}
	}
	t.stack = t.stack[:i]
}

// common returns the interval in which the latest pauses of all queues of the
// cycle hold, and whether they still do.
func (c *cycle) common(now engine.Time) (begin, end engine.Time, holds bool) {
	begin, end, holds = 0, now, true
	for _, q := range c.queues {
		p := q.pauses.at(q.pauses.last(now))
		begin, end = max(begin, p.begin), min(end, p.end)
		holds = holds && p.end > now
	}
	return begin, end, holds && begin < end
}
