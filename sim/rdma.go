package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
)

// dataSize returns the wire size of an RDMA packet; the first of a flow has a
// RETH.
func (n *Network) dataSize(f *flow, payload int32, first bool) int32 {
	if n.cfg.Overhead > 0 {
		return payload + n.cfg.Overhead
	}
	size := ethernetSize + ipSize(&f.key) + udpSize + rocePlain + (payload+3)&^3
	if first {
		size += rethSize
	}
	return max(size, minFrame)
}

// ackSize returns the wire size of an acknowledgement.
func (n *Network) ackSize(key *model.FlowKey) int32 {
	if n.cfg.AckSize > 0 {
		return n.cfg.AckSize
	}
	return ethernetSize + ipSize(key) + udpSize + rocePlain + 4 // AETH
}

func (f *flow) startRDMA() {
	n := f.net
	if n.cfg.Selective {
		f.startSelective()
	}
	window, rtt := int64(0), engine.Time(0)
	if n.cfg.Window {
		window, rtt = n.baseWindow(f)
		f.window = window
	}
	if !f.spec.NoCC && n.cfg.Congestion != nil {
		about := congestion.Flow{Line: f.rate, Window: window, BaseRTT: rtt, Payload: int64(n.cfg.MTU)}
		if pt := n.pathOf(f.key, f.src.ID); n.traits.Hops && pt != nil {
			about.Hops = len(pt.ports) - 1
		}
		f.control = n.cfg.Congestion.New(about)
	}
}

// receiveRDMA receives payload: in order it is acknowledged; out of order it is
// NACKed, once per gap and NackGap.
func (f *flow) receiveRDMA(p *Packet) {
	n, now := f.net, f.dst.w.now
	marked := p.ECN == CE
	switch {
	case f.placed != nil:
		f.receiveSelective(p, marked && n.cfg.CNPInterval == 0)
	case p.Seq == f.expected:
		f.expected += int64(p.Payload)
		f.unacked += int64(p.Payload)
		if f.unacked >= n.cfg.AckPerBytes || f.expected >= f.size || marked && n.cfg.CNPInterval == 0 {
			f.unacked = 0
			f.sendAck(KindAck, p, marked && n.cfg.CNPInterval == 0)
		}
	case p.Seq > f.expected:
		f.dst.w.counts.Reordered++
		if now >= f.nackAfter || f.nackFor != f.expected {
			f.nackAfter, f.nackFor = now+engine.Of(n.cfg.NackGap), f.expected
			f.sendAck(KindNack, p, marked && n.cfg.CNPInterval == 0)
		}
	default:
		// Duplicate: acknowledged again, or the sender would wait after a lost
		// acknowledgement.
		f.sendAck(KindAck, p, false)
	}
	if marked && n.cfg.CNPInterval > 0 && now >= f.cnpAfter {
		f.cnpAfter = now + engine.Of(n.cfg.CNPInterval)
		f.sendAck(KindCNP, p, true)
	}
}

// sendAck sends an acknowledgement, NACK or CNP.
func (f *flow) sendAck(kind Kind, to *Packet, echo bool) {
	n := f.net
	p := f.dst.w.pool.get()
	p.Kind, p.Key = kind, f.reverseKey
	f.stampPath(p, 1)
	p.Size = n.ackSize(&f.key)
	p.Priority, p.TTL, p.DSCP = f.prio, n.cfg.TTL, uint8(f.prio)<<3
	p.Control = n.cfg.AckControl || kind == KindCNP || n.ns3TopPriority(f.prio)
	p.Seq, p.Sent, p.Echo = f.expected, to.Sent, echo
	if f.placed != nil && to.Seq >= f.expected {
		p.sack = uint16(f.packetOf(to.Seq) - f.packetOf(f.expected) + 1)
	}
	if n.traits.INTMulti > 0 {
		p.Extra, to.Extra = to.Extra, nil // in-band telemetry returns to the sender
	}
	f.ackPort.enqueue(p)
}

// receiveRDMAAck handles an acknowledgement at the sender.
func (f *flow) receiveRDMAAck(p *Packet) {
	n, now := f.net, f.src.w.now
	if f.done {
		return
	}
	if p.Kind != KindCNP {
		before := f.acked
		if f.repeats != nil {
			f.acknowledged(p)
		} else if p.Seq > f.acked {
			f.acked, f.progress = p.Seq, now
			f.sent = max(f.sent, f.acked)
		}
		if w := f.src.flowObserver; w != nil && f.acked > before {
			w.Acked(f.src.Clock(), &f.key, f.acked)
		}
		if p.Kind == KindNack && f.repeats == nil && f.sent > f.acked {
			f.sent = f.acked // go back N
		}
	}
	if f.control != nil {
		if p.Echo {
			f.control.OnCNP(now)
		}
		if n.traits.Acks && p.Kind != KindCNP {
			f.updateRate(p)
		}
	}
	if f.acked >= f.size {
		f.finish()
		if !n.cfg.NS3 {
			return
		}
	}
	if n.cfg.NS3 {
		f.port.kick() // any flow may send now
	} else if f.maySend() {
		f.activate()
	}
}

// updateRate passes an acknowledgement to the congestion control.
func (f *flow) updateRate(p *Packet) {
	n := f.net
	a := congestion.Ack{Now: f.src.w.now, Sent: p.Sent, Seq: p.Seq, Next: f.sent, Marked: p.Echo}
	if p.Extra != nil {
		a.INT = &p.Extra.INT
	}
	old := f.rate
	f.setRate(f.control.OnAck(&a))
	if !n.traits.Repace || f.rate == old {
		return
	}
	// The new rate applies to the packet that is already due: its time moves.
	f.nextSend += n.transmit(f.lastSize, f.rate) - n.transmit(f.lastSize, old)
	if f.port.wakeAt != engine.Forever {
		f.port.wakeBy(f.nextSend)
	}
}

// flowTimer handles a flow's retransmission timeout. Rate recovery needs no
// timer; congestion control catches up when a packet is sent.
func (n *Network) flowTimer(id int32, gen uint16) {
	f := n.flows[id]
	if f == nil || f.timerGen != gen || f.done {
		return
	}
	f.timerAt = 0
	if f.tcp != nil {
		f.tcp.onTimer(f)
		return
	}
	if rto := engine.Of(n.cfg.RTO); rto > 0 && f.sent > f.acked && f.src.w.now-f.progress >= rto {
		f.progress = f.src.w.now
		if f.repeats != nil {
			f.timedOut()
		} else {
			f.sent = f.acked
		}
		f.activate()
	}
	f.armTimer()
}

// armTimer schedules the flow's timer, unless one is due before. A timer that
// fires too early does nothing and is armed again.
func (f *flow) armTimer() {
	n := f.net
	if n.cfg.RTO > 0 && f.sent > f.acked {
		f.wakeBy(max(f.progress+engine.Of(n.cfg.RTO), f.src.w.now+1))
	}
}

// wakeBy ensures a timer at that time or before.
func (f *flow) wakeBy(at engine.Time) {
	if at >= engine.Forever || f.timerAt != 0 && f.timerAt <= at {
		return
	}
	f.timerAt = at
	f.timerGen++
	f.src.node.addTimer(timer{at: at, kind: flowTimeout, obj: f.id, gen: f.timerGen})
}
