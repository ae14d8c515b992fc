package sim

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/packet"
)

// tcp is the state of a TCP-like flow: handshake, slow start, congestion
// avoidance, fast retransmit and recovery (NewReno), retransmission timeout,
// and DCTCP's reaction to marks. Windows are in bytes of payload.
type tcp struct {
	state    tcpState
	cwnd     float64
	ssthresh float64

	dups       int   // consecutive duplicate acknowledgements
	recovering bool  // until recover is acknowledged
	recover    int64 // highest byte sent when recovery began
	resend     bool  // the segment at acked is sent before new data

	srtt, rttvar, rto engine.Time
	backoff           uint

	// DCTCP: the share of marked bytes, smoothed, over windows of data.
	alpha         float64
	ackedInWindow int64
	markedBytes   int64
	windowEnd     int64

	// Receiver: data that arrived out of order, as disjoint ascending ranges.
	outOfOrder []byteRange
}

type tcpState uint8

const (
	tcpClosed tcpState = iota
	tcpSynSent
	tcpOpen
)

type byteRange struct{ from, to int64 }

const (
	initialWindow = 10                   // segments, RFC 6928
	minRTO        = 1 * time.Millisecond // unless Config.TCPMinRTO says otherwise
	maxRTO        = 1 * time.Second
	dctcpGain     = 1.0 / 16
)

func (f *flow) startTCP() {
	f.tcp = &tcp{
		cwnd: initialWindow * float64(f.net.cfg.MTU), ssthresh: 1 << 40,
		rto: min(10*f.net.minRTO(), engine.Of(maxRTO)), alpha: 1,
	}
}

func (n *Network) minRTO() engine.Time {
	if n.cfg.TCPMinRTO > 0 {
		return engine.Of(n.cfg.TCPMinRTO)
	}
	return engine.Of(minRTO)
}

func (t *tcp) maySend(f *flow) bool {
	switch t.state {
	case tcpClosed:
		return true
	case tcpSynSent:
		return false
	}
	return t.resend || f.sent < f.size && float64(f.sent-f.acked) < t.cwnd
}

func (t *tcp) makePacket(f *flow) *Packet {
	n := f.net
	p := t.segment(f, false)
	switch {
	case t.state == tcpClosed:
		t.state = tcpSynSent
		p.TCPFlags = uint8(packet.SYN)
	default:
		seq := f.sent
		if t.resend {
			seq, t.resend = f.acked, false
			f.retransmitted += min(int64(n.cfg.MTU), f.size-seq)
		}
		payload := min(int64(n.cfg.MTU), f.size-seq)
		p.Seq, p.Payload = seq, int32(payload)
		p.ECN, p.TCPFlags = ECT, uint8(packet.ACK)
		if seq+payload == f.size {
			p.TCPFlags |= uint8(packet.FIN)
		}
		if seq == f.sent {
			if f.sent < f.highest {
				f.retransmitted += payload
			}
			f.noteOutstanding()
			f.sent += payload
			f.highest = max(f.highest, f.sent)
		}
	}
	p.Size = max(minFrame, ethernetSize+ipSize(&f.key)+tcpSize+p.Payload)
	f.pace(p)
	t.arm(f)
	return p
}

// segment makes an empty segment in one direction.
func (t *tcp) segment(f *flow, reverse bool) *Packet {
	w, ipid := f.src.w, &f.ipid
	if reverse {
		w, ipid = f.dst.w, &f.ackIPID
	}
	p := w.pool.get()
	p.Kind, p.Key = KindTCP, f.key
	if reverse {
		p.Key = f.reverseKey
		f.stampPath(p, 1)
	} else {
		f.stampPath(p, 0)
	}
	p.Priority, p.TTL, p.DSCP, p.IPID = f.prio, f.net.cfg.TTL, uint8(f.prio)<<3, *ipid
	*ipid++
	p.Sent = w.now
	return p
}

// receiveSegment is the receiver: it acknowledges every segment at once and
// echoes its mark, as DCTCP requires.
func (t *tcp) receiveSegment(f *flow, p *Packet) {
	flags := packet.ACK
	if packet.TCPFlags(p.TCPFlags)&packet.SYN != 0 {
		flags |= packet.SYN
	} else if p.Payload > 0 {
		t.reassemble(f, p.Seq, p.Seq+int64(p.Payload))
	}
	if p.ECN == CE {
		flags |= packet.ECE
	}
	if f.expected >= f.size {
		flags |= packet.FIN
	}
	a := t.segment(f, true)
	a.TCPFlags, a.Seq, a.Sent = uint8(flags), f.expected, p.Sent
	a.Size = max(minFrame, ethernetSize+ipSize(&f.key)+tcpSize)
	f.ackPort.enqueue(a)
}

