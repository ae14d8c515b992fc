package sim

import (
	"math/bits"

	"github.com/weft-telemetry/weft/sim/engine"
)

// worker runs the events of some nodes, one node after the other. It holds what
// they would otherwise share with the nodes of other workers. A network has one
// worker for each core; with one, it runs all nodes.
//
// While a window runs, a worker touches its own nodes only. What they do to
// others is kept until the window ends: packets on links between workers,
// flows that wait for one of another host, calls, and what an observer must see
// in order. None of it depends on which worker runs a node.
type worker struct {
	now    engine.Time // of the node that runs
	pool   pool
	counts Counts // since the last call of Network.settle
	net    *Network
	ns3    bool // Config.NS3
	large  bool // the fabric does not fit into a core's cache

	index    int
	running  *node    // the node that runs; nil between windows
	active   []uint64 // nodes with events, one bit each
	earliest engine.Time
	events   int64 // in the last window

	crossings     [2][][]crossing // by parity of the window and receiving worker
	firstCrossing engine.Time     // arrival of the earliest

	calls        []pendingCall
	dependencies []metDependency
	starts       []remoteStart
	learned      []learnedHop
	records      []FlowRecord // finished since the last call of Network.settle
	computations []FlowRecord
	observed     []observation
	shown        int // of them

	_ [64]byte // the next worker's fields are on other cache lines
}

// crossing is a packet on a link between two workers.
type crossing struct {
	at  engine.Time // when it arrives
	to  *Port
	pkt *Packet
}

// pendingCall is a call that a node has scheduled.
type pendingCall struct {
	at   engine.Time
	from engine.Origin
	run  func()
}

// metDependency is a flow that a flow of another host waited for.
type metDependency struct {
	waiting *flow
	at      engine.Time
}

// remoteStart is a flow that starts at another node.
type remoteStart struct {
	flow *flow
	at   engine.Time
}

// learnedHop is a hop of a flow's path that a switch has looked up.
type learnedHop struct {
	flow         *flow
	tableVersion uint16
	direction    uint8
	hop, out     uint8
}

// largeFabric is a number of nodes from which to prefetch their ports is a gain: a
// fat-tree of k=4 has 36, one of k=8 208.
const largeFabric = 128

func newWorker(n *Network, index int) *worker {
	return &worker{
		net: n, ns3: n.cfg.NS3, large: len(n.nodes) >= largeFabric, index: index,
		active:   make([]uint64, (len(n.nodes)+63)/64),
		earliest: engine.Forever, firstCrossing: engine.Forever,
	}
}

// run runs the worker's nodes up to, not including, end.
func (w *worker) run(end engine.Time) {
	before := w.counts.Events
	w.earliest, w.firstCrossing = engine.Forever, engine.Forever
	if s := &w.net.sched; len(s.workers) > 1 {
		w.takeCrossings(s.parity ^ 1)
	}
	for i := range w.active {
		// Bits that are set during the loop belong to events after end.
		for word := w.active[i]; word != 0; word &= word - 1 {
			nd := &w.net.nodes[i<<6|bits.TrailingZeros64(word)]
			if next := word & (word - 1); next != 0 && w.large {
				w.net.nodes[i<<6|bits.TrailingZeros64(next)].prefetchArrivals()
				if next &= next - 1; next != 0 {
					w.net.nodes[i<<6|bits.TrailingZeros64(next)].prefetchPorts()
				}
			}
			if nd.next < end {
				w.runNode(nd, end)
			}
			if nd.next == engine.Forever {
				w.active[i] &^= word & -word
			}
			w.earliest = min(w.earliest, nd.next)
		}
	}
	w.running = nil
	w.events = w.counts.Events - before
}

// runNode runs one node's events before end, in order. (Inlined into run, as a
// profile may suggest, its search runs out of registers and takes half as many
// instructions again.)
//
//go:noinline
func (w *worker) runNode(nd *node, end engine.Time) {
	w.running = nd
	before := w.counts.Events
	for {
		due := nd.due
		at, which := due[0], 0
		for i := 1; i < len(due); i++ {
			t := due[i]
			if t >= at {
				continue // in this form the compiler makes half as many instructions
			}
			at, which = t, i
		}
		if w.ns3 {
			which = nd.amongTiedNS3(at, which)
		}
		if nd.timerAt <= at {
			if at = nd.timerAt; at < end {
				w.now = at
				w.counts.Events++
				nd.fire(nd.popTimer())
				continue
			}
		}
		if at >= end {
			nd.next = at
			break
		}
		w.now = at
		w.counts.Events++
		nd.ports[which].handleEvent(at)
	}
	nd.cost += w.counts.Events - before
}

// wake records that a node has an event at that time.
func (w *worker) wake(nd *node, at engine.Time) {
	if at < nd.next {
		nd.next = at
		w.active[nd.id>>6] |= 1 << (nd.id & 63)
		w.earliest = min(w.earliest, at)
	}
}

// at schedules a call; see Network.At.
func (w *worker) at(at engine.Time, f func()) {
	at = max(at, w.now)
	nd := w.running
	if nd == nil {
		w.net.sched.calls.Push(at, engine.Origin{Asked: w.now, By: -1}, f)
		return
	}
	at = max(at, w.net.nextWindow(w.now))
	w.calls = append(w.calls, pendingCall{at, engine.Origin{Asked: w.now, By: int32(nd.id)}, f})
}

// startAt starts a flow at a time. Another node learns of it one lookahead
// later.
func (w *worker) startAt(f *flow, at engine.Time) {
	if w.running == nil || w.running == f.src.node {
		f.src.node.addTimer(timer{at: at, kind: startFlow, obj: f.id})
		return
	}
	w.starts = append(w.starts, remoteStart{f, max(at, w.net.nextWindow(w.now))})
}

// sendCrossing sends a packet to a port of another worker.
//
//go:noinline
func (w *worker) sendCrossing(worker int, to *Port, at engine.Time, pkt *Packet) {
	list := &w.crossings[w.net.sched.parity][worker]
	*list = append(*list, crossing{at, to, pkt})
	w.firstCrossing = min(w.firstCrossing, at)
}

// takeCrossings receives the packets that other workers sent in the window of
// that parity, the last one.
func (w *worker) takeCrossings(parity int) {
	s := &w.net.sched
	for _, from := range s.workers {
		list := from.crossings[parity][w.index]
		for i := range list {
			c := &list[i]
			if c.to.inbox.push(c.at, c.pkt) {
				c.to.scheduleAt(c.at)
			}
		}
		from.crossings[parity][w.index] = list[:0]
	}
}

// endWindow applies what the worker's nodes did to other nodes.
func (w *worker) endWindow() {
	n := w.net
	for i := range w.calls {
		c := &w.calls[i]
		n.sched.calls.Push(c.at, c.from, c.run)
		c.run = nil
	}
	w.calls = w.calls[:0]
	for _, d := range w.dependencies {
		d.waiting.notBefore = max(d.waiting.notBefore, n.nextWindow(d.at))
		d.waiting.meetDependency(d.at)
	}
	w.dependencies = w.dependencies[:0]
	for _, s := range w.starts {
		s.flow.src.node.addTimer(timer{at: s.at, kind: startFlow, obj: s.flow.id})
	}
	w.starts = w.starts[:0]
	for _, l := range w.learned {
		if known := &l.flow.paths[l.direction]; known.tableVersion == l.tableVersion {
			known.path[l.hop] = l.out
		}
	}
	w.learned = w.learned[:0]
}
