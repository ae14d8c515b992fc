package label

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Stats are the program's counters. Labels = Interval + Random + SampledFlow,
// and each of them was pushed on a packet or exported at once.
type Stats struct {
	Interval    uint64 // labels because the interval was over
	Random      uint64 // random labels
	SampledFlow uint64 // labels on packets of sampled flows

	Exports  uint64 // packets whose labels were reported
	Exported uint64 // labels in them

	// Packets that should have got a label and did not.
	StackFull     uint64 // had the maximum of labels
	OverMTU       uint64 // would have exceeded the MTU
	NotRestorable uint64 // could not be restored: bad checksum, jumbogram
}

// MaxShift bounds how much the controller may shorten the interval: 2^16 turns
// an interval of seconds into microseconds, which is every packet.
const MaxShift = 16

// Program labels the packets of one switch. It runs at Dequeue after all other
// programs, so that its labels are on the wire.
type Program struct {
	cfg                  Config
	dev                  inswitch.Device
	params, sampleParams label.Params // of a packet's first label; sampleParams has Specific set
	ports                []port       // by number; 0 unused
	flows                map[model.FlowKey]*sampleState
	rng                  uint64
	stats                Stats
	data                 []byte // of the current export
}

// port is the state of one egress port: the paper's Reg1 and Reg2, and the
// state for utilisation.
type port struct {
	last        model.Time // of the last label
	bytes       int64      // sent since the last label
	interval    uint64     // ns, with the shift
	skipBefore  uint64     // ns since the last label below which packets without labels are skipped; 0: none are
	minInterval int64      // ns, with the shift
	perByte     float64    // Utilisation of one byte per nanosecond
	shift       uint8
	host        bool
	_           [6]byte // to 64 bytes: one cache line, indexed without a multiplication
}

type sampleState struct{ every, left uint32 }

// New returns the program of a switch.
func New(cfg Config, dev inswitch.Device) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.MTU == 0 {
		cfg.MTU = dev.MTU
	}
	p := &Program{
		cfg: cfg, dev: dev, ports: make([]port, len(dev.Ports)+1), flows: map[model.FlowKey]*sampleState{},
		params:       label.Params{MaxHop: cfg.MaxHop, MTU: cfg.MTU},
		sampleParams: label.Params{MaxHop: cfg.MaxHop, MTU: cfg.MTU, Specific: true},
		rng:          cfg.Seed ^ uint64(dev.ID)<<32,
	}
	for i := range p.ports {
		d := dev.Port(model.PortID(i))
		p.ports[i] = port{last: math.MinInt64, host: d.FacesHost}
		if d.Rate > 0 {
			p.ports[i].perByte = 8e9 / float64(d.Rate) * math.MaxUint16
		}
		p.ports[i].setShift(&cfg, 0)
	}
	p.updateSkip()
	return p, nil
}

// setShift sets the shift and the times that follow from it.
func (at *port) setShift(cfg *Config, shift uint8) {
	at.shift = shift
	at.interval, at.minInterval = uint64(cfg.Interval)>>shift, int64(cfg.MinInterval)>>shift
}

// Stages returns Dequeue.
func (p *Program) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Dequeue) }

// Stats returns the current counters.
func (p *Program) Stats() Stats { return p.stats }

// Interval returns T of a port without a shift.
func (p *Program) Interval() time.Duration { return p.cfg.Interval }

// SetShift makes a port label 2^s times as often. It is idempotent: a
// controller may repeat the command.
func (p *Program) SetShift(id model.PortID, s uint8) error {
	if id == 0 || int(id) >= len(p.ports) {
		return fmt.Errorf("label: port %d of switch %d, want 1 to %d", id, p.dev.ID, len(p.ports)-1)
	}
	if s > MaxShift {
		return fmt.Errorf("label: shift %d of port %d, want 0 to %d", s, id, MaxShift)
	}
	p.ports[id].setShift(&p.cfg, s)
	p.updateSkip()
	return nil
}

// Shift returns a port's shift, or 0 if the port does not exist.
func (p *Program) Shift(id model.PortID) uint8 {
	if int(id) >= len(p.ports) {
		return 0
	}
	return p.ports[id].shift
}

// SampleFlow requests a flow's whole path from now on, replacing an earlier
// request for it.
func (p *Program) SampleFlow(f FlowSample) error {
	if f.OneIn == 0 {
		return fmt.Errorf("label: one in 0 packets of %v, want at least 1", f.Key)
	}
	p.flows[f.Key] = &sampleState{every: f.OneIn}
	p.updateSkip()
	return nil
}

// StopSampling ends SampleFlow.
func (p *Program) StopSampling(key model.FlowKey) {
	delete(p.flows, key)
	p.updateSkip()
}

// updateSkip computes for how long ports may skip packets without labels: the
// interval, unless there are random labels for them or sampled flows.
func (p *Program) updateSkip() {
	plain := len(p.flows) == 0 && p.cfg.Probability.table[0] == 0
	for i := range p.ports {
		p.ports[i].skipBefore = 0
		if plain {
			p.ports[i].skipBefore = p.ports[i].interval + 1
		}
	}
}

// Observe labels the packet if a label is due, and strips all labels where it
// leaves the fabric. Most packets have no label and a port that is not due:
// they cost a comparison.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	if int(ev.Out) < len(p.ports) && p.ports[ev.Out].needsCheck(ev) {
		p.checkPacket(ev, act)
	}
}

