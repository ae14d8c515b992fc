package exporter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Config configures an Exporter.
type Config struct {
	// Sampling is how many packets there are to one sample; 0: none.
	Sampling uint32
	Seed     uint64 // of the choice of packets
	// Sample receives samples and dropped packets, and the first Header bytes of the
	// frame. It must keep neither; nil: none.
	Sample func(s *portstat.Sample, header []byte)
	Header int // 0: none
}

// Exporter counts for one switch.
type Exporter struct {
	net    *sim.Network
	sw     *sim.Switch
	cfg    Config
	rng    *rand.Rand
	skip   uint32 // packets until the next sample
	sample portstat.Sample
	frame  []byte
	ports  []portCounts
	polls  []*poll
}

// portCounts is what the simulator's ports do not count themselves.
type portCounts struct {
	rxPackets, rxBytes uint64
	peak               [portstat.NumClasses]peaks // since the last reading of any poll
}

// peaks are the watermarks of one class.
type peaks struct{ queue, shared, headroom model.Bytes }

func (p *peaks) raise(q peaks) {
	p.queue, p.shared, p.headroom = max(p.queue, q.queue), max(p.shared, q.shared), max(p.headroom, q.headroom)
}

// poll reads all counters of the switch at an interval.
type poll struct {
	interval time.Duration
	peak     [][portstat.NumClasses]peaks // since its last turn
	sink     func(at model.Time, port model.PortID, totals *portstat.Counters)
}

// Attach makes a switch count from now on.
func Attach(n *sim.Network, id model.NodeID, cfg Config) (*Exporter, error) {
	if !n.Fabric().HasNode(id) || n.Switch(id) == nil {
		return nil, fmt.Errorf("exporter: node %d is not a switch", id)
	}
	sw := n.Switch(id)
	e := &Exporter{
		net: n, sw: sw, cfg: cfg, ports: make([]portCounts, len(sw.Ports())),
		rng: rand.New(rand.NewPCG(cfg.Seed, uint64(id))),
	}
	sw.Attach(e)
	if cfg.Sample != nil {
		e.drawSkip()
		before := sw.DropTap()
		sw.SetDropTap(func(p *sim.Packet, at *sim.Port, why sim.Reason) {
			if before != nil {
				before(p, at, why)
			}
			e.dropped(p, at, why)
		})
	}
	return e, nil
}

// At returns the exporter at the stages where it counts.
func (e *Exporter) At(s sim.Stage) sim.Runner {
	if s == sim.StageIngress || s == sim.StageEnqueue {
		return e
	}
	return nil
}

// Run counts one packet.
func (e *Exporter) Run(c *sim.Context) {
	p := c.Packet
	in := c.In()
	if in == nil {
		return
	}
	if c.Stage == sim.StageIngress {
		count := &e.ports[in.ID-1]
		count.rxPackets++
		count.rxBytes += uint64(p.Size)
		return
	}
	if !c.Unqueued && !p.Control {
		shared, headroom := e.sw.IngressBuffer(in.ID, p.Priority)
		e.ports[in.ID-1].peak[p.Priority].raise(peaks{shared: shared, headroom: headroom})
		e.ports[c.Out.ID-1].peak[p.Priority].raise(peaks{queue: model.Bytes(c.Out.QueueBytes(p.Priority)) + model.Bytes(p.Size)})
	}
	if e.cfg.Sample == nil || e.cfg.Sampling == 0 {
		return
	}
	if e.skip--; e.skip > 0 {
		return
	}
	e.drawSkip()
	e.sample = portstat.Sample{
		Node: e.sw.ID, In: in.ID, Out: c.Out.ID, At: c.Now, Source: portstat.Simulated, Has: portstat.HasPriority,
		Flow: p.Key, Priority: p.Priority, Bytes: uint32(p.Size), Rate: e.cfg.Sampling,
	}
	e.cfg.Sample(&e.sample, e.header(p, in))
}

// header returns the first bytes of a packet as it arrived at a port.
func (e *Exporter) header(p *sim.Packet, in *sim.Port) []byte {
	if e.cfg.Header == 0 || in == nil {
		return nil
	}
	e.frame = e.net.AppendFrame(e.frame[:0], p, in.Peer())
	return e.frame[:min(len(e.frame), e.cfg.Header)]
}

// drawSkip draws how many packets pass until the next sample: uniform with the
// right mean, as sFlow agents do, so that no period of the traffic is always or
// never seen.
func (e *Exporter) drawSkip() {
	if n := e.cfg.Sampling; n > 0 {
		e.skip = 1 + uint32(e.rng.Uint64N(uint64(2*n-1)))
	}
}