// reassemble stores a range of payload and advances expected over what is
// contiguous.
func (t *tcp) reassemble(f *flow, from, to int64) {
	if to <= f.expected {
		return
	}
	if from > f.expected {
		i, _ := slices.BinarySearchFunc(t.outOfOrder, from, func(s byteRange, at int64) int { return int(s.from - at) })
		t.outOfOrder = slices.Insert(t.outOfOrder, i, byteRange{from, to})
		return
	}
	f.expected = to
	for len(t.outOfOrder) > 0 && t.outOfOrder[0].from <= f.expected {
		f.expected = max(f.expected, t.outOfOrder[0].to)
		t.outOfOrder = slices.Delete(t.outOfOrder, 0, 1)
	}
}

// receiveAck handles an acknowledgement at the sender.
func (t *tcp) receiveAck(f *flow, p *Packet) {
	n, now := f.net, f.src.w.now
	if f.done {
		return
	}
	flags := packet.TCPFlags(p.TCPFlags)
	if flags&packet.SYN != 0 {
		if t.state == tcpSynSent {
			t.state = tcpOpen
			t.updateRTO(now-p.Sent, n.minRTO())
			f.progress = now
			f.activate()
		}
		return
	}
	mss := float64(n.cfg.MTU)
	switch newly := p.Seq - f.acked; {
	case newly > 0:
		t.backoff, t.dups = 0, 0
		t.updateRTO(now-p.Sent, n.minRTO())
		f.acked, f.progress = p.Seq, now
		f.sent = max(f.sent, f.acked)
		t.updateAlpha(f, newly, flags&packet.ECE != 0)
		switch {
		case t.recovering && p.Seq >= t.recover:
			t.recovering, t.cwnd = false, t.ssthresh
		case t.recovering:
			t.resend = true // a partial acknowledgement names the next hole
		case t.cwnd < t.ssthresh:
			t.cwnd += float64(newly)
		default:
			t.cwnd += mss * float64(newly) / t.cwnd
		}
	case newly == 0 && f.sent > f.acked:
		t.dups++
		if t.recovering {
			t.cwnd += mss
		} else if t.dups == 3 {
			t.recovering, t.recover, t.resend = true, f.highest, true
			t.ssthresh = max(float64(f.sent-f.acked)/2, 2*mss)
			t.cwnd = t.ssthresh + 3*mss
		}
	}
	if f.acked >= f.size {
		f.finish()
		return
	}
	if t.maySend(f) {
		f.activate()
	}
}

// updateAlpha is DCTCP: once per window of data, cwnd shrinks by half the share
// of marked bytes.
func (t *tcp) updateAlpha(f *flow, newly int64, marked bool) {
	t.ackedInWindow += newly
	if marked {
		t.markedBytes += newly
	}
	if f.acked < t.windowEnd {
		return
	}
	share := float64(t.markedBytes) / float64(t.ackedInWindow)
	t.alpha += dctcpGain * (share - t.alpha)
	if t.markedBytes > 0 {
		t.cwnd = max(t.cwnd*(1-t.alpha/2), float64(f.net.cfg.MTU))
		t.ssthresh = t.cwnd
	}
	t.ackedInWindow, t.markedBytes, t.windowEnd = 0, 0, f.sent
}

// updateRTO updates the timeout from a round-trip time (RFC 6298).
func (t *tcp) updateRTO(rtt, least engine.Time) {
	if t.srtt == 0 {
		t.srtt, t.rttvar = rtt, rtt/2
	} else {
		diff := t.srtt - rtt
		t.rttvar += (max(diff, -diff) - t.rttvar) / 4
		t.srtt += (rtt - t.srtt) / 8
	}
	t.rto = min(max(t.srtt+4*t.rttvar, least), engine.Of(maxRTO))
}

func (t *tcp) deadline(f *flow) engine.Time {
	return f.progress + min(t.rto<<t.backoff, engine.Of(maxRTO))
}

func (t *tcp) arm(f *flow) { f.wakeBy(max(t.deadline(f), f.src.w.now+1)) }

// onTimer retransmits when nothing was acknowledged within the timeout.
func (t *tcp) onTimer(f *flow) {
	n, now := f.net, f.src.w.now
	if outstanding := f.sent > f.acked || t.state == tcpSynSent; !outstanding {
		return
	}
	if now < t.deadline(f) {
		t.arm(f)
		return
	}
	if t.state == tcpSynSent {
		t.state = tcpClosed
	}
	t.ssthresh = max(float64(f.sent-f.acked)/2, 2*float64(n.cfg.MTU))
	t.cwnd = float64(n.cfg.MTU)
	t.recovering, t.resend, t.dups = false, false, 0
	t.backoff = min(t.backoff+1, 16)
	f.sent, f.progress = f.acked, now
	f.activate()
	t.arm(f)
}
