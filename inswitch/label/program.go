package label

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Stats account for packets and labels. Labels = Due + Chosen + Asked, and each
// of them went onto a packet or straight into an export.
type Stats struct {
	Due    uint64 // labels because the interval was over
	Chosen uint64 // labels by chance
	Asked  uint64 // labels because the packet's flow is to be labelled everywhere

	Exports  uint64 // packets whose labels were reported
	Exported uint64 // labels in them

	// Packets that should have got a label and were left alone.
	Full  uint64 // had as many as they may carry
	Long  uint64 // would have exceeded the MTU
	Unfit uint64 // could not be restored afterwards: bad checksum, jumbogram
}

// MaxShift bounds how much the controller may shorten the interval: by 2^16 an
// interval of seconds is one of microseconds, which is every packet.
const MaxShift = 16

// Program labels the packets of one switch. It runs at Dequeue, last of all
// programs, where what it writes is what the wire sees.
type Program struct {
	cfg   Config
	dev   inswitch.Device
	how   label.Params
	ports []port // by number; 0 unused
	flows map[model.FlowKey]*sampled
	rng   uint64
	stats Stats
	data  []byte // of the export at hand
}

// port is the state of one egress port: the paper's Reg1 and Reg2, and what
// utilisation needs.
type port struct {
	last  model.Time // of the last label
	bytes int64      // sent since
	shift uint8
	host  bool
	rate  model.Rate
}

type sampled struct{ every, left uint32 }

// New makes the program of a switch.
func New(cfg Config, dev inswitch.Device) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.MTU == 0 {
		cfg.MTU = dev.MTU
	}
	p := &Program{
		cfg: cfg, dev: dev, ports: make([]port, len(dev.Ports)+1), flows: map[model.FlowKey]*sampled{},
		how: label.Params{MaxHop: cfg.MaxHop, MTU: cfg.MTU},
		rng: cfg.Seed ^ uint64(dev.ID)<<32,
	}
	for i := range p.ports {
		d := dev.Port(model.PortID(i))
		p.ports[i] = port{last: math.MinInt64, host: d.Host, rate: d.Rate}
	}
	return p, nil
}

// Stages is Dequeue.
func (p *Program) Stages() inswitch.Stages { return inswitch.At(inswitch.Dequeue) }

// Stats returns the present counts.
func (p *Program) Stats() Stats { return p.stats }

// SetShift makes a port label 2^s times as often. It sets, it does not add: a
// controller may repeat the command as often as it likes.
func (p *Program) SetShift(id model.PortID, s uint8) error {
	if id == 0 || int(id) >= len(p.ports) {
		return fmt.Errorf("label: port %d of switch %d, want 1 to %d", id, p.dev.ID, len(p.ports)-1)
	}
	if s > MaxShift {
		return fmt.Errorf("label: shift %d of port %d, want 0 to %d", s, id, MaxShift)
	}
	p.ports[id].shift = s
	return nil
}

// Shift returns a port's present shift; of a port that is not there, 0.
func (p *Program) Shift(id model.PortID) uint8 {
	if int(id) >= len(p.ports) {
		return 0
	}
	return p.ports[id].shift
}

// Follow asks for a flow's whole way from now on, in place of what was asked
// for it before.
func (p *Program) Follow(f Flow) error {
	if f.Every == 0 {
		return fmt.Errorf("label: one in 0 packets of %v, want at least 1", f.Key)
	}
	p.flows[f.Key] = &sampled{every: f.Every}
	return nil
}

// Forget ends Follow.
func (p *Program) Forget(key model.FlowKey) { delete(p.flows, key) }

// Observe labels the packet if it is time, and takes all labels off where it
// leaves the fabric.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	pkt := ev.Packet
	if pkt.Key.IsZero() || int(ev.Out) >= len(p.ports) {
		return
	}
	at := &p.ports[ev.Out]
	at.bytes += int64(pkt.Size)
	why, specific := p.decide(at, ev)
	if why == nil {
		if at.host && pkt.LabelCount > 0 {
			p.export(ev, act, nil)
		}
		return
	}
	item := p.item(at, ev)
	if at.host {
		if pkt.LabelCount > 0 && pkt.LabelCount >= pkt.Labels().MaxHop {
			p.stats.Full++
			p.export(ev, act, nil)
			return
		}
		p.export(ev, act, &item)
	} else {
		how := p.how
		how.Specific = specific
		if err := pkt.MayLabel(how); err != nil {
			p.refused(err)
			return
		}
		act.Push(item, how)
	}
	*why++
	at.last, at.bytes = ev.Now, 0
}