// dropped is the drop notification of the switch.
func (e *Exporter) dropped(p *sim.Packet, at *sim.Port, why sim.Reason) {
	e.sample = portstat.Sample{
		Node: e.sw.ID, In: p.Ingress(), At: e.sw.Clock(), Source: portstat.Simulated,
		Has: portstat.HasPriority | portstat.HasDrop, Flow: p.Key, Priority: p.Priority, Bytes: uint32(p.Size), Rate: 1,
		Drop: reasonOf(why),
	}
	if why == sim.DropBuffer || why == sim.DropLinkDown {
		e.sample.Out = at.ID
	}
	var in *sim.Port
	if p.Ingress() != 0 {
		in = e.sw.Ports()[p.Ingress()-1]
	}
	e.cfg.Sample(&e.sample, e.header(p, in))
}

// reasonOf maps the simulator's reasons to those that switches export.
func reasonOf(why sim.Reason) portstat.Reason {
	switch why {
	case sim.DropBuffer:
		return portstat.NoBuffer
	case sim.DropTTL:
		return portstat.TTLExpired
	case sim.DropNoRoute:
		return portstat.NoRoute
	case sim.DropBlackhole:
		return portstat.BlackholeRoute
	case sim.DropLinkDown:
		return portstat.LinkDown
	default:
		return portstat.UnknownReason
	}
}

// Every polls the switch at an interval, first at the given simulated time. The sink
// gets one reading per port and must not keep it.
func (e *Exporter) Every(interval time.Duration, first engine.Time, sink func(*portstat.Reading)) error {
	if sink == nil {
		return errors.New("exporter: no sink, want a function that takes readings")
	}
	type last struct {
		at     model.Time
		totals portstat.Counters
		known  bool
	}
	before := make([]last, len(e.ports))
	var r portstat.Reading
	return e.EveryTotals(interval, first, func(at model.Time, port model.PortID, totals *portstat.Counters) {
		l := &before[port-1]
		if l.known {
			r.Port, r.From, r.To, r.Source = model.Port{Node: e.sw.ID, Port: port}, l.at, at, portstat.Simulated
			if err := r.Since(&l.totals, totals); err != nil {
				panic(fmt.Sprintf("exporter: %v of port %v of a simulated switch", err, r.Port))
			}
			sink(&r)
		}
		*l = last{at, *totals, true}
	})
}

// EveryTotals polls the switch at an interval, first at the given simulated time. The sink
// gets what each port has counted since the start, with the watermarks since the turn before,
// and must not keep it.
func (e *Exporter) EveryTotals(interval time.Duration, first engine.Time, sink func(at model.Time, port model.PortID, totals *portstat.Counters)) error {
	if interval <= 0 {
		return fmt.Errorf("exporter: interval %v, want above 0", interval)
	}
	if sink == nil {
		return errors.New("exporter: no sink, want a function that takes totals")
	}
	p := &poll{interval: interval, peak: make([][portstat.NumClasses]peaks, len(e.ports)), sink: sink}
	e.polls = append(e.polls, p)
	var turn func()
	turn = func() {
		e.read(p)
		e.net.At(e.net.Now()+engine.Of(interval), turn)
	}
	e.net.At(first, turn)
	return nil
}

// read hands the totals of every port to a poll's sink.
func (e *Exporter) read(p *poll) {
	e.foldPeaks()
	now := e.sw.Clock()
	for i := range e.ports {
		var totals portstat.Counters
		e.Totals(model.PortID(i+1), &totals)
		for c := range totals.Class {
			k := &p.peak[i][c]
			totals.Class[c].QueueWatermark, totals.Class[c].PGWatermark, totals.Class[c].HeadroomWatermark = k.queue, k.shared, k.headroom
			*k = peaks{}
		}
		p.sink(now, model.PortID(i+1), &totals)
	}
}

// foldPeaks adds the watermarks since the last reading to those of every poll.
func (e *Exporter) foldPeaks() {
	for _, p := range e.polls {
		for i := range e.ports {
			for c := range e.ports[i].peak {
				p.peak[i][c].raise(e.ports[i].peak[c])
			}
		}
	}
	// What is queued now is the start of the next watermark: a queue that a pause
	// holds stays as long as it is, though no packet joins it.
	for i, p := range e.sw.Ports() {
		for c := range e.ports[i].peak {
			prio := model.Priority(c)
			shared, headroom := e.sw.IngressBuffer(p.ID, prio)
			e.ports[i].peak[c] = peaks{model.Bytes(p.QueueBytes(prio)), shared, headroom}
		}
	}
}
