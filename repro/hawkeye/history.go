package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// history is the wait-for relation of a whole run, looked at every step.
type history struct{ graphs []*look }

// look is the relation at one instant.
type look struct {
	*truth.Graph
	cycles [][]truth.Node
	roots  map[truth.Node][]truth.Root // by queue, as far as they were asked for
	behind map[truth.Node][]truth.Node
}

// queuesBehind are all queues that a queue waits for.
func (l *look) queuesBehind(queue truth.Node) []truth.Node {
	list, known := l.behind[queue]
	if !known {
		for _, n := range l.Closure(queue).Nodes {
			if n.Kind == truth.KindQueue && n != queue {
				list = append(list, n)
			}
		}
		l.behind[queue] = list
	}
	return list
}

// rootsOf is where the waiting of a queue ends.
func (l *look) rootsOf(queue truth.Node) []truth.Root {
	roots, known := l.roots[queue]
	if !known {
		roots = l.Closure(queue).Roots()
		l.roots[queue] = roots
	}
	return roots
}

const step = 5 * time.Microsecond

// record looks until the end.
func (h *history) record(n *sim.Network, end engine.Time) {
	var again func()
	again = func() {
		g := truth.WaitFor(n)
		h.graphs = append(h.graphs, &look{g, g.Cycles(), map[truth.Node][]truth.Root{}, map[truth.Node][]truth.Node{}})
		if next := n.Now() + engine.Of(step); next <= end {
			n.At(next, again)
		}
	}
	n.At(engine.Of(step), again)
}

// between returns the looks from one time to another, at least the one before
// the end, and the number of the first.
func (h *history) between(from, to engine.Time) ([]*look, int) {
	last := min(int(to/engine.Of(step)), len(h.graphs))
	first := max(min(int((from+engine.Of(step)-1)/engine.Of(step))-1, last-1), 0)
	return h.graphs[first:last], first
}

// loops tells whether queues of a loop wait for each other in a circle.
func (l *look) loops(loop []truth.Node) bool {
	for _, c := range l.cycles {
		for _, n := range c {
			if slices.Contains(loop, n) {
				return true
			}
		}
	}
	return false
}
