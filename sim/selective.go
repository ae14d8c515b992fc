package sim

import (
	"fmt"
	"math/bits"

	"github.com/weft-telemetry/weft/sim/engine"
)

// Selective repeat: a receiver places packets in the order they arrive, and
// acknowledges each of them beside the first byte it lacks. A sender repeats
// what is lost, and nothing else. That is what RDMA NICs need where packets of a
// flow take several paths: to them a gap is no loss.
//
// A packet is lost if its receiver got its headers without payload (Trimming),
// or if one that was sent ReorderTime later has arrived, as RACK has it
// (RFC 8985). Instead of the time of every packet, the sender keeps one mark: the
// time at which it noticed a gap, and what it had sent by then. When the
// acknowledgement of a packet sent ReorderTime after the mark arrives, what was
// sent before the mark and is not acknowledged is lost. That takes up to one
// round trip longer than with a time for each packet, and 16 bytes instead of
// 8 for each packet that is outstanding. The last packets of a flow, after which
// nothing arrives, wait for the timeout.

// selective is the sender's side.
type selective struct {
	sacked bitmap // the receiver has them, beyond acked
	lost   bitmap // to be repeated
	resent bitmap // since the mark

	window      int64 // bytes
	from        int64 // no packet before this one is lost
	lostPackets int
	inHand      int64 // bytes of sacked and lost packets: not in flight
	sackedBytes int64
	markSeq     int64
	markAt      engine.Time // 0: no mark
}

// placement is the receiver's side.
type placement struct {
	got   bitmap // beyond expected
	bytes int64  // placed, each of them once
}

func (c *Config) checkReordering() error {
	switch {
	case c.LoadBalancing > Adaptive:
		return fmt.Errorf("sim: %v, want %v, %v or %v", c.LoadBalancing, ECMP, Spray, Adaptive)
	case c.Trimming && !c.Selective:
		return fmt.Errorf("sim: trimming with go-back-N, want selective retransmission: only that repeats what was trimmed")
	case c.Selective && c.NS3:
		return fmt.Errorf("sim: selective repeat with NS3, whose NICs go back N")
	case c.Selective && (c.ReorderWindow < 64 || c.ReorderWindow > 1<<15):
		return fmt.Errorf("sim: reorder window %d, want 64 to %d packets", c.ReorderWindow, 1<<15)
	case c.Selective && c.ReorderTime < 0:
		return fmt.Errorf("sim: reorder time %v, want at least 0", c.ReorderTime)
	}
	return nil
}

// startSelective gives a flow that starts the state of both sides: bitmaps for
// its packets, or those of a window.
func (f *flow) startSelective() {
	n := f.net
	window := int64(n.cfg.ReorderWindow)
	window = min(window, f.size/int64(n.cfg.MTU)+1)
	words := 1 << bits.Len64(uint64(window-1)>>6)
	f.repeats = &selective{
		sacked: make(bitmap, words), lost: make(bitmap, words), resent: make(bitmap, words),
		window: int64(words) * 64 * int64(n.cfg.MTU),
	}
	f.placed = &placement{got: make(bitmap, words)}
}

// packetOf returns the number of the packet with a byte.
func (f *flow) packetOf(seq int64) int64 { return seq / int64(f.net.cfg.MTU) }

// packetsUntil returns how many packets hold the bytes before one.
func (f *flow) packetsUntil(seq int64) int64 {
	mtu := int64(f.net.cfg.MTU)
	return (seq + mtu - 1) / mtu
}

// payloadOf returns the bytes of a packet.
func (f *flow) payloadOf(packet int64) int64 {
	mtu := int64(f.net.cfg.MTU)
	return min(mtu, f.size-packet*mtu)
}

// receiveSelective places payload, or asks for what was trimmed.
func (f *flow) receiveSelective(p *Packet, echo bool) {
	r, counts, packet := f.placed, &f.dst.w.counts, f.packetOf(p.Seq)
	switch {
	case p.Seq < f.expected || r.got.has(packet):
		if p.Kind != KindTrimmed {
			counts.Duplicates++
		}
		f.sendAck(KindAck, p, echo)
		return
	case p.Kind == KindTrimmed:
		f.sendAck(KindNack, p, echo)
		return
	}
	r.bytes += int64(p.Payload)
	if p.Seq != f.expected {
		counts.Reordered++
		r.got.set(packet)
		f.sendAck(KindAck, p, echo)
		return
	}
	held := false
	f.expected += int64(p.Payload)
	for next := packet + 1; r.got.has(next); next++ {
		r.got.clear(next)
		f.expected += f.payloadOf(next)
		held = true
	}
	f.unacked += int64(p.Payload)
	if held || f.unacked >= f.net.cfg.AckPerBytes || f.expected >= f.size || echo {
		f.unacked = 0
		f.sendAck(KindAck, p, echo)
	}
}

