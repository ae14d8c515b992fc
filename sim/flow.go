package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// flow is one message in flight: the state of its sender and its receiver.
type flow struct {
	net        *Network
	id         int32
	spec       traffic.Flow
	key        model.FlowKey
	reverseKey model.FlowKey // of what the receiver sends
	keyID      uint32        // KeyID of key; that of reverseKey is the next
	src        *Host
	dst        *Host
	port       *Port // the sender's egress port
	ackPort    *Port // the receiver's egress port, for acknowledgements
	prio       model.Priority
	paths      [2]flowPath // to the destination, and back

	// In the sender's NIC.
	next     *flow
	nicState nicState
	nextSend engine.Time
	lastSize int32 // of the packet that nextSend was computed from

	// Sender.
	size    int64 // bytes to send; MaxInt64 where the flow runs until a time
	sent    int64 // next byte to send
	acked   int64 // first byte not acknowledged
	highest int64 // first byte never sent: below it is retransmission
	window  int64 // limit of bytes in flight; 0: no limit
	rate    model.Rate
	maxRate model.Rate         // upper bound of rate
	control congestion.Control // nil: the flow keeps its rate
	started engine.Time
	ideal   engine.Time
	rtt     engine.Time // newest sample
	ipid    uint16
	begun   bool
	done    bool
	arrived bool // the receiver has every byte
	arrival engine.Time

	timerAt  engine.Time // when a timer is due, 0 if none
	timerGen uint16
	progress engine.Time // when something was last acknowledged

	// Receiver.
	expected  int64
	nackFor   int64
	nackAfter engine.Time
	cnpAfter  engine.Time
	unacked   int64 // bytes received since the last acknowledgement

	retransmitted int64
	pendingDeps   int32
	dependents    []int32

	tcp *tcp
}

// FlowRecord is the result of a flow.
type FlowRecord struct {
	ID            int
	Spec          traffic.Flow
	Key           model.FlowKey
	Start, Finish engine.Time
	Arrived       engine.Time // when the receiver had the last byte; 0: not yet
	Ideal         engine.Time // completion time on an empty fabric
	Sent          int64       // payload bytes acknowledged
	Retransmitted int64
	Finished      bool
}

// FCT returns the flow completion time as the sender sees it.
func (r *FlowRecord) FCT() engine.Time { return r.Finish - r.Start }

// Slowdown returns FCT over Ideal, at least 1.
func (r *FlowRecord) Slowdown() float64 {
	if r.Ideal <= 0 {
		return 1
	}
	return max(1, float64(r.FCT())/float64(r.Ideal))
}

// newFlow checks a flow and assigns addresses and ports.
func (n *Network) newFlow(s *traffic.Flow) (*flow, error) {
	if s.IsComputation() {
		return n.newComputation(s)
	}
	if s.Priority >= numPriorities {
		return nil, fmt.Errorf("priority %d, want 0 to 7", s.Priority)
	}
	if s.Bytes < 0 || s.Bytes == 0 && s.Stop == 0 {
		return nil, fmt.Errorf("%d bytes and no time to stop, want at least one of them", s.Bytes)
	}
	f := &flow{net: n, spec: *s, prio: s.Priority}
	f.size = int64(s.Bytes)
	if f.size == 0 {
		f.size = math.MaxInt64
	}
	if err := n.connect(f); err != nil {
		return nil, err
	}
	f.keyID = n.nextKeyIDs(f.key.V6)
	f.rate = f.port.rate
	if s.Rate > 0 {
		f.rate = min(f.rate, s.Rate)
	}
	f.maxRate = f.rate
	return f, nil
}

// nextKeyIDs returns the first of two KeyIDs. They repeat after 2^30 flows,
// when no packet of their first flow is left.
func (n *Network) nextKeyIDs(v6 bool) uint32 {
	if n.lastKeyID += 2; n.lastKeyID == keyV6 {
		n.lastKeyID = 2
	}
	if v6 {
		return n.lastKeyID | keyV6
	}
	return n.lastKeyID
}

