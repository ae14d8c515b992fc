package sim

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// How events are ordered: conservative parallel-simulation windows, on one
// goroutine.
//
// A node affects another node only over a link, no sooner than the link's delay
// plus the transmission time of the shortest frame. The minimum of these sums
// is the lookahead. Within one lookahead window, events at one node cannot
// affect another, so the nodes run one after the other, each through all its
// events of the window in order of time (ties: by port, then arrivals before
// departures). The result equals that of one event queue for the whole fabric,
// but a node's ports, buffer and flows stay in the cache while it runs, and the
// order is found by comparing a few times instead of keeping a hundred thousand
// events sorted. On fat-trees of k=4, 8 and 16 that is 1.9, 1.4 and 2 times as
// fast (BenchmarkFatTree; the figures are in docs/decisions/0008).
//
// Windows lie on a grid of the lookahead, so that the time at which Run stops
// does not matter. Events of the whole fabric (faults, samples, reports) are
// calls: they run between windows, before the events of their instant, and a
// call that a node schedules runs on the grid. Calls of one instant are ordered
// by when they were scheduled, not by which node ran first.
type schedule struct {
	calls     engine.Queue[func()]
	lookahead engine.Time
	running   *node    // the node that runs
	active    []uint64 // nodes with events, one bit each
	earliest  engine.Time
}

// node is a switch or a host and its pending events.
type node struct {
	sw    *Switch
	host  *Host
	clock Clock
	rng   rand.PCG

	id      model.NodeID
	ports   []*Port
	due     []engine.Time // by port: the time of its next event
	next    engine.Time   // the minimum of due and timers
	timers  timerHeap
	timerAt engine.Time // when the first of them is due; Forever if there is none
}

// start prepares the schedule once all nodes exist.
func (n *Network) start() {
	n.sched.lookahead = engine.Forever / 4
	n.sched.active = make([]uint64, (len(n.nodes)+63)/64)
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
	}
	n.sched.earliest = engine.Forever
}

// At calls f at a simulated time, not before now. Scheduled by a node, it runs
// on the grid of the lookahead, when all nodes have reached that time.
func (n *Network) At(at engine.Time, f func()) {
	at = max(at, n.now)
	if n.sched.running != nil {
		at = max(at, n.nextWindow(n.now))
	}
	n.sched.calls.Push(at, n.callOrigin(), f)
}

// callOrigin returns the current time and the node that runs.
func (n *Network) callOrigin() engine.Origin {
	if nd := n.sched.running; nd != nil {
		return engine.Origin{Asked: n.now, By: int32(nd.id)}
	}
	return engine.Origin{Asked: n.now, By: -1}
}

// nextWindow returns the start of the window after t.
func (n *Network) nextWindow(t engine.Time) engine.Time {
	return (t/n.sched.lookahead + 1) * n.sched.lookahead
}

// Run runs events up to and including until. It may be called again to
// continue.
func (n *Network) Run(until engine.Time) {
	s := &n.sched
	for {
		call, ok := s.calls.Next()
		if !ok {
			call = engine.Forever
		}
		first := min(call, s.earliest)
		if first > until {
			break
		}
		if call <= s.earliest {
			at, f, _ := s.calls.Pop(call)
			n.now = at
			n.Counts.Events++
			f()
			continue
		}
		n.runWindow(min(n.nextWindow(first), call, until+1))
	}
	n.now = until
}

// runWindow runs every node up to, not including, end.
func (n *Network) runWindow(end engine.Time) {
	s := &n.sched
	s.earliest = engine.Forever
	for w := range s.active {
		// Bits that are set during the loop belong to events after end.
		for word := s.active[w]; word != 0; word &= word - 1 {
			nd := &n.nodes[w<<6|bits.TrailingZeros64(word)]
			if nd.next < end {
				n.runNode(nd, end)
			}
			if nd.next == engine.Forever {
				s.active[w] &^= word & -word
			}
			s.earliest = min(s.earliest, nd.next)
		}
	}
	s.running = nil
}

// runNode runs one node's events before end, in order. (Inlined into runWindow,
// as a profile may suggest, its search runs out of registers and takes half as
// many instructions again.)
//
//go:noinline
func (n *Network) runNode(nd *node, end engine.Time) {
	n.sched.running = nd
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
		if n.cfg.NS3 {
			at, which = nd.nextEventNS3()
		}
		if nd.timerAt <= at {
			if at = nd.timerAt; at < end {
				n.now = at
				n.Counts.Events++
				n.fire(nd.popTimer())
				continue
			}
		}
		if at >= end {
			nd.next = at
			return
		}
		n.now = at
		n.Counts.Events++
		nd.ports[which].handleEvent(at)
	}
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
		p.net.wakeNode(p.node, at)
	}
}

// wakeNode records that a node has an event at that time.
func (n *Network) wakeNode(nd *node, at engine.Time) {
	if at < nd.next {
		nd.next = at
		n.sched.active[nd.id>>6] |= 1 << (nd.id & 63)
		n.sched.earliest = min(n.sched.earliest, at)
	}
}

// Idle reports whether no events are pending.
func (n *Network) Idle() bool { return n.sched.earliest == engine.Forever && n.sched.calls.Len() == 0 }
