package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// history is the wait-for relation of a whole run, sampled every
// sampleInterval.
type history struct{ samples []*waitForSample }

// waitForSample is the relation at one instant.
type waitForSample struct {
	*truth.Graph
	cycles    [][]truth.Node
	roots     map[truth.Node][]truth.Root // by queue, computed on demand
	waitedFor map[truth.Node][]truth.Node
}

// queuesWaitedFor returns all queues that a queue waits for.
func (s *waitForSample) queuesWaitedFor(queue truth.Node) []truth.Node {
	list, known := s.waitedFor[queue]
	if !known {
		for _, n := range s.Closure(queue).Nodes {
			if n.Kind == truth.KindQueue && n != queue {
				list = append(list, n)
			}
		}
		s.waitedFor[queue] = list
	}
	return list
}

// rootsOf returns where the wait-for paths of a queue end.
func (s *waitForSample) rootsOf(queue truth.Node) []truth.Root {
	roots, known := s.roots[queue]
	if !known {
		roots = s.Closure(queue).Roots()
		s.roots[queue] = roots
	}
	return roots
}

const sampleInterval = 5 * time.Microsecond

// record samples until the end.
func (h *history) record(n *sim.Network, end engine.Time) {
	var sample func()
	sample = func() {
		g := truth.WaitFor(n)
		h.samples = append(h.samples, &waitForSample{
			g, g.Cycles(),
			map[truth.Node][]truth.Root{},
			map[truth.Node][]truth.Node{},
		})
		if next := n.Now() + engine.Of(sampleInterval); next <= end {
			n.At(next, sample)
		}
	}
	n.At(engine.Of(sampleInterval), sample)
}

// samplesBetween returns the samples from one time to another, at least the one
// before the end, and the index of the first.
func (h *history) samplesBetween(from, to engine.Time) ([]*waitForSample, int) {
	last := min(int(to/engine.Of(sampleInterval)), len(h.samples))
	first := max(min(int((from+engine.Of(sampleInterval)-1)/engine.Of(sampleInterval))-1, last-1), 0)
	return h.samples[first:last], first
}

// inCycle reports whether queues of a cycle wait for each other.
func (s *waitForSample) inCycle(cycle []truth.Node) bool {
	for _, c := range s.cycles {
		for _, n := range c {
			if slices.Contains(cycle, n) {
				return true
			}
		}
	}
	return false
}
