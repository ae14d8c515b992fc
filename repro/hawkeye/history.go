package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// history is the wait-for relation of a whole run, looked at every step.
type history struct{ samples []*waitForSample }

// tick is the relation at one instant.
type waitForSample struct {
	*truth.Graph
	cycles [][]truth.Node
	roots  map[truth.Node][]truth.Root // by queue, as far as they were asked for
	waitedFor map[truth.Node][]truth.Node
}

// queuesWaitedFor are all queues that a queue waits for.
func (l *waitForSample) queuesWaitedFor(queue truth.Node) []truth.Node {
	list, known := l.waitedFor[queue]
	if !known {
		for _, n := range l.Closure(queue).Nodes {
			if n.Kind == truth.KindQueue && n != queue {
				list = append(list, n)
			}
		}
		l.waitedFor[queue] = list
	}
	return list
}

// rootsOf is where the waiting of a queue ends.
func (l *waitForSample) rootsOf(queue truth.Node) []truth.Root {
	roots, known := l.roots[queue]
	if !known {
		roots = l.Closure(queue).Roots()
		l.roots[queue] = roots
	}
	return roots
}

const sampleInterval = 5 * time.Microsecond

// record looks until the end.
func (h *history) record(n *sim.Network, end engine.Time) {
	var again func()
	again = func() {
		g := truth.WaitFor(n)
		h.samples = append(h.samples, &waitForSample{g, g.Cycles(), map[truth.Node][]truth.Root{}, map[truth.Node][]truth.Node{}})
		if next := n.Now() + engine.Of(sampleInterval); next <= end {
			n.At(next, again)
		}
	}
	n.At(engine.Of(sampleInterval), again)
}

// samplesBetween returns the looks from one time to another, at least the one before
// the end, and the number of the first.
func (h *history) samplesBetween(from, to engine.Time) ([]*waitForSample, int) {
	last := min(int(to/engine.Of(sampleInterval)), len(h.samples))
	first := max(min(int((from+engine.Of(sampleInterval)-1)/engine.Of(sampleInterval))-1, last-1), 0)
	return h.samples[first:last], first
}

// inCycle tells whether queues of a loop wait for each other in a circle.
func (l *waitForSample) inCycle(loop []truth.Node) bool {
	for _, c := range l.cycles {
		for _, n := range c {
			if slices.Contains(loop, n) {
				return true
			}
		}
	}
	return false
}
