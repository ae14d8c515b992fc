package sim

import (
	"math/bits"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// This file makes a run behave as one of the HPCC simulator, an ns-3 fork,
// where its behaviour differs from ours: Config.NS3.

// timesAt returns transmission times at a rate, by size. A table is faster than
// ns-3's floating point.
func (n *Network) timesAt(rate model.Rate) *[]engine.Time {
	if t := n.txTimes[rate]; t != nil {
		return t
	}
	t := make([]engine.Time, n.maxFrame()+1)
	for size := range t {
		t[size] = engine.TransmitNS3(int64(size), rate)
	}
	n.txTimes[rate] = &t
	return &t
}

func (p *Port) serializeNS3(size int32) engine.Time {
	var t engine.Time
	if times := *p.txTimes; int(size) < len(times) {
		t = times[size]
	} else {
		t = engine.TransmitNS3(int64(size), p.rate)
	}
	if t|p.delay == 0 {
		// ns-3 would process its arrival before its departure.
		return engine.Nanosecond
	}
	return t
}

// ns3TopPriority reports whether packets of a priority precede all others,
// unpaused and without buffer accounting: ns-3's queue 0.
func (n *Network) ns3TopPriority(prio model.Priority) bool { return prio == 0 && n.cfg.NS3 }

// stampINT writes the port's in-band telemetry on a packet that leaves it.
func (p *Port) stampINT(pkt *Packet) {
	queued := int64(bits.OnesCount8(p.pfcDue)) * int64(p.w.net.pfcSize)
	for full := p.nonEmpty; full != 0; full &= full - 1 {
		queued += p.queues[bits.TrailingZeros16(full)].bytes
	}
	e := p.w.pool.extra(pkt)
	e.INT.Push(p.w.now, p.TxData, queued, p.rate, p.w.net.traits.INTMulti)
}

// roundRobin is the order in which a NIC serves its flows: in the order they
// started, from after the last one that sent. Finished flows leave it when a
// search finds them.
type roundRobin struct {
	flows []*flow
	last  int // index of the flow that sent last
}

func (t *roundRobin) addFlow(f *flow) {
	f.nicState = inRoundRobin
	t.flows = append(t.flows, f)
}

// nextPacket makes the packet of the flow whose turn it is, or schedules the
// next search.
//
// The NIC searches again when the first of its flows with bytes to send is due
// by its pacing, whether or not a window or a pause blocks it. If that time has
// passed, or an earlier search had found a later time, it waits for an
// acknowledgement: the original does the same.
func (t *roundRobin) nextPacket(p *Port, now engine.Time) *Packet {
	n := len(t.flows)
	pick, done := -1, n
	at := t.last
	for range n {
		if at++; at >= n {
			at %= n
		}
		f := t.flows[at]
		if !p.Paused(f.prio) && f.maySend() {
			if f.nextSend <= now {
				pick = at
				break
			}
		} else if f.done && at < done {
			done = at
		}
	}
	if done < n {
		pick = t.removeDone(done, pick)
	}
	if pick >= 0 {
		t.last = pick
		return t.flows[pick].makePacket()
	}
	due := engine.Forever
	for _, f := range t.flows {
		if f.sent < f.size {
			due = min(due, f.nextSend)
		}
	}
	if p.wakeAt == engine.Forever && due > now {
		p.wakeBy(due)
	}
	return nil
}

// removeDone removes finished flows from an index on, and returns the new index
// of the flow that was picked.
func (t *roundRobin) removeDone(from, pick int) int {
	kept := from
	for i := from; i < len(t.flows); i++ {
		f := t.flows[i]
		if f.done {
			f.nicState = notListed
			continue
		}
		if i == pick {
			pick = kept
		}
		t.flows[kept] = f
		kept++
	}
	clear(t.flows[kept:])
	t.flows = t.flows[:kept]
	return pick
}

// amongTiedNS3 returns the port of the node's next event: first is the first port
// with an event at that time.
func (nd *node) amongTiedNS3(at engine.Time, first int) int {
	if at == engine.Forever {
		return first
	}
	for _, t := range nd.due[first+1:] {
		if t == at {
			return nd.firstNS3(at, first)
		}
	}
	return first
}

// firstNS3 chooses among the events of one instant at the ports from an index
// on. Whole nanoseconds make ties frequent. In ns-3 the event that was
// scheduled first comes first: arrivals, which were scheduled a link delay ago,
// and only then ends of transmissions. The order of arrivals of packets that
// were sent at one instant depends there on what their senders did before; here
// it is the order of ports.
func (nd *node) firstNS3(at engine.Time, port int) int {
	best, since := port, engine.Forever
	for i := port; i < len(nd.due); i++ {
		p := nd.ports[i]
		if nd.due[i] != at || p.inbox.at != at {
			continue
		}
		if began := at - p.delay - p.peer.serialize(p.inbox.head.Size); began < since {
			best, since = i, began
		}
	}
	return best
}
