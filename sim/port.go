package sim

import (
	"math/bits"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

const (
	numPriorities = 8
	controlQueue  = numPriorities // strict priority; PFC never pauses it
	numQueues     = numPriorities + 1
	controlBit    = 1 << controlQueue
)

// Port is one end of a link: its queues, its transmitter, and the pauses that
// the neighbour asked for.
type Port struct {
	// Fields are ordered by use, by cache lines. For a packet that leaves:
	peer      *Port
	busyUntil engine.Time
	psPerByte int64 // 0 where a byte does not take whole picoseconds, or times are ns-3's
	delay     engine.Time
	TxPkts    int64
	TxData    model.Bytes
	tap       Tap    // nil usually
	nonEmpty  uint16 // queues with packets, one bit each
	paused    uint16 // priorities that the neighbour has paused
	ID        model.PortID
	pfcDue    uint8 // pause frames to send, one bit per priority
	next      uint8 // where round robin continues

	// For one that arrives:
	inbox  linkQueue    // packets in flight to this port
	txAt   engine.Time  // when it transmits the next packet
	wakeAt engine.Time  // when a flow of its host is due
	due    *engine.Time // its entry in node.due
	node   *node
	w      *worker // that runs the node

	// For both:
	sw      *Switch // one of sw and host is set
	host    *Host
	impair  impairments    // faults of this link; nil usually
	txTimes *[]engine.Time // by size, where times are ns-3's
	crosses int            // 1 + the worker of the peer, if it is another; else 0
	_       [8]byte

	// For one that waits; no queue crosses a cache line.
	queues [numQueues]fifo

	index   int32
	pfcStop uint8 // what due pause frames say, one bit per priority: pause, or resume
	pfcNext uint8 // next priority of pauseFrame's round robin
	ecn     ecnCurve
	rate    model.Rate
	Node    model.NodeID

	pauseGen   [numPriorities]uint16 // invalidates expiry events
	refreshGen [numPriorities]uint16

	Drops          [numReasons]int64
	Keepalives     int64                      // BGP keepalives received
	PausesReceived int64                      // PAUSE frames received
	PausedFor      [numPriorities]engine.Time // time spent paused, completed pauses only
	pausedSince    [numPriorities]engine.Time
	PFC            [numPriorities]PFCCounts
	Marked         [numPriorities]int64 // packets that got an ECN mark in this port's queue

	miscounts []*miscount // faults of its counters; nil usually
}

// PFCCounts are the pause and resume frames of one priority at one port.
type PFCCounts struct {
	Sent, Received int64
	Transitions    int64 // pauses received while the port was not paused
}

// ecnCurve is ECNParams as switches use them.
type ecnCurve struct {
	kmin, kmax int64
	pmax       float64
}

func (n *Network) newPort(tn *topo.Node, tp *topo.Port) *Port {
	p := &Port{
		Node: tn.ID, ID: tp.ID, w: n.sched.workers[0], index: int32(len(n.ports)),
		rate: tp.Rate, delay: engine.Of(tp.Delay),
	}
	if const8 := int64(8 * engine.Second); n.cfg.NS3 {
		p.txTimes = n.timesAt(tp.Rate)
	} else if const8%int64(tp.Rate) == 0 {
		p.psPerByte = const8 / int64(tp.Rate)
	}
	p.ecn = ecnCurve{kmin: 1 << 62, kmax: 1 << 62}
	if e, ok := n.cfg.ECNFor(tp.Rate); ok {
		p.ecn = ecnCurve{int64(e.Kmin), int64(e.Kmax), e.Pmax}
	}
	if tp.ErrorRate > 0 {
		p.impair.add(&impairment{loss: tp.ErrorRate, reason: DropCorrupt})
	}
	n.ports = append(n.ports, p)
	return p
}

// serialize returns the transmission time of a packet.
func (p *Port) serialize(size int32) engine.Time {
	if p.psPerByte != 0 {
		return engine.Time(int64(size) * p.psPerByte)
	}
	return p.serializeOdd(size)
}

// serializeOdd is a separate function so that serialize can be inlined; a profile would
// inline it in turn.
//
//go:noinline
func (p *Port) serializeOdd(size int32) engine.Time {
	if p.txTimes != nil {
		return p.serializeNS3(size)
	}
	return engine.Transmit(int64(size), p.rate)
}

// Rate returns the link's speed.
func (p *Port) Rate() model.Rate { return p.rate }

// Peer returns the other end of the link.
func (p *Port) Peer() *Port { return p.peer }

// QueueBytes returns the bytes in one priority's queue.
func (p *Port) QueueBytes(prio model.Priority) int64 { return p.queues[prio].bytes }

// QueuePackets returns the packets in one priority's queue.
func (p *Port) QueuePackets(prio model.Priority) int32 { return p.queues[prio].packets }

// Paused reports whether the neighbour has paused a priority.
func (p *Port) Paused(prio model.Priority) bool { return p.paused>>prio&1 != 0 }

// PausedTime returns how long the neighbour has paused a priority, up to now.
func (p *Port) PausedTime(prio model.Priority) engine.Time {
	t := p.PausedFor[prio]
	if p.Paused(prio) {
		t += p.w.now - p.pausedSince[prio]
	}
	return t
}

// enqueue queues a packet and transmits if the wire is free.
func (p *Port) enqueue(pkt *Packet) {
	q := uint8(pkt.Priority)
	if pkt.Control {
		q = controlQueue
	}
	p.queues[q].push(pkt)
	p.nonEmpty |= 1 << q
	if n := p.w.net; n.queueObserver != nil {
		n.queueObserver.Queued(p.w.now, pkt, p)
	}
	p.kick()
}

// kick makes the port transmit as soon as it can.
func (p *Port) kick() {
	if p.txAt != engine.Forever {
		return
	}
	if p.w.now >= p.busyUntil {
		p.transmit()
		return
	}
	p.transmitWhenFree()
}

// transmitWhenFree schedules transmit for the end of the current transmission.
func (p *Port) transmitWhenFree() {
	p.txAt = p.busyUntil
	p.scheduleAt(p.txAt)
}

// transmit sends the next eligible packet: pause frames first, then control,
// then round robin over the priorities that are not paused.
func (p *Port) transmit() {
	var pkt *Packet
	switch ready := p.nonEmpty &^ p.paused; {
	case p.pfcDue != 0:
		pkt = p.pauseFrame()
	case ready&controlBit != 0:
		pkt = p.queues[controlQueue].pop()
		if p.queues[controlQueue].head == nil {
			p.nonEmpty &^= controlBit
		}
		switch {
		case p.host != nil:
			if p.w.net.cfg.AckHosts {
				pkt.Control = p.w.net.ns3TopPriority(pkt.Priority)
			}
		case !p.sw.runDequeue(pkt, p):
			p.kick()
			return
		}
	case ready == 0:
		// A host's flows make their packets when the wire is free.
		if p.host == nil {
			return
		}
		if pkt = p.host.nextPacket(p); pkt == nil {
			return
		}
	default:
		// Rotate so that the queue after the last one served comes first.
		turned := ready>>p.next | ready<<(numPriorities-p.next)
		q := (uint8(bits.TrailingZeros16(turned)) + p.next) & (numPriorities - 1)
		p.next = (q + 1) & (numPriorities - 1)
		pkt = p.queues[q].pop()
		if p.queues[q].head == nil {
			p.nonEmpty &^= 1 << q
		}
		if p.sw != nil && !p.sw.finishDequeue(p, pkt) {
			p.kick()
			return
		}
	}
	p.send(pkt)
	if p.nonEmpty&^p.paused != 0 || p.pfcDue != 0 || p.host != nil && p.host.backlogged(p) {
		p.transmitWhenFree()
	}
}

// idle reports whether a packet would be sent at once, before any other.
func (p *Port) idle(pkt *Packet) bool {
	return p.nonEmpty == 0 && p.pfcDue == 0 && p.w.now >= p.busyUntil && (pkt.Control || p.paused>>pkt.Priority&1 == 0)
}

// send puts a packet on the wire, which must be free.
func (p *Port) send(pkt *Packet) {
	w := p.w
	p.busyUntil = w.now + p.serialize(pkt.Size)
	var late engine.Time
	if len(p.impair) != 0 {
		late = p.impair.slow(p, pkt)
	}
	if w.net.traits.INTMulti > 0 && p.sw != nil && pkt.Kind == KindData {
		p.stampINT(pkt)
	}
	p.TxPkts++
	p.TxData += model.Bytes(pkt.Size)
	if pkt.Kind != KindPFC {
		w.counts.Hops++
	}
	if p.tap != nil {
		p.tap(w.now, pkt)
	}
	if len(p.impair) == 0 || p.impair.survives(p, pkt) {
		at := p.busyUntil + p.delay + late
		switch to := p.peer; {
		case p.crosses != 0: // without a look at the peer, which another core may have in its cache
			w.sendCrossing(p.crosses-1, to, at, pkt)
		case to.inbox.push(at, pkt):
			to.scheduleAt(at)
		}
	}
}