// needsCheck counts a packet and reports whether checkPacket must see it.
func (at *port) needsCheck(ev *inswitch.Event) bool {
	at.bytes += int64(ev.Packet.Size)
	// A clock that was set back gives a negative difference, which is a very
	// large unsigned one: the port is due, not skipped.
	return uint64(ev.Now-at.last) >= at.skipBefore || ev.Packet.LabelCount != 0
}

// checkPacket labels the packet if due, and exports its labels at the edge.
func (p *Program) checkPacket(ev *inswitch.Event, act *inswitch.Actions) {
	at, pkt := &p.ports[ev.Out], ev.Packet
	// A zero protocol identifies most packets without a key: comparing all of a
	// key costs as much as writing a label.
	if pkt.Key.Proto == 0 && pkt.Key.IsZero() {
		return
	}
	why, specific := &p.stats.Interval, false
	if len(p.flows) > 0 || uint64(ev.Now-at.last) <= at.interval {
		why, specific = p.labelReason(at, ev)
	}
	if why == nil {
		if at.host && pkt.LabelCount > 0 {
			p.export(ev, act, nil)
		}
		return
	}
	if at.host {
		if pkt.LabelCount > 0 && pkt.LabelCount >= pkt.Labels().MaxHop {
			p.stats.StackFull++
			p.export(ev, act, nil)
			return
		}
		var own label.Item
		p.fillItem(&own, at, ev)
		p.export(ev, act, &own)
	} else {
		how := &p.params
		if specific {
			how = &p.sampleParams
		}
		if err := pkt.CanPushLabel(*how); err != nil {
			p.countRefused(err)
			return
		}
		p.fillItem(act.PushLabel(*how), at, ev)
	}
	*why++
	at.last, at.bytes = ev.Now, 0
}

// labelReason returns the counter of the reason to label the packet, or nil,
// and whether all later switches must label it too.
func (p *Program) labelReason(at *port, ev *inswitch.Event) (why *uint64, specific bool) {
	pkt := ev.Packet
	if len(p.flows) > 0 && pkt.LabelCount == 0 && p.dev.Port(ev.In).FacesHost && p.isSampled(pkt.Key) {
		return &p.stats.SampledFlow, true
	}
	since := int64(ev.Now - at.last)
	if uint64(since) > at.interval {
		return &p.stats.Interval, false
	}
	if pkt.LabelCount > 0 && pkt.Labels().Specific() {
		return &p.stats.SampledFlow, true
	}
	if since > at.minInterval && p.drawLabel(pkt.LabelCount, uint64(since), at.interval) {
		return &p.stats.Random, false
	}
	return nil, false
}

// isSampled reports whether a packet of a sampled flow is to be labelled.
func (p *Program) isSampled(key *model.FlowKey) bool {
	f := p.flows[*key]
	if f == nil {
		return false
	}
	if f.left > 0 {
		f.left--
		return false
	}
	f.left = f.every - 1
	return true
}

// drawLabel decides at random whether a packet with n labels gets another.
func (p *Program) drawLabel(n uint8, since, interval uint64) bool {
	odds := p.cfg.Probability.table[min(int(n), label.MaxMaxHop)]
	if p.cfg.Probability.growsWithTime {
		odds = uint32(float64(odds) * float64(since) / float64(interval)) // since is at most interval
	}
	if odds == certain {
		return true
	}
	// SplitMix64: one addition and a mix per number, and any seed is good.
	p.rng += 0x9e3779b97f4a7c15
	z := p.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32((z^z>>31)>>32) < odds
}

// fillItem writes a label in place: the state of the port as the packet leaves
// it. (A label that is built first and then copied costs twice as much, because
// the CPU waits for the small stores before it copies.)
func (p *Program) fillItem(it *label.Item, at *port, ev *inswitch.Event) {
	it.Switch, it.Ingress, it.Egress = p.dev.ID, ev.In, ev.Out
	it.Time, it.Latency = ev.Now, ev.Latency
	it.EnqueueDepth, it.DequeueDepth, it.Queue = ev.DepthAtEnqueue, ev.Queue.Bytes, uint8(ev.Priority)
	if since := ev.Now - at.last; since > 0 {
		it.Utilisation = math.MaxUint16
		if u := float64(at.bytes) * at.perByte / float64(since); u < math.MaxUint16 {
			it.Utilisation = uint16(u)
		}
	}
}

// export reports a packet's labels, own on top if not nil, and strips them.
func (p *Program) export(ev *inswitch.Event, act *inswitch.Actions, own *label.Item) {
	pkt := ev.Packet
	e := label.Export{Switch: p.dev.ID, Time: ev.Now, Key: *pkt.Key}
	if pkt.LabelCount > 0 {
		e.Labels = pkt.Labels()
		act.StripLabels()
	}
	if own != nil {
		p.data = e.AppendWithLabel(p.data[:0], *own, label.Option{NextHeader: pkt.Outer.Proto, MaxHop: p.cfg.MaxHop})
		p.stats.Exported++
	} else {
		p.data = e.AppendTo(p.data[:0])
	}
	p.stats.Exports++
	p.stats.Exported += uint64(pkt.LabelCount)
	act.Report(dta.Report{Primitive: dta.Append, List: p.cfg.List, Data: p.data})
}

// countRefused counts a packet that could not be labelled.
func (p *Program) countRefused(err error) {
	switch {
	case errors.Is(err, label.ErrFull):
		p.stats.StackFull++
	case errors.Is(err, label.ErrTooLong), errors.Is(err, label.ErrCapacity):
		p.stats.OverMTU++
	default:
		p.stats.NotRestorable++
	}
}