// acknowledged handles an acknowledgement at the sender of a flow with selective
// repeat.
func (f *flow) acknowledged(p *Packet) {
	s, now := f.repeats, f.src.w.now
	if p.Seq > f.acked {
		for packet := f.packetOf(f.acked); packet < f.packetsUntil(p.Seq); packet++ {
			s.forget(packet, f.payloadOf(packet))
		}
		f.acked, f.progress = p.Seq, now
	}
	if packet := f.packetOf(p.Seq) + int64(p.sack) - 1; p.sack > 0 && packet >= f.packetOf(f.acked) && !s.sacked.has(packet) {
		size := f.payloadOf(packet)
		if p.Kind == KindNack {
			s.lose(packet, size)
		} else {
			s.forget(packet, size)
			s.sacked.set(packet)
			s.sackedBytes += size
			s.inHand += size
			f.progress = now
		}
	}
	f.findLosses(p.Sent)
}

// forget removes a packet from all lists.
func (s *selective) forget(packet, size int64) {
	if s.lost.has(packet) {
		s.lost.clear(packet)
		s.lostPackets--
		s.inHand -= size
	}
	if s.sacked.has(packet) {
		s.sacked.clear(packet)
		s.sackedBytes -= size
		s.inHand -= size
	}
	s.resent.clear(packet)
}

// lose lists a packet as lost.
func (s *selective) lose(packet, size int64) {
	if s.lost.has(packet) {
		return
	}
	s.lost.set(packet)
	if s.lostPackets++; s.lostPackets == 1 {
		s.from = packet
	}
	s.from = min(s.from, packet)
	s.inHand += size
}

// findLosses lists what is lost now that a packet sent at a time has arrived.
func (f *flow) findLosses(sent engine.Time) {
	s := f.repeats
	if s.sackedBytes == 0 {
		s.markAt = 0 // no gap
		return
	}
	if s.markAt != 0 && sent < s.markAt+engine.Of(f.net.cfg.ReorderTime) {
		return
	}
	if s.markAt != 0 {
		f.loseUntil(s.markSeq, s.resent)
	}
	clear(s.resent)
	s.markSeq, s.markAt = f.sent, f.src.w.now
}

// loseUntil lists what was sent before a byte and is not acknowledged as lost,
// except for some packets.
func (f *flow) loseUntil(end int64, except bitmap) {
	s := f.repeats
	for packet := f.packetOf(f.acked); packet < f.packetsUntil(end); packet++ {
		if !s.sacked.has(packet) && (except == nil || !except.has(packet)) {
			s.lose(packet, f.payloadOf(packet))
		}
	}
}

// timedOut lists everything that is outstanding as lost.
func (f *flow) timedOut() {
	f.loseUntil(f.sent, nil)
	f.repeats.markAt = 0
}

// nextByte returns the first byte of the next packet to send: a lost one first.
func (f *flow) nextByte() int64 {
	s := f.repeats
	if s == nil || s.lostPackets == 0 {
		return f.sent
	}
	packet := s.lost.next(s.from)
	s.from = packet + 1
	s.lost.clear(packet)
	s.lostPackets--
	s.inHand -= f.payloadOf(packet)
	s.resent.set(packet)
	return packet * int64(f.net.cfg.MTU)
}

// exhausted reports whether the flow has nothing to send now, whatever its
// window of congestion control permits.
func (f *flow) exhausted() bool {
	if s := f.repeats; s != nil {
		return s.lostPackets == 0 && (f.sent >= f.size || f.sent-f.acked >= s.window)
	}
	return f.sent >= f.size
}

// inFlight returns the bytes that may be in the fabric.
func (f *flow) inFlight() int64 {
	if f.repeats != nil {
		return f.sent - f.acked - f.repeats.inHand
	}
	return f.sent - f.acked
}