// startFlow starts sending.
func (n *Network) startFlow(id int32) {
	f := n.flows[id]
	if f.spec.IsComputation() {
		f.src.compute(f)
		return
	}
	if n.sched.running != f.src.node { // it has migrated since
		f.src.node.addTimer(n, timer{at: n.nextWindow(n.now), kind: startFlow, obj: id})
		return
	}
	if f.spec.Queue != 0 && !f.src.sendQueue(f.spec.Queue).admit(f) {
		return
	}
	f.begun, f.started, f.progress = true, n.now, n.now
	f.ideal = n.idealTime(f)
	switch f.spec.Transport {
	case traffic.RDMA:
		f.startRDMA()
		if f.src.flowObserver != nil {
			f.notifyStart()
		}
	case traffic.TCP:
		f.startTCP()
	}
	if f.spec.Stop > 0 {
		n.At(timeOf(f.spec.Stop), f.stop)
	}
	f.activate()
}

// stop ends a flow that runs until a time: it sends nothing new and is done
// when the rest is acknowledged.
func (f *flow) stop() {
	f.size = min(f.size, max(f.highest, f.acked))
	if f.acked >= f.size || f.spec.Transport == traffic.UDP {
		f.finish()
	}
}

// finish closes a flow and starts its dependents.
func (f *flow) finish() {
	if f.done {
		return
	}
	f.done = true
	f.timerGen++
	if f.spec.Queue != 0 {
		f.src.sendQueue(f.spec.Queue).release(f)
	}
	n := f.net
	r := f.record()
	r.Finish, r.Finished = n.now, true
	n.Finished++
	if n.observer != nil {
		n.observer.FlowDone(n.now, &r)
	}
	n.records = append(n.records, r)
	if w := f.src.flowObserver; w != nil && f.spec.Transport == traffic.RDMA {
		w.Ended(f.src.Clock(), &f.key)
	}
	f.allReceived() // a flow that stops early has no last byte to arrive
	f.startDependents(func(d *flow) bool { return d.src != f.dst })
}

// allReceived runs when the last byte has arrived: dependents at the receiver
// need not wait for the acknowledgement.
func (f *flow) allReceived() {
	if !f.arrived {
		f.arrived, f.arrival = true, f.net.now
		f.startDependents(func(d *flow) bool { return d.src == f.dst })
	}
}

// startDependents counts this flow off its dependents and starts those that
// wait for no other.
func (f *flow) startDependents(which func(*flow) bool) {
	n := f.net
	for _, id := range f.dependents {
		d := n.flows[id]
		if !which(d) {
			continue
		}
		if d.pendingDeps--; d.pendingDeps == 0 {
			at := max(timeOf(d.spec.Start), n.now+d.src.computeTime(d.spec.Delay))
			if here := n.sched.running; here != nil && here != d.src.node {
				at = max(at, n.nextWindow(n.now)) // the other node learns of it one lookahead later
			}
			d.src.node.addTimer(n, timer{at: at, kind: startFlow, obj: id})
		}
	}
}

func (f *flow) record() FlowRecord {
	return FlowRecord{
		ID: int(f.id), Spec: f.spec, Key: f.key, Start: f.started, Ideal: f.ideal,
		Sent: f.acked, Retransmitted: f.retransmitted, Finish: f.net.now, Arrived: f.arrival,
	}
}

// Records returns the finished flows in the order they finished, then those
// that have started and not finished.
func (n *Network) Records() []FlowRecord {
	all := slices.Clone(n.records)
	// Nodes run one after the other, so flows that finish within one lookahead
	// window are recorded by node first.
	slices.SortStableFunc(all, func(a, b FlowRecord) int {
		return cmp.Or(cmp.Compare(a.Finish, b.Finish), cmp.Compare(a.ID, b.ID))
	})
	for _, f := range n.flows {
		if f != nil && !f.done && f.begun && !f.spec.IsComputation() {
			all = append(all, f.record())
		}
	}
	return all
}

