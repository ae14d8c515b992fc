package commodity

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// switchState is what one switch reported since it was last concluded about.
type switchState struct {
	ports    []portState // by number; nil until the first reading
	fresh    bool        // there are readings since the last conclusion
	interval time.Duration
	from, to model.Time

	pairs   map[portPair]uint64 // bytes by samples
	flows   map[flowAt]flowSeen // by samples, at egress ports
	dropped map[model.FlowKey]portstat.Reason
	// notified counts drop notifications: for switches that count no reasons.
	notified [portstat.NumReasons]uint64
}

// portPair is how packets of a class pass a switch.
type portPair struct {
	in, out model.PortID
	class   model.Priority
}

type flowAt struct {
	out  model.PortID
	flow model.FlowKey
}

// flowSeen is what samples say about a flow at a port.
type flowSeen struct {
	in      model.PortID
	class   model.Priority
	samples int
	bytes   uint64 // scaled by the sampling rate
}

// portState is what one port counted since it was last concluded about.
type portState struct {
	seen  bool
	bytes struct {
		span   time.Duration
		rx, tx uint64
	}
	fcs       uint64
	fecBroken uint64
	drops     [portstat.NumReasons]uint64
	reasons   portstat.ReasonSet
	discards  uint64
	class     [portstat.NumClasses]classState
	judged    judgement
}

// classState is one class of a port. Spans are those of readings that have the
// field.
type classState struct {
	has     portstat.ClassFields
	rx, tx  pausing // pauses received, which stop this port; and sent
	marked  uint64
	depth   model.Bytes // watermark of the egress queue
	stormed bool        // by the PFC watchdog
}

// pausing is how long one direction of a link was paused.
type pausing struct {
	span        time.Duration // of readings that say how long
	paused      time.Duration
	frameSpan   time.Duration // of readings that count frames
	frames      uint64
	transitions uint64
}

// share returns the share of time that was paused, and whether it was measured.
// Frames alone bound it: a frame pauses for at most 65,535 quanta.
func (p *pausing) share(rate model.Rate) (share float64, measured bool) {
	switch {
	case p.span > 0:
		return min(1, float64(p.paused)/float64(p.span)), true
	case p.frameSpan > 0:
		longest := pfc.MaxQuanta.Duration(rate)
		return min(1, float64(p.frames)*float64(longest)/float64(p.frameSpan)), false
	}
	return 0, false
}

// AddReading adds a reading, and keeps no reference to it.
func (a *Analyzer) AddReading(r *portstat.Reading) {
	if !a.fabric.HasNode(r.Port.Node) || a.fabric.Port(r.Port) == nil {
		a.counts.UnknownPort++
		return
	}
	s := &a.nodes[r.Port.Node]
	if s.ports == nil {
		s.ports = make([]portState, len(a.fabric.Node(r.Port.Node).Ports))
	}
	p := &s.ports[r.Port.Port-1]
	if r.To <= r.From || r.Interval() > maxInterval {
		a.counts.BadInterval++
		return
	}
	a.counts.Readings++
	if !s.fresh {
		s.fresh, s.from, s.to, s.interval = true, r.From, r.To, 0
	}
	s.from, s.to, s.interval = min(s.from, r.From), max(s.to, r.To), max(s.interval, r.Interval())
	p.add(r)
	a.addLink(r)
}

// maxInterval is longer than any counter is polled at: a clock that was set would
// make such an interval.
const maxInterval = time.Hour

// add adds the counters of a reading.
func (p *portState) add(r *portstat.Reading) {
	d := r.Interval()
	p.seen = true
	if r.Has.All(portstat.HasBytes) {
		p.bytes.span += d
		p.bytes.rx, p.bytes.tx = p.bytes.rx+r.RxBytes, p.bytes.tx+r.TxBytes
	}
	if r.Has.All(portstat.HasFCSErrors) {
		p.fcs += r.FCSErrors
	}
	if r.Has.All(portstat.HasFECUncorrectable) {
		p.fecBroken += r.FECUncorrectable
	}
	if r.Has.All(portstat.HasDiscards) {
		p.discards += r.RxDiscards + r.TxDiscards
	}
	p.reasons |= r.DropReasons
	for i := range r.Drops {
		if r.DropReasons.Has(portstat.Reason(i)) {
			p.drops[i] += r.Drops[i]
		}
	}
	for i := range r.Class {
		p.class[i].add(&r.Class[i], d)
	}
}

