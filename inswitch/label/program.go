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

// Stats account for packets and labels. Labels = Due + Chosen + Asked, and each
// of them went onto a packet or straight into an export.
type Stats struct {
	Interval    uint64 // labels because the interval was over
	Random      uint64 // labels by chance
	SampledFlow uint64 // labels because the packet's flow is to be labelled everywhere

	Exports  uint64 // packets whose labels were reported
	Exported uint64 // labels in them

	// Packets that should have got a label and were left alone.
	StackFull     uint64 // had as many as they may carry
	OverMTU       uint64 // would have exceeded the MTU
	NotRestorable uint64 // could not be restored afterwards: bad checksum, jumbogram
}

// MaxShift bounds how much the controller may shorten the interval: by 2^16 an
// interval of seconds is one of microseconds, which is every packet.
const MaxShift = 16

// Program labels the packets of one switch. It runs at Dequeue, last of all
// programs, where what it writes is what the wire sees.
type Program struct {
	cfg                  Config
	dev                  inswitch.Device
	params, sampleParams label.Params // of a packet's first label; everywhere: Specific
	ports                []port       // by number; 0 unused
	flows                map[model.FlowKey]*sampleState
	rng                  uint64
	stats                Stats
	data                 []byte // of the export at hand
}

// port is the state of one egress port: the paper's Reg1 and Reg2, and what
// utilisation needs.
type port struct {
	last        model.Time // of the last label
	bytes       int64      // sent since
	interval    uint64     // ns, with the shift
	skipBefore  uint64     // ns since the last label in which packets without labels pass unseen, and one more; 0: none do
	minInterval int64      // ns, with the shift
	perByte     float64    // Utilisation if a byte were all that was sent in a nanosecond
	shift       uint8
	host        bool
	_           [6]byte // to 64 bytes: one line of cache, found without a multiplication
}

type sampleState struct{ every, left uint32 }

// New makes the program of a switch.
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

// setShift computes what a shift makes of the times.
func (at *port) setShift(cfg *Config, shift uint8) {
	at.shift = shift
	at.interval, at.minInterval = uint64(cfg.Interval)>>shift, int64(cfg.MinInterval)>>shift
}

// Stages is Dequeue.
func (p *Program) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Dequeue) }

// Stats returns the current counters.
func (p *Program) Stats() Stats { return p.stats }

// Interval is T, as a port without a shift has it.
func (p *Program) Interval() time.Duration { return p.cfg.Interval }

// SetShift makes a port label 2^s times as often. It sets, it does not add: a
// controller may repeat the command as often as it likes.
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

// Shift returns a port's present shift; of a port that is not there, 0.
func (p *Program) Shift(id model.PortID) uint8 {
	if int(id) >= len(p.ports) {
		return 0
	}
	return p.ports[id].shift
}

// SampleFlow asks for a flow's whole way from now on, in place of what was asked
// for it before.
func (p *Program) SampleFlow(f FlowSample) error {
	if f.OneIn == 0 {
		return fmt.Errorf("label: one in 0 packets of %v, want at least 1", f.Key)
	}
	p.flows[f.Key] = &sampleState{every: f.OneIn}
	p.updateSkip()
	return nil
}

// StopSampling ends Follow.
func (p *Program) StopSampling(key model.FlowKey) {
	delete(p.flows, key)
	p.updateSkip()
}

// updateSkip notes in which time ports need not look at packets without labels: the
// interval, unless some of them might get one by chance or are of a followed flow.
func (p *Program) updateSkip() {
	plain := len(p.flows) == 0 && p.cfg.Probability.table[0] == 0
	for i := range p.ports {
		p.ports[i].skipBefore = 0
		if plain {
			p.ports[i].skipBefore = p.ports[i].interval + 1
		}
	}
}

// Observe labels the packet if it is time, and takes all labels off where it
// leaves the fabric. Most packets have no label and meet a port that is not
// due: they cost a comparison.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	if int(ev.Out) < len(p.ports) && p.ports[ev.Out].needsCheck(ev) {
		p.checkPacket(ev, act)
	}
}

// needsCheck counts a packet that goes out and reports whether it needs a closer look.
func (at *port) needsCheck(ev *inswitch.Event) bool {
	at.bytes += int64(ev.Packet.Size)
	// A clock that was set back makes a difference below zero, which is a very
	// large one without a sign: the port is due, not silenced.
	return uint64(ev.Now-at.last) >= at.skipBefore || ev.Packet.LabelCount != 0
}

// checkPacket labels the packet, or not, and takes labels off at the edge.
func (p *Program) checkPacket(ev *inswitch.Event, act *inswitch.Actions) {
	at, pkt := &p.ports[ev.Out], ev.Packet
	// Most keys show by their protocol alone that they are one: comparing all of
	// a key costs as much as writing a label.
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

// labelReason says whether the packet shall have a label, by the counter of the
// reason, and whether all switches after this one shall label it too.
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

// isSampled reports whether it is the turn of a packet of a followed flow.
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

// drawLabel throws the dice for a packet with n labels.
func (p *Program) drawLabel(n uint8, since, interval uint64) bool {
	odds := p.cfg.Probability.table[min(int(n), label.MaxMaxHop)]
	if p.cfg.Probability.growsWithTime {
		odds = uint32(float64(odds) * float64(since) / float64(interval)) // since is at most interval
	}
	if odds == certain {
		return true
	}
	// SplitMix64: one addition and a mix per throw, and any seed will do.
	p.rng += 0x9e3779b97f4a7c15
	z := p.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32((z^z>>31)>>32) < odds
}

// fillItem writes a label where it is needed: the state of the port as the packet
// leaves by it. (A label that is made first and copied then costs as much
// again, because the processor waits for the small stores before it copies.)
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

// export reports a packet's labels, own on top if there is one, and takes them
// off.
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