// decide says whether the packet shall have a label, by the counter of the
// reason, and whether all switches after this one shall label it too. It is
// all that most packets meet.
func (p *Program) decide(at *port, ev *inswitch.Event) (why *uint64, specific bool) {
	pkt := ev.Packet
	if len(p.flows) > 0 && pkt.LabelCount == 0 && p.dev.Port(ev.In).Host && p.sample(pkt.Key) {
		return &p.stats.Asked, true
	}
	since := int64(ev.Now - at.last)
	interval := int64(p.cfg.Interval) >> at.shift
	// A clock that was set back must not silence the port: the difference
	// from the beginning of time overflows to below zero, too.
	if since > interval || since < 0 {
		return &p.stats.Due, false
	}
	if pkt.LabelCount == 0 && p.cfg.Odds.table[0] == 0 {
		return nil, false
	}
	if pkt.LabelCount > 0 && pkt.Labels().Specific() {
		return &p.stats.Asked, true
	}
	if since > int64(p.cfg.Rest)>>at.shift && p.chance(pkt.LabelCount, since, interval) {
		return &p.stats.Chosen, false
	}
	return nil, false
}

// sample tells whether it is the turn of a packet of a followed flow.
func (p *Program) sample(key *model.FlowKey) bool {
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

// chance throws the dice for a packet with n labels.
func (p *Program) chance(n uint8, since, interval int64) bool {
	odds := p.cfg.Odds.table[min(int(n), label.MaxMaxHop)]
	if p.cfg.Odds.timed {
		hi, lo := bits.Mul64(uint64(odds), uint64(since))
		if hi >= uint64(interval) {
			odds = certain
		} else if q, _ := bits.Div64(hi, lo, uint64(interval)); q < certain {
			odds = uint32(q)
		}
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

// item is the state of the port as the packet leaves by it.
func (p *Program) item(at *port, ev *inswitch.Event) label.Item {
	it := label.Item{
		Switch: p.dev.ID, Ingress: ev.In, Egress: ev.Out, Time: ev.Now, Latency: ev.Wait,
		EnqueueDepth: ev.Ahead, DequeueDepth: ev.Queue.Bytes, Queue: uint8(ev.Priority),
	}
	if since := ev.Now - at.last; at.last != math.MinInt64 && since > 0 && at.rate > 0 {
		capacity := float64(at.rate) / 8 * time.Duration(since).Seconds()
		it.Utilisation = uint16(min(float64(at.bytes)/capacity, 1) * math.MaxUint16)
	}
	return it
}

// export reports a packet's labels, own on top if there is one, and takes them
// off.
func (p *Program) export(ev *inswitch.Event, act *inswitch.Actions, own *label.Item) {
	pkt := ev.Packet
	e := label.Export{Switch: p.dev.ID, Time: ev.Now, Key: *pkt.Key}
	if pkt.LabelCount > 0 {
		e.Labels = pkt.Labels()
		act.Strip()
	}
	if own != nil {
		p.data = e.AppendWith(p.data[:0], *own, label.Option{NextHeader: pkt.Outer.Proto, MaxHop: p.cfg.MaxHop})
		p.stats.Exported++
	} else {
		p.data = e.AppendTo(p.data[:0])
	}
	p.stats.Exports++
	p.stats.Exported += uint64(pkt.LabelCount)
	act.Report(dta.Report{Primitive: dta.Append, List: p.cfg.List, Data: p.data})
}

// refused counts a packet that could not be labelled.
func (p *Program) refused(err error) {
	switch {
	case errors.Is(err, label.ErrFull):
		p.stats.Full++
	case errors.Is(err, label.ErrTooLong), errors.Is(err, label.ErrCapacity):
		p.stats.Long++
	default:
		p.stats.Unfit++
	}
}
