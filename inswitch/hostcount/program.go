// Package hostcount counts what the hosts attached to a switch send and receive, by
// priority, in a small cache, and evicts the counts to a collector, which adds them
// up: once a period, and early where two hosts need one place. Only ports that face a
// host count, so a packet is counted once where it enters the fabric and once where
// it leaves. Origin: docs/papers.md#dta (Key-Increment). Layout:
// docs/formats/keyed.md. Reader: control/livestate.
package hostcount

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// Config configures the program of one switch.
type Config struct {
	Period time.Duration // after which all counts are evicted
	Places int           // of the cache, a power of two: counts of a host and priority each
}

// DefaultConfig evicts every 100 ms. 256 places are twice the counts of 40 hosts that
// use three priorities.
func DefaultConfig() Config { return Config{Period: 100 * time.Millisecond, Places: 256} }

// maxPlaces keeps the reports of a period within a few MB.
const maxPlaces = 1 << 14

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	if c.Period < time.Microsecond {
		return fmt.Errorf("hostcount: period %v, want at least 1µs", c.Period)
	}
	if c.Places < 1 || c.Places > maxPlaces || c.Places&(c.Places-1) != 0 {
		return fmt.Errorf("hostcount: %d places, want a power of two up to %d", c.Places, maxPlaces)
	}
	return nil
}

// Stats account for what was counted.
// Invariant: Counted = Evicted + the counts in the cache.
type Stats struct {
	Counted    keyed.Counts // since the start
	Evicted    keyed.Counts // reported
	Reports    uint64       // that carried them
	Collisions uint64       // evictions before their period ended
}

// place holds the counts of a host and priority.
type place struct {
	host   model.Addr
	class  model.Priority
	taken  bool
	counts keyed.Counts
}

// Program counts at one switch. Observe takes constant time and allocates nothing.
type Program struct {
	cfg    Config
	dev    inswitch.Device
	stages inswitch.Stages
	places []place
	keys   []byte // of the reports of one event
	stats  Stats
}

// New returns the program of a switch. One without ports to hosts does nothing.
func New(dev inswitch.Device, cfg Config) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Program{cfg: cfg, dev: dev}
	for i := range dev.Ports {
		if dev.Ports[i].FacesHost {
			p.stages = inswitch.StageSet(inswitch.Ingress, inswitch.Dequeue, inswitch.Timer)
		}
	}
	if p.stages != 0 {
		p.places = make([]place, cfg.Places)
		p.keys = make([]byte, 0, cfg.Places*keyed.Metrics*keyed.Host6KeySize)
	}
	return p, nil
}

// tick is the timer of a period.
const tick inswitch.TimerID = 1

// Stages returns where packets come from hosts, where they leave to them, and Timer.
func (p *Program) Stages() inswitch.Stages { return p.stages }

// Stats returns the account so far.
func (p *Program) Stats() Stats { return p.stats }

// ce is the mark of a packet that met congestion (RFC 3168).
const ce = 3

// Observe counts a packet, or evicts everything at the end of a period.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	switch ev.Stage {
	case inswitch.Timer:
		act.SetTimer(p.cfg.Period, tick)
		p.keys = p.keys[:0]
		for i := range p.places {
			p.evict(&p.places[i], act)
		}
	case inswitch.Ingress:
		if p.dev.Port(ev.In).FacesHost && ev.Packet.IsIP() {
			c := p.find(ev.Packet.Outer.Src, ev.Priority, act)
			p.count(c, keyed.SentBytes, keyed.SentPackets, ev.Packet)
		}
	case inswitch.Dequeue:
		if p.dev.Port(ev.Out).FacesHost && ev.Packet.IsIP() {
			c := p.find(ev.Packet.Outer.Dst, ev.Priority, act)
			p.count(c, keyed.ReceivedBytes, keyed.ReceivedPackets, ev.Packet)
			if ev.Packet.ECN == ce {
				c[keyed.ReceivedMarked]++
				p.stats.Counted[keyed.ReceivedMarked]++
			}
		}
	}
}

// count counts a packet without its labels, which no host sends or receives.
func (p *Program) count(c *keyed.Counts, bytes, packets keyed.Metric, pkt *inswitch.Packet) {
	size := uint64(pkt.UnlabeledSize())
	c[bytes] += size
	c[packets]++
	p.stats.Counted[bytes] += size
	p.stats.Counted[packets]++
}

// find returns the counts of a host and priority. Others that have their place are
// evicted.
func (p *Program) find(host model.Addr, class model.Priority, act *inswitch.Actions) *keyed.Counts {
	w := &p.places[placeOf(host, class)&uint64(len(p.places)-1)]
	if w.taken && w.host == host && w.class == class {
		return &w.counts
	}
	if w.taken {
		p.keys = p.keys[:0]
		if p.evict(w, act) {
			p.stats.Collisions++
		}
	}
	w.host, w.class, w.taken = host, class, true
	return &w.counts
}

// placeOf hashes a host and priority. The neighbours' addresses of a rack differ in
// their last bits, which a multiplication spreads.
func placeOf(host model.Addr, class model.Priority) uint64 {
	h := (host.Hi*0x9e3779b97f4a7c15 ^ host.Lo + uint64(class)<<56) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// evict reports the counts of a place that are not zero, and reports whether there
// were any. A lost report is lost for good, as no later one repeats it: the reporter
// should keep a copy.
func (p *Program) evict(w *place, act *inswitch.Actions) (reported bool) {
	if !w.taken {
		return false
	}
	for m, n := range w.counts {
		if n == 0 {
			continue
		}
		at := len(p.keys)
		p.keys = keyed.HostKey{Switch: p.dev.ID, Host: w.host, Class: w.class, Metric: keyed.Metric(m)}.AppendTo(p.keys)
		act.Report(dta.Report{
			Primitive: dta.KeyIncrement, Redundancy: keyed.Copies, Retransmit: true, Key: p.keys[at:], Delta: n,
		})
		p.stats.Evicted[m] += n
		p.stats.Reports++
		reported = true
	}
	w.counts, w.taken = keyed.Counts{}, false
	return reported
}
