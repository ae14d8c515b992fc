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

// flow is one message in flight: the state of its sender and its receiver. Fields
// are ordered by cache lines: hosts of both ends may run on different cores, and
// each writes its own.
type flow struct {
	// What both ends read, three lines.
	net        *Network
	id         int32
	keyID      uint32 // KeyID of key; that of reverseKey is the next
	size       int64  // bytes to send; MaxInt64 where the flow runs until a time
	src        *Host
	dst        *Host
	port       *Port // the sender's egress port
	ackPort    *Port // the receiver's egress port, for acknowledgements
	prio       model.Priority
	begun      bool
	key        model.FlowKey
	paths      [2]flowPath   // to the destination, and back
	reverseKey model.FlowKey // of what the receiver sends
	tcp        *tcp
	control    congestion.Control // nil: the flow keeps its rate

	// What the sender writes for every packet, two lines.
	next          *flow // in a list of its NIC
	nextSend      engine.Time
	sent          int64 // next byte to send
	acked         int64 // first byte not acknowledged
	highest       int64 // first byte never sent: below it is retransmission
	window        int64 // limit of bytes in flight; 0: no limit
	rate          model.Rate
	maxRate       model.Rate  // upper bound of rate
	progress      engine.Time // when something was last acknowledged
	timerAt       engine.Time // when a timer is due, 0 if none
	gap           engine.Time // between packets of gapSize at the present rate
	lastSize      int32       // of the packet that nextSend was computed from
	ipid          uint16
	timerGen      uint16
	repeats       *selective // of selective repeat; nil: go back N
	retransmitted int64
	started       engine.Time
	nicState      nicState
	done          bool
	gapSize       int32 // 0: gap is of an earlier rate

	// What the receiver writes, one line.
	expected  int64
	nackFor   int64
	placed    *placement // of selective repeat; nil: go back N
	nackAfter engine.Time
	cnpAfter  engine.Time
	unacked   int64 // bytes received since the last acknowledgement
	arrival   engine.Time
	ackIPID   uint16
	arrived   bool // the receiver has every byte

	pendingDeps int32 // it is here because there is room

	// Of a start and an end.
	spec       traffic.Flow
	ideal      engine.Time
	dependents []int32
	ready      engine.Time // when the last of those that it waited for was done
	notBefore  engine.Time // of its start: hosts learn of each other's flows one lookahead later
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
func (nd *node) startFlow(f *flow) {
	n, w := f.net, nd.w
	if f.spec.IsComputation() {
		f.src.compute(f)
		return
	}
	if nd != f.src.node { // it has migrated since
		w.startAt(f, w.now)
		return
	}
	if f.spec.Queue != 0 && !f.src.sendQueue(f.spec.Queue).admit(f) {
		return
	}
	f.begun, f.started, f.progress = true, w.now, w.now
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
		w.at(timeOf(f.spec.Stop), f.stop)
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
	n, w := f.net, f.src.w
	r := f.record()
	r.Finish, r.Finished = w.now, true
	if n.observer != nil {
		if w.defersObserver() {
			w.observed = append(w.observed, observation{kind: sawFlowDone, now: w.now, port: f.port, record: len(w.records)})
		} else {
			n.observer.FlowDone(w.now, &r)
		}
	}
	w.records = append(w.records, r)
	if w := f.src.flowObserver; w != nil && f.spec.Transport == traffic.RDMA {
		w.Ended(f.src.Clock(), &f.key)
	}
	f.allReceived(w) // a flow that stops early has no last byte to arrive
	f.startDependents(w, func(d *flow) bool { return d.src != f.dst })
}

// allReceived runs when the last byte has arrived: dependents at the receiver
// need not wait for the acknowledgement.
func (f *flow) allReceived(w *worker) {
	if !f.arrived {
		f.arrived, f.arrival = true, w.now
		f.startDependents(w, func(d *flow) bool { return d.src == f.dst })
	}
}

// startDependents counts this flow off its dependents and starts those that
// wait for no other.
func (f *flow) startDependents(w *worker, which func(*flow) bool) {
	n := f.net
	for _, id := range f.dependents {
		d := n.flows[id]
		if !which(d) {
			continue
		}
		if w.running == nil || w.running == d.src.node {
			d.meetDependency(w.now)
		} else {
			w.dependencies = append(w.dependencies, metDependency{d, w.now}) // the other node learns of it one lookahead later
		}
	}
}

// meetDependency counts off a flow that this one waited for, and starts this one
// if it was the last.
func (f *flow) meetDependency(at engine.Time) {
	f.ready = max(f.ready, at)
	if f.pendingDeps--; f.pendingDeps == 0 {
		at = max(timeOf(f.spec.Start), f.ready+f.src.computeTime(f.spec.Delay), f.notBefore)
		f.src.node.addTimer(timer{at: at, kind: startFlow, obj: f.id})
	}
}

func (f *flow) record() FlowRecord {
	return FlowRecord{
		ID: int(f.id), Spec: f.spec, Key: f.key, Start: f.started, Ideal: f.ideal,
		Sent: f.acked, Retransmitted: f.retransmitted, Finish: f.src.w.now, Arrived: f.arrival,
	}
}

// Records returns the finished flows in the order they finished, then those
// that have started and not finished.
func (n *Network) Records() []FlowRecord {
	all := slices.Clone(n.records)
	slices.SortStableFunc(all, compareRecords)
	for _, f := range n.flows {
		if f != nil && !f.done && f.begun && !f.spec.IsComputation() {
			all = append(all, f.record())
		}
	}
	return all
}

// compareRecords orders flows by when they finished.
func compareRecords(a, b FlowRecord) int {
	return cmp.Or(cmp.Compare(a.Finish, b.Finish), cmp.Compare(a.ID, b.ID))
}

// maySend reports whether the flow has bytes to send and its window permits
// them.
func (f *flow) maySend() bool {
	if f.done || f.exhausted() {
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
			f.setRate(f.control.OnTimer(f.src.w.now))
		}
		if f.rate < f.port.rate {
			hi, lo := bits.Mul64(uint64(w), uint64(f.rate))
			scaled, _ := bits.Div64(hi, lo, uint64(f.port.rate))
			w = max(1, int64(scaled))
		}
	}
	return f.inFlight() < w
}

