// Package postcard sends a postcard of every hop of chosen packets to a collector,
// which gathers those of a packet: path, latency and queue of each hop by the key of
// its flow. Chosen are marked packets, and a sample of the packets of some flows, the
// same at all switches. Gathering is collect/translate's. Origin: docs/papers.md#dta
// (Postcarding). Layout: docs/formats/keyed.md. Reader: control/livestate.
package postcard

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// Config is which packets have postcards. All switches of a fabric must have the same,
// or they choose different packets.
type Config struct {
	FlowOneIn   uint32 // one in this many flows is sampled; 0: none
	PacketOneIn uint32 // one in this many packets of them
	MarkedOneIn uint32 // one in this many packets with a debug mark
	DebugMask   uint8  // bits of the DSCP field that mark a packet; 0: none
	Seed        uint64 // of the sample

	// Rate limits a switch, in packets per second; Burst is how many may follow each
	// other.
	Rate  int
	Burst int
}

// DefaultConfig samples one in 64 flows, and of them as many packets as leave a flow of
// 10 Gb/s with about a thousand samples per second. The mark is inswitch/mirror's.
func DefaultConfig() Config {
	return Config{FlowOneIn: 64, PacketOneIn: 1024, MarkedOneIn: 16, DebugMask: 1, Rate: 20_000, Burst: 200}
}

// maxOneIn leaves bits of a packet's hash that differ among chosen packets.
const maxOneIn = 1 << 20

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.FlowOneIn > maxOneIn:
		return fmt.Errorf("postcard: one in %d flows, want at most %d", c.FlowOneIn, maxOneIn)
	case c.PacketOneIn < 1 || c.PacketOneIn > maxOneIn:
		return fmt.Errorf("postcard: one in %d packets, want 1 to %d", c.PacketOneIn, maxOneIn)
	case c.MarkedOneIn < 1 || c.MarkedOneIn > maxOneIn:
		return fmt.Errorf("postcard: one in %d marked packets, want 1 to %d", c.MarkedOneIn, maxOneIn)
	case c.DebugMask > 63:
		return fmt.Errorf("postcard: debug mark %#x, want bits of the DSCP field, at most 0x3f", c.DebugMask)
	case c.Rate < 1 || c.Rate > 1e9 || c.Burst < 1 || c.Burst > 1e6:
		return fmt.Errorf("postcard: %d packets per second in bursts of %d, want 1 to 1e9 and 1 to 1e6", c.Rate, c.Burst)
	}
	return nil
}

// Stats count chosen packets.
// Invariant: Chosen = Sent + Tunnelled + NoHop + RateLimited.
type Stats struct {
	Chosen      uint64
	Sent        uint64 // postcards, of several reports each
	Tunnelled   uint64 // of packets in a tunnel, whose TTL begins anew
	NoHop       uint64 // of packets whose TTL does not say how many switches they passed
	RateLimited uint64
}

// Program sends the postcards of one switch. Observe takes constant time and allocates
// nothing.
type Program struct {
	cfg             Config
	dev             inswitch.Device
	flow            uint64 // 32-bit hashes below it are chosen
	packets, marked uint64
	full            model.Time // when the burst is over, if nothing follows
	reports         keyed.PostcardReports
	stats           Stats
}

// New returns the program of a switch.
func New(dev inswitch.Device, cfg Config) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if dev.ID > keyed.MaxPostcardSwitch {
		return nil, fmt.Errorf("postcard: switch id %d, want at most %d", dev.ID, keyed.MaxPostcardSwitch)
	}
	below := func(oneIn uint32) uint64 {
		if oneIn == 0 {
			return 0
		}
		return 1 << 32 / uint64(oneIn)
	}
	return &Program{cfg: cfg, dev: dev, flow: below(cfg.FlowOneIn), packets: below(cfg.PacketOneIn), marked: below(cfg.MarkedOneIn)}, nil
}

// Stages returns Dequeue, where the latency is known.
func (p *Program) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Dequeue) }

// Stats returns the current counters.
func (p *Program) Stats() Stats { return p.stats }

// Observe sends the postcard of a packet, if it is chosen.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	pkt := ev.Packet
	below, marked := p.packets, pkt.DSCP&p.cfg.DebugMask != 0
	if marked {
		below = max(p.marked, below)
	} else if p.flow == 0 {
		return
	}
	if !pkt.IsIP() || pkt.Key.IsZero() {
		return
	}
	hash := pkt.SampleHash(p.cfg.Seed)
	if hash >= below || !(marked && hash < p.marked) && !p.samplesFlow(pkt.Key) || isTelemetry(pkt.Key) {
		return
	}
	p.stats.Chosen++
	hop, known := keyed.HopIndex(pkt.TTL)
	switch {
	case !pkt.Outer.Equal(pkt.Key):
		p.stats.Tunnelled++
	case !known:
		p.stats.NoHop++
	case !p.spend(ev.Now):
		p.stats.RateLimited++
	default:
		p.stats.Sent++
		p.send(ev, hop, uint32(hash), act)
	}
}

// samplesFlow reports whether the packets of a flow are sampled.
func (p *Program) samplesFlow(k *model.FlowKey) bool {
	return p.flow != 0 && k.Hash(p.cfg.Seed)>>32 < p.flow
}

// isTelemetry reports whether a packet is a report or mirror: postcards of it would be
// reports again, without an end.
func isTelemetry(k *model.FlowKey) bool {
	return k.Proto == model.GRE || k.Proto == model.UDP && (k.DstPort == dta.Port || k.DstPort == dta.AckPort)
}

// spend reports whether the rate allows another postcard now.
func (p *Program) spend(now model.Time) bool {
	gap := time.Second / time.Duration(p.cfg.Rate)
	start := max(p.full, now)
	if start.Sub(now) > gap*time.Duration(p.cfg.Burst-1) {
		return false
	}
	p.full = start.Add(gap)
	return true
}

// send reports a postcard. The last switch knows the length of the path.
func (p *Program) send(ev *inswitch.Event, hop uint8, hash uint32, act *inswitch.Actions) {
	length := uint8(0)
	if p.dev.Port(ev.Out).FacesHost {
		length = hop + 1
	}
	card := keyed.Postcard{Switch: p.dev.ID, Latency: ev.Latency, Queue: ev.DepthAtEnqueue, Time: ev.Now}
	for _, r := range p.reports.Of(ev.Packet.Key, hash, hop, length, card) {
		act.Report(r)
	}
}
