package flowset

import (
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/probe"
)

// Program counts the flows of one switch.
//
// It counts at Ingress, once per packet that arrives at a port: a packet that
// this switch then drops (no route, a blackhole, an expired TTL, a full queue)
// is counted here and missing at the next switch, so a loss is always located
// between the last switch that has the packet in its tables and the next.
//
// Keys are those of the innermost IP header, inside tunnels and after labels,
// and sizes are without labels: all switches on a packet's path count the same.
//
// With Config.Outgoing it counts at Dequeue instead, what it has not dropped.
//
// Probes are not users' traffic, and take paths that no route intends: they are
// counted apart, and are in no table.
type Program struct {
	slot time.Duration
	v4   []unit[sketch.Key4]
	v6   []unit[sketch.Key6]

	probeMark uint8
	frame     []byte // of a marked packet

	perPort int // 1 if units are indexed by port, else 0

	filling []fillingTables // by port, or one

	now         slot
	bank        int // being filled, or filled last
	running     bool
	active      bool // false while no bank is free
	pendingSlot slot // of the bank that is full while the other is still exported

	outgoing outgoing

	out export
}

// slot is an interval of the switch's clock.
type slot struct {
	number     uint32
	start, end model.Time
}

const tick inswitch.TimerID = 1

// New returns the program of a switch. It allocates all memory it will use.
func New(dev inswitch.Device, cfg Config) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := cfg.CheckPort(model.PortID(len(dev.Ports))); err != nil {
		return nil, fmt.Errorf("switch %d: %w", dev.ID, err)
	}
	p := &Program{outgoing: outgoing{on: cfg.Outgoing, linger: cfg.Linger}, slot: cfg.Slot, probeMark: cfg.ProbeMark, frame: make([]byte, 0, probeHead), now: slot{end: math.MinInt64}}
	scopes := []model.PortID{0}
	if cfg.PerPort {
		p.perPort = 1
		for i := range dev.Ports {
			scopes = append(scopes, model.PortID(i+1))
		}
		scopes = scopes[1:]
	}
	var err error
	if p.v4, err = newUnits[sketch.Key4](cfg.IPv4, cfg.Seed, dev.ID, scopes); err != nil {
		return nil, fmt.Errorf("flowset: switch %d: %w", dev.ID, err)
	}
	if p.v6, err = newUnits[sketch.Key6](cfg.IPv6, cfg.Seed, dev.ID, scopes); err != nil {
		return nil, fmt.Errorf("flowset: switch %d: %w", dev.ID, err)
	}
	p.filling = make([]fillingTables, len(scopes))
	p.updateFilling()
	for i := range p.v4 {
		p.out.units = append(p.out.units, &p.v4[i])
	}
	for i := range p.v6 {
		p.out.units = append(p.out.units, &p.v6[i])
	}
	if err := p.out.sizeBursts(&dev, &cfg); err != nil {
		return nil, fmt.Errorf("flowset: switch %d: %w", dev.ID, err)
	}
	return p, nil
}

// Slot returns the length of a slot.
func (p *Program) Slot() time.Duration { return p.slot }

// Stages returns Ingress for packets, or Dequeue for outgoing ones, and Timer for slots
// and exports.
func (p *Program) Stages() inswitch.Stages {
	if p.outgoing.on {
		return inswitch.StageSet(inswitch.Dequeue, inswitch.Timer)
	}
	return inswitch.StageSet(inswitch.Ingress, inswitch.Timer)
}

// Observe counts a packet, or continues the export.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	if ev.Now >= p.now.end {
		p.startSlot(ev.Now)
	}
	if ev.Stage == inswitch.Timer {
		p.onTimer(ev.Now, act)
		return
	}
	if p.outgoing.on {
		if arrived := ev.Now.Add(-ev.Latency); arrived < p.now.start {
			p.countLate(ev, arrived)
			return
		}
	}
	p.count(ev)
}

// count counts a packet in the slot that is being filled.
func (p *Program) count(ev *inswitch.Event) {
	at := int(ev.In-1) * p.perPort
	if ev.Packet.DSCP&p.probeMark != 0 && p.isProbe(ev.Packet) {
		p.countProbe(at, ev.Packet.Key)
		return
	}
	if id := ev.Packet.KeyID; id != 0 && at < len(p.filling) {
		// A number belongs to one family. Trying both saves reading the key,
		// which may not be in the cache.
		f, size := &p.filling[at], uint32(ev.Packet.UnlabeledSize())
		if f.v4.AddRecent(id, size) || f.v6.AddRecent(id, size) {
			return
		}
	}
	p.countPacket(at, ev)
}