// maySend reports whether the flow has bytes to send and its window permits
// them.
func (f *flow) maySend() bool {
	if f.done || f.sent >= f.size {
		return false
	}
	if f.tcp != nil {
		return f.tcp.maySend(f)
	}
	w := f.window
	if w == 0 {
		return true
	}
	if f.net.cfg.VarWindow {
		if f.control != nil {
			f.rate = f.control.OnTimer(f.net.now)
		}
		if f.rate < f.port.rate {
			hi, lo := bits.Mul64(uint64(w), uint64(f.rate))
			scaled, _ := bits.Div64(hi, lo, uint64(f.port.rate))
			w = max(1, int64(scaled))
		}
	}
	return f.sent-f.acked < w
}

// makePacket makes the next packet and sets when the one after it is due.
func (f *flow) makePacket() *Packet {
	if f.tcp != nil {
		return f.tcp.makePacket(f)
	}
	n := f.net
	payload := int32(min(int64(n.cfg.MTU), f.size-f.sent))
	p := n.pool.get()
	p.Key, p.Priority = f.key, f.prio
	f.stampPath(p, 0)
	p.TTL, p.DSCP, p.IPID = n.cfg.TTL, uint8(f.prio)<<3, f.ipid
	f.ipid++
	p.Seq, p.Payload, p.Sent = f.sent, payload, n.now
	if f.spec.Transport == traffic.UDP {
		p.Kind = KindUDP
		p.Size = max(minFrame, ethernetSize+ipSize(&f.key)+udpSize+payload)
	} else {
		p.Kind, p.ECN = KindData, ECT
		p.Size = n.dataSize(f, payload, f.sent == 0)
		p.Control = n.ns3TopPriority(f.prio)
	}
	if f.sent < f.highest {
		f.retransmitted += int64(payload)
	}
	f.noteOutstanding()
	f.sent += int64(payload)
	f.highest = max(f.highest, f.sent)
	if f.spec.Queue != 0 && f.sent >= f.size {
		f.src.sendQueue(f.spec.Queue).release(f)
	}
	if w := f.src.flowObserver; w != nil && f.spec.Transport == traffic.RDMA {
		w.Sent(f.src.Clock(), &f.key, f.sent)
	}
	if f.control != nil {
		f.rate = f.control.OnSent(n.now, model.Bytes(p.Size))
	}
	f.pace(p)
	if f.spec.Transport == traffic.UDP {
		f.acked = f.sent // UDP has no acknowledgements
		if f.sent >= f.size {
			f.finish()
		}
	} else if f.timerAt == 0 {
		f.armTimer()
	}
	return p
}

// pace computes when the packet after p is due.
func (f *flow) pace(p *Packet) {
	rate := f.rate
	if !f.net.cfg.RateBound {
		rate = f.maxRate // congestion control acts through the window only
	}
	f.nextSend, f.lastSize = f.net.now, p.Size
	if rate < f.port.rate || f.net.traits.PaceAtLineRate && f.control != nil {
		f.nextSend += f.net.transmit(p.Size, rate)
	}
}

// transmit returns the transmission time at a rate that need not be a port's.
func (n *Network) transmit(size int32, rate model.Rate) engine.Time {
	if n.cfg.NS3 {
		return engine.TransmitNS3(int64(size), rate)
	}
	return engine.Transmit(int64(size), rate)
}

// noteOutstanding is called before bytes are sent: if no others are in flight,
// the retransmission timeout starts now.
func (f *flow) noteOutstanding() {
	if f.sent == f.acked {
		f.progress = f.net.now
	}
}

// receiveData is the receiver's side of the transport.
func (f *flow) receiveData(p *Packet) {
	switch p.Kind {
	case KindData:
		f.receiveRDMA(p)
	case KindTCP:
		f.tcp.receiveSegment(f, p)
	}
	if f.expected >= f.size {
		f.allReceived()
	}
}

// receiveAck is the sender's side of the transport.
func (f *flow) receiveAck(p *Packet) {
	if p.Kind == KindTCP {
		f.tcp.receiveAck(f, p)
		return
	}
	f.receiveRDMAAck(p)
}