// makePacket makes the next packet and sets when the one after it is due.
func (f *flow) makePacket() *Packet {
	if f.tcp != nil {
		return f.tcp.makePacket(f)
	}
	n, w := f.net, f.src.w
	seq := f.nextByte()
	payload := int32(min(int64(n.cfg.MTU), f.size-seq))
	p := w.pool.get()
	p.Key, p.Priority = f.key, f.prio
	f.stampPath(p, 0)
	p.TTL, p.DSCP, p.IPID = n.cfg.TTL, uint8(f.prio)<<3, f.ipid
	f.ipid++
	p.Seq, p.Payload, p.Sent = seq, payload, w.now
	if f.spec.Transport == traffic.UDP {
		p.Kind = KindUDP
		p.Size = max(minFrame, ethernetSize+ipSize(&f.key)+udpSize+payload)
	} else {
		p.Kind, p.ECN = KindData, ECT
		p.Size = n.dataSize(f, payload, seq == 0)
		p.Control = n.ns3TopPriority(f.prio)
	}
	if seq < f.highest {
		f.retransmitted += int64(payload)
	}
	f.noteOutstanding()
	if seq == f.sent {
		f.sent += int64(payload)
	}
	f.highest = max(f.highest, f.sent)
	if f.spec.Queue != 0 && f.sent >= f.size {
		f.src.sendQueue(f.spec.Queue).release(f)
	}
	if w := f.src.flowObserver; w != nil && f.spec.Transport == traffic.RDMA {
		w.Sent(f.src.Clock(), &f.key, f.sent)
	}
	if f.control != nil {
		f.setRate(f.control.OnSent(w.now, model.Bytes(p.Size)))
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
	f.nextSend, f.lastSize = f.src.w.now, p.Size
	if rate < f.port.rate || f.net.traits.PaceAtLineRate && f.control != nil {
		if p.Size != f.gapSize { // a division takes as long as half a hop
			f.gap, f.gapSize = f.net.transmit(p.Size, rate), p.Size
		}
		f.nextSend += f.gap
	}
}

// setRate sets the rate that congestion control says.
func (f *flow) setRate(rate model.Rate) {
	if rate != f.rate {
		f.rate, f.gapSize = rate, 0
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
		f.progress = f.src.w.now
	}
}

// receiveData is the receiver's side of the transport.
func (f *flow) receiveData(p *Packet) {
	switch p.Kind {
	case KindData, KindTrimmed:
		f.receiveRDMA(p)
	case KindTCP:
		f.tcp.receiveSegment(f, p)
	}
	if f.expected >= f.size {
		f.allReceived(f.dst.w)
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