// countPacket counts a packet of a flow that is not recent.
func (p *Program) countPacket(at int, ev *inswitch.Event) {
	key := ev.Packet.Key
	switch {
	case key.V6 && at < len(p.v6) && p.active:
		k := sketch.Pack6(key)
		p.v6[at].countPacket(p.bank, &k, ev)
	case !key.V6 && key.Src.Is4() && at < len(p.v4) && p.active:
		k := sketch.Pack4(key)
		p.v4[at].countPacket(p.bank, &k, ev)
	default:
		p.countSkipped(at, key)
	}
}

// fillingTables is the recent flows of the tables that are being filled; it is
// empty where there is no table.
type fillingTables struct{ v4, v6 *sketch.RecentFlows }

var noRecentFlows sketch.RecentFlows

// updateFilling sets filling to the tables of the current bank.
func (p *Program) updateFilling() {
	for i := range p.filling {
		p.filling[i] = fillingTables{&noRecentFlows, &noRecentFlows}
		if i < len(p.v4) && p.active {
			p.filling[i].v4 = &p.v4[i].banks[p.bank].set.RecentFlows
		}
		if i < len(p.v6) && p.active {
			p.filling[i].v6 = &p.v6[i].banks[p.bank].set.RecentFlows
		}
	}
}

// countSkipped counts a packet that is in no table: in its own family's flowset
// if it was missed; if it has no key of a family that is kept, in IPv4's, or
// IPv6's if there is no other.
func (p *Program) countSkipped(at int, key *model.FlowKey) {
	v4, v6 := at < len(p.v4), at < len(p.v6)
	switch {
	case v6 && (key.V6 || !v4):
		p.v6[at].countSkipped(p.bank, p.active)
	case v4:
		p.v4[at].countSkipped(p.bank, p.active)
	}
}

func (u *unit[K]) countSkipped(bank int, active bool) {
	if active {
		saturatingIncrement(&u.banks[bank].unkeyed)
	} else {
		saturatingIncrement(&u.missed)
	}
}

// probeHead is how many bytes of a marked packet are read: with labels, more than
// mirrors keep of a probe.
const probeHead = 256

// isProbe reports whether a marked packet has a probe's stamp. The mark alone is not
// enough: hosts mark users' packets too.
func (p *Program) isProbe(pkt *inswitch.Packet) bool {
	p.frame = pkt.AppendFrame(p.frame[:0], probeHead)
	_, err := probe.FindStamp(p.frame)
	return err == nil
}

// countProbe counts a probe, as countSkipped does a packet.
func (p *Program) countProbe(at int, key *model.FlowKey) {
	v4, v6 := at < len(p.v4), at < len(p.v6)
	switch {
	case v6 && (key.V6 || !v4):
		p.v6[at].countProbe(p.bank, p.active)
	case v4:
		p.v4[at].countProbe(p.bank, p.active)
	}
}

func (u *unit[K]) countProbe(bank int, active bool) {
	n := &u.probes
	if active {
		n = &u.banks[bank].probes
	}
	*n = min(*n+1, wire.MaxProbes)
}

// startSlot begins the slot that contains now. A slot without any event is
// omitted: its number is missing in the export. If the clock is set back, the
// slot continues until its end is reached again.
func (p *Program) startSlot(now model.Time) {
	switch {
	case !p.running:
		p.running, p.active = true, true
	case !p.active: // the ending slot had no table; its packets were missed
	case p.out.active: // the other bank is still exported: there is none to fill
		p.pendingSlot, p.active = p.now, false
	case p.outgoing.lingers: // past the next slot's end: there is no timer
		p.endLinger()
		p.pendingSlot, p.active = p.now, false
	case p.outgoing.on:
		p.outgoing.lingers, p.outgoing.slot = true, p.now
		p.bank ^= 1
	default:
		p.out.start(p.bank, p.now)
		p.bank ^= 1
	}
	p.updateFilling()
	number := int64(now) / int64(p.slot)
	if int64(now)%int64(p.slot) < 0 {
		number--
	}
	p.now.number = uint32(number)
	p.now.start = model.Time(number * int64(p.slot))
	p.now.end = p.now.start + model.Time(p.slot)
}
