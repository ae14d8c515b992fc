package sim

import (
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// How events are ordered: conservative parallel-simulation windows.
//
// A node affects another node only over a link, no sooner than the link's delay
// plus the transmission time of the shortest frame. The minimum of these sums
// is the lookahead. Within one lookahead window, events at one node cannot
// affect another, so each node runs through all its events of the window in
// order of time (ties: by port, then arrivals before departures). The result
// equals that of one event queue for the whole fabric, but a node's ports,
// buffer and flows stay in the cache while it runs, and the order is found by
// comparing a few times instead of keeping a hundred thousand events sorted. On
// fat-trees of k=4, 8 and 16 that is 1.9, 1.4 and 2 times as fast
// (BenchmarkFatTree; the figures are in docs/decisions/0008). And nodes can run
// on several cores: see worker.
//
// Windows lie on a grid of the lookahead, so that the time at which Run stops
// does not matter. Events of the whole fabric (faults, samples, reports) are
// calls: they run between windows, before the events of their instant, and a
// call that a node schedules runs on the grid. Calls of one instant are ordered
// by when they were scheduled, not by which node ran first.
type schedule struct {
	calls     engine.Queue[func()]
	lookahead engine.Time
	workers   []*worker
	parallelism
}

// node is a switch or a host and its pending events.
type node struct {
	sw    *Switch
	host  *Host
	clock Clock
	rng   rand.PCG

	id       model.NodeID
	w        *worker // that runs it
	ports    []*Port
	due      []engine.Time // by port: the time of its next event
	next     engine.Time   // the minimum of due and timers
	timers   timerHeap
	timerAt  engine.Time // when the first of them is due; Forever if there is none
	timerSeq uint64
	cost     int64 // events since the nodes were last assigned to workers
	pinned   bool  // hooks make it run on the first worker
}

// start prepares the schedule once all nodes exist.
func (n *Network) start() {
	n.sched.lookahead = engine.Forever / 4
	for _, p := range n.ports {
		n.sched.lookahead = min(n.sched.lookahead, p.delay+p.serialize(min(minFrame, n.pfcSize)))
	}
	for i := range n.nodes {
		nd := &n.nodes[i]
		nd.id = model.NodeID(i)
		nd.next = engine.Forever
		nd.timerAt = engine.Forever
		nd.rng = *rand.NewPCG(n.cfg.Seed, uint64(i)+1)
		if nd.sw != nil {
			nd.ports, nd.sw.node = nd.sw.ports, nd
		} else {
			nd.ports, nd.host.node = nd.host.ports, nd
		}
		nd.due = slices.Repeat([]engine.Time{engine.Forever}, max(1, len(nd.ports)))
		for j, p := range nd.ports {
			p.node, p.due = nd, &nd.due[j]
			p.inbox.at, p.txAt, p.wakeAt = engine.Forever, engine.Forever, engine.Forever
		}
		nd.assign(n.sched.workers[0])
	}
}

// assign makes a worker run the node.
func (nd *node) assign(w *worker) {
	nd.w = w
	if nd.sw != nil {
		nd.sw.w = w
	} else {
		nd.host.w = w
	}
	for _, p := range nd.ports {
		p.w = w
	}
}

// prefetchPorts starts to load the ports of a node that runs soon: the fields that a
// packet needs that arrives or leaves. (Figures in docs/simulator.md#how-fast-it-is.)
func (nd *node) prefetchPorts() {
	for _, p := range nd.ports {
		prefetch(unsafe.Pointer(p))
		prefetch(unsafe.Pointer(&p.inbox))
		prefetch(unsafe.Pointer(&p.sw))
	}
}

// prefetchArrivals starts to load the first packet of each port, after prefetchPorts.
func (nd *node) prefetchArrivals() {
	for _, p := range nd.ports {
		pkt := p.inbox.head
		prefetch(unsafe.Pointer(pkt))
		if p.host != nil && pkt != nil {
			prefetch(unsafe.Pointer(&pkt.Key))
		}
		if p.crosses == 0 {
			prefetch(unsafe.Pointer(&p.peer.inbox))
		}
	}
}

// At calls f at a simulated time, not before now. Scheduled by a node, it runs
// on the grid of the lookahead, when all nodes have reached that time. Programs
// and observers that may run on several cores use the method of their switch or
// host instead.
func (n *Network) At(at engine.Time, f func()) { n.sched.workers[0].at(at, f) }

// At is Network's, scheduled by this switch.
func (sw *Switch) At(at engine.Time, f func()) { sw.w.at(at, f) }

// At is Network's, scheduled by this host.
func (h *Host) At(at engine.Time, f func()) { h.w.at(at, f) }

// nextWindow returns the start of the window after t.
func (n *Network) nextWindow(t engine.Time) engine.Time {
	return (t/n.sched.lookahead + 1) * n.sched.lookahead
}

// Run runs events up to and including until. It may be called again to
// continue.
func (n *Network) Run(until engine.Time) {
	s := &n.sched
	defer s.dismissCrew()
	for {
		call, ok := s.calls.Next()
		if !ok {
			call = engine.Forever
		}
		earliest := s.earliest()
		first := min(call, earliest)
		if first > until {
			break
		}
		if call <= earliest {
			n.settle()
			at, f, _ := s.calls.Pop(call)
			s.setNow(at)
			s.workers[0].counts.Events++
			f()
			continue
		}
		n.runWindow(min(n.nextWindow(first), call, until+1))
	}
	n.settle()
	s.setNow(until)
}

// earliest returns the time of the first event of any node.
func (s *schedule) earliest() engine.Time {
	first := engine.Forever
	for _, w := range s.workers {
		first = min(first, w.earliest, w.firstCrossing)
	}
	return first
}

// setNow sets the time between windows.
func (s *schedule) setNow(at engine.Time) {
	for _, w := range s.workers {
		w.now = at
	}
}

// runWindow runs every node up to, not including, end.
func (n *Network) runWindow(end engine.Time) {
	s := &n.sched
	if len(s.workers) == 1 {
		s.workers[0].run(end)
		s.workers[0].endWindow()
		return
	}
	n.runWindowParallel(end)
}

// settle hands over what workers have counted and recorded, and delivers
// packets between them: calls see the network as one core would leave it.
func (n *Network) settle() {
	s := &n.sched
	n.deliverCrossings()
	for _, w := range s.workers {
		n.Counts.add(&w.counts)
		w.counts = Counts{}
	}
	n.records = n.gather(n.records, func(w *worker) *[]FlowRecord { return &w.records })
	n.computations = n.gather(n.computations, func(w *worker) *[]FlowRecord { return &w.computations })
}

// gather appends the workers' lists of finished flows, in an order that does
// not depend on which worker ran which node.
func (n *Network) gather(all []FlowRecord, of func(*worker) *[]FlowRecord) []FlowRecord {
	before := len(all)
	for _, w := range n.sched.workers {
		list := of(w)
		all = append(all, *list...)
		clear(*list)
		*list = (*list)[:0]
	}
	if added := all[before:]; len(added) > 0 {
		n.Finished += len(added)
		slices.SortFunc(added, compareRecords)
	}
	return all
}

// handleEvent handles the event that is due at a port.
func (p *Port) handleEvent(at engine.Time) {
	switch at {
	case p.inbox.at:
		pkt := p.inbox.pop()
		*p.due = min(p.inbox.at, p.txAt, p.wakeAt)
		switch {
		case pkt.Kind == KindPFC:
			p.receivePause(pkt)
		case p.sw != nil:
			p.sw.receive(p, pkt)
		default:
			p.host.receive(p, pkt)
		}
	case p.txAt:
		p.txAt = engine.Forever
		*p.due = min(p.inbox.at, p.wakeAt)
		p.transmit()
	default:
		p.wakeAt = engine.Forever
		*p.due = min(p.inbox.at, p.txAt)
		p.kick()
	}
}

// scheduleAt makes a port's next event no later than at. It is for ports of the
// node that runs, or of any between windows.
func (p *Port) scheduleAt(at engine.Time) {
	if at < *p.due {
		*p.due = at
		p.w.wake(p.node, at)
	}
}

// Idle reports whether no events are pending.
func (n *Network) Idle() bool {
	return n.sched.earliest() == engine.Forever && n.sched.calls.Len() == 0
}
