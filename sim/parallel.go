package sim

import (
	"fmt"

	"github.com/weft-telemetry/weft/sim/engine"
)

// MaxCores bounds SetCores.
const MaxCores = 256

// parallelism is how the windows of a network run on several cores. The method
// is that of UNISON (EuroSys '24): many small parts, here nodes, assigned to
// workers by what they cost before. Unlike there, a node stays with its worker
// until loads drift apart, and neighbours share one where possible: its state
// stays in one core's cache.
type parallelism struct {
	parity   int  // of the window
	crossing bool // packets between workers are not delivered yet

	stale   bool // nodes must be assigned anew: cores or hooks have changed
	oneCore bool // see UseOneCore
	shared  bool // several workers have nodes
	flows   int  // that the observer is prepared for

	order     []*node // neighbours near each other; nil: not yet known
	windows   int     // since the loads were last compared
	minEvents int64   // fewer events in the last window run on one core
	used      int64   // windows that ran on several cores
	crew      *crew
	leftOver  leftOver
}

// minParallelEvents is about 15 µs of work, where two rounds of messages between
// cores take below one.
const minParallelEvents = 256

// SetCores makes the network run on that many cores, 1 at first. Results do not
// depend on it, byte for byte. Hooks may restrict what runs at the same time:
// see NodeLocal, ParallelObserver and UseOneCore. It must not be called by an
// event.
func (n *Network) SetCores(cores int) error {
	if cores < 1 || cores > MaxCores {
		return fmt.Errorf("sim: %d cores, want 1 to %d", cores, MaxCores)
	}
	n.settle()
	s := &n.sched
	first := s.workers[0]
	n.assignAll(func(*node) *worker { return first })
	s.workers = s.workers[:1]
	for i := 1; i < cores; i++ {
		w := newWorker(n, i)
		w.now = first.now
		s.workers = append(s.workers, w)
	}
	for _, w := range s.workers {
		w.crossings = [2][][]crossing{make([][]crossing, cores), make([][]crossing, cores)}
		w.pool.leftOver = &s.leftOver
	}
	s.stale, s.shared, s.minEvents = true, false, minParallelEvents
	return nil
}

// Cores returns how many cores SetCores has set.
func (n *Network) Cores() int { return len(n.sched.workers) }

// ParallelWindows returns how many lookahead windows ran on several cores so far.
func (n *Network) ParallelWindows() int64 { return n.sched.used }

// runWindowParallel is runWindow with several workers.
func (n *Network) runWindowParallel(end engine.Time) {
	s := &n.sched
	if s.stale || len(n.flows) > s.flows {
		n.assignNodes()
	} else if s.shared {
		n.balanceLoads()
	}
	if !s.shared {
		s.workers[0].run(end)
		s.workers[0].endWindow()
		return
	}
	s.parity ^= 1
	expected := int64(0)
	for _, w := range s.workers {
		expected += w.events
	}
	if expected >= s.minEvents {
		if s.crew == nil {
			s.crew = newCrew(s.workers)
		}
		s.used++
		s.crew.run(end)
	} else {
		for _, w := range s.workers {
			w.run(end)
		}
	}
	for _, w := range s.workers {
		w.endWindow()
		s.crossing = s.crossing || w.firstCrossing != engine.Forever
		s.leftOver.give(&w.pool)
	}
	n.showObserved()
}

// deliverCrossings delivers the packets between workers.
func (n *Network) deliverCrossings() {
	s := &n.sched
	if !s.crossing {
		return
	}
	s.crossing = false
	for _, w := range s.workers {
		w.takeCrossings(s.parity)
		w.firstCrossing = engine.Forever
	}
}