func (c *classState) add(r *portstat.ClassCounters, d time.Duration) {
	c.has |= r.Has
	if r.Has.All(portstat.HasRxPaused) {
		c.rx.span, c.rx.paused = c.rx.span+d, c.rx.paused+r.RxPaused
	}
	if r.Has.All(portstat.HasTxPaused) {
		c.tx.span, c.tx.paused = c.tx.span+d, c.tx.paused+r.TxPaused
	}
	if r.Has.All(portstat.HasRxPauses) {
		c.rx.frameSpan, c.rx.frames = c.rx.frameSpan+d, c.rx.frames+r.RxPauses
	}
	if r.Has.All(portstat.HasTxPauses) {
		c.tx.frameSpan, c.tx.frames = c.tx.frameSpan+d, c.tx.frames+r.TxPauses
	}
	if r.Has.All(portstat.HasRxTransitions) {
		c.rx.transitions += r.RxTransitions
	}
	if r.Has.All(portstat.HasECNMarked) {
		c.marked += r.ECNMarked
	}
	if r.Has.All(portstat.HasQueueWatermark) {
		c.depth = max(c.depth, r.QueueWatermark)
	}
	if r.Has.All(portstat.HasWatchdog) {
		c.stormed = r.Watchdog == portstat.Stormed || r.Storms > 0
	}
}

// AddSample adds a sample, and keeps no reference to it.
func (a *Analyzer) AddSample(s *portstat.Sample) {
	if !a.fabric.HasNode(s.Node) || !a.hasPort(s.Node, s.In) || !a.hasPort(s.Node, s.Out) {
		a.counts.UnknownPort++
		return
	}
	a.counts.Samples++
	n := &a.nodes[s.Node]
	if s.Has.All(portstat.HasDrop) {
		if s.Drop < portstat.NumReasons {
			n.notified[s.Drop]++
		}
		if n.dropped == nil {
			n.dropped = map[model.FlowKey]portstat.Reason{}
		}
		if _, known := n.dropped[s.Flow]; known || len(n.dropped) < a.cfg.MaxFlows {
			n.dropped[s.Flow] = s.Drop
		} else {
			a.counts.TooManyFlows++
		}
		return
	}
	if s.Out == 0 || s.Rate == 0 {
		return
	}
	class := classOf(s)
	bytes := uint64(s.Bytes) * uint64(s.Rate)
	if n.pairs == nil {
		n.pairs, n.flows = map[portPair]uint64{}, map[flowAt]flowSeen{}
	}
	n.pairs[portPair{s.In, s.Out, class}] += bytes
	at := flowAt{s.Out, s.Flow}
	f, known := n.flows[at]
	if !known && len(n.flows) >= a.cfg.MaxFlows {
		a.counts.TooManyFlows++
		return
	}
	n.flows[at] = flowSeen{in: s.In, class: class, samples: f.samples + 1, bytes: f.bytes + bytes}
	routes := a.cfg.Intent.At(s.At)
	for _, b := range a.balance {
		b.CountFlow(routes, s.Flow, s.Node, s.Out, uint64(s.Rate))
	}
}

// unknownClass is the class of samples without one.
const unknownClass model.Priority = 0xff

func classOf(s *portstat.Sample) model.Priority {
	if s.Has.All(portstat.HasPriority) {
		return s.Priority & 7
	}
	return unknownClass
}

// hasPort reports whether a node has a port; 0 is unknown and allowed.
func (a *Analyzer) hasPort(id model.NodeID, p model.PortID) bool {
	return int(p) <= len(a.fabric.Node(id).Ports)
}

// forget starts the next round of a switch.
func (s *switchState) forget() {
	s.fresh = false
	for i := range s.ports {
		s.ports[i] = portState{judged: s.ports[i].judged}
	}
	// A port that is paused without end sends nothing that could be sampled: where
	// its packets went before is remembered, at half the weight each round.
	for k, bytes := range s.pairs {
		if bytes /= 2; bytes == 0 {
			delete(s.pairs, k)
		} else {
			s.pairs[k] = bytes
		}
	}
	clear(s.flows)
	clear(s.dropped)
	s.notified = [portstat.NumReasons]uint64{}
}
