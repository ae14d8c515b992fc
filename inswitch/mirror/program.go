package mirror

import (
	"encoding/binary"
	"math"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Stats are the program's counters. A packet that was mirrored for several
// reasons counts for each of them.
type Stats struct {
	Packets  uint64 // received
	Mirrored uint64
	Bytes    model.Bytes // of mirrors

	Flag, Sample, Debug, Protocol, Rule uint64 // by reason

	// Packets that were selected and not mirrored.
	RateLimited uint64 // the token bucket was empty
	Skipped     uint64 // by a rule
	Telemetry   uint64 // mirrors and reports, which are never mirrored
}

// Program mirrors the packets of one switch.
//
// It mirrors packets at ingress: a packet that the switch then drops, for any
// reason, has been mirrored there, and the last mirror of a dropped packet
// identifies the switch that dropped it. A mirror at egress would identify the
// switch before, and could not distinguish it from the link between. The egress
// port is known all the same: hardware looks it up at the same time, and
// Event.Switch provides it here.
type Program struct {
	cfg             Config
	dev             inswitch.Device
	rules           *ruleTable
	sample          uint64 // 32-bit hashes below it are sampled
	noRulesOrSample bool   // no rules and no sample
	budget          tokenBucket
	seq             uint32
	stats           Stats
	frame           []byte // of the current packet
	data            []byte // of the current mirror
}

// New returns the program of a switch.
func New(dev inswitch.Device, cfg Config) (*Program, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Program{
		cfg: cfg, dev: dev, sample: sampleThreshold(cfg.SampleOneIn), budget: newTokenBucket(cfg.Rate, cfg.Burst),
		frame: make([]byte, 0, cfg.Truncate+512), data: make([]byte, 0, cfg.Truncate+512),
	}
	return p, p.SetRules(cfg.Rules)
}

// sampleThreshold returns the bound below which one in n 32-bit hashes lies.
func sampleThreshold(n uint32) uint64 {
	if n == 0 {
		return 0
	}
	return (1 << 32) / uint64(n)
}

// SetRules replaces all rules.
func (p *Program) SetRules(rules []Rule) error {
	t, err := newRuleTable(rules, len(p.dev.Ports))
	if err != nil {
		return err
	}
	p.rules = t
	p.noRulesOrSample = len(t.rules) == 0 && p.sample == 0
	return nil
}

// Stats returns the current counters.
func (p *Program) Stats() Stats { return p.stats }

// Stages returns Ingress and PFC.
func (p *Program) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Ingress, inswitch.PFC) }

// Observe mirrors a packet if there is a reason to.
func (p *Program) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	p.stats.Packets++
	if k := ev.Packet.Kind; (k == inswitch.Data || k == inswitch.Ack) && p.noRulesOrSample &&
		ev.Packet.DSCP&p.cfg.DebugMask == 0 {
		return // most packets: no further reason concerns RDMA data and ACKs
	}
	why := p.mirrorReason(ev)
	if why == 0 {
		return
	}
	if p.isTelemetry(ev) {
		p.stats.Telemetry++
		return
	}
	pkt := ev.Packet
	// Labels grow on the path. The kept part of the packet must not shrink for
	// it, or two mirrors of the packet would differ.
	limit := p.cfg.Truncate + int(pkt.Size-pkt.UnlabeledSize())
	size := mirror.HeadSize + min(limit, int(pkt.Size))
	if !p.budget.spend(ev.Now, size, why.Has(mirror.Debug|mirror.Protocol)) {
		p.stats.RateLimited++
		return
	}
	p.countMirrored(why, size)
	p.frame = pkt.AppendFrame(p.frame[:0], limit)
	if len(p.cfg.Collectors) > 0 {
		p.sendERSPAN(ev, act)
	} else {
		p.sendReport(why, ev, act)
	}
}

// mirrorReason returns why a packet is to be mirrored, or 0.
func (p *Program) mirrorReason(ev *inswitch.Event) (why mirror.Reasons) {
	pkt := ev.Packet
	if pkt.DSCP&p.cfg.DebugMask != 0 {
		why |= mirror.Debug
	}
	rule := (*Rule)(nil)
	if len(p.rules.rules) > 0 {
		rule = p.rules.match(ev)
	}
	if rule != nil && rule.Skip {
		if why == 0 {
			p.stats.Skipped++
		}
		return why
	}
	if p.cfg.TCPFlags && pkt.Key.Proto == model.TCP &&
		packet.TCPFlags(pkt.TCPFlags)&(packet.SYN|packet.FIN|packet.RST) != 0 {
		why |= mirror.Flag
	}
	if p.cfg.Protocol && isControlProtocol(ev) {
		why |= mirror.Protocol
	}
	if rule == nil && p.sample == 0 {
		return why
	}
	draw := uint64(0)
	if !pkt.Key.IsZero() {
		draw = pkt.SampleHash(p.cfg.Seed)
		if draw < p.sample {
			why |= mirror.Sample
		}
	}
	// A packet without a flow key has no sample hash: rules select all of them.
	if rule != nil && (rule.OneIn <= 1 || draw < sampleThreshold(rule.OneIn)) {
		why |= mirror.Rule
	}
	return why
}

const bgpPort = 179

func isControlProtocol(ev *inswitch.Event) bool {
	if ev.Stage == inswitch.PFC {
		return true
	}
	pkt := ev.Packet
	switch pkt.Kind {
	case inswitch.Nak, inswitch.CNP, inswitch.ConnectionManagement:
		return true
	}
	return pkt.Key.Proto == model.TCP && (pkt.Key.SrcPort == bgpPort || pkt.Key.DstPort == bgpPort)
}

// isTelemetry reports whether a packet is a mirror or a report of Weft. To
// mirror one would create another, at every switch and endlessly.
func (p *Program) isTelemetry(ev *inswitch.Event) bool {
	key := ev.Packet.Key
	switch key.Proto {
	case model.UDP:
		return key.DstPort == dta.Port || key.DstPort == dta.AckPort
	case model.GRE: // innermost: it carries no readable IP packet
		p.frame = ev.Packet.AppendFrame(p.frame[:0], cap(p.frame))
		var seen packet.Packet
		if seen.Parse(p.frame) != nil {
			return false
		}
		at := int(seen.Innermost().Transport)
		if seen.Encap == packet.Mirror || at+4 > len(p.frame) {
			return seen.Encap == packet.Mirror
		}
		// A mirror in a tunnel of another kind.
		switch binary.BigEndian.Uint16(p.frame[at+2:]) {
		case erspan.ProtoII, erspan.ProtoIII, erspan.ProtoMellanox:
			return true
		}
	}
	return false
}

func (p *Program) countMirrored(why mirror.Reasons, size int) {
	s := &p.stats
	s.Mirrored++
	s.Bytes += model.Bytes(size)
	for i, n := range [...]*uint64{&s.Flag, &s.Sample, &s.Debug, &s.Protocol, &s.Rule} {
		*n += uint64(why >> i & 1)
	}
}

// shard selects the analyzer. Packets without a flow key are spread by switch.
func (p *Program) shard(key *model.FlowKey, n uint32) uint32 {
	if key.IsZero() {
		return uint32(p.dev.ID) % n
	}
	return mirror.Shard(key, n)
}

// sendReport sends the mirror as an Append report.
func (p *Program) sendReport(why mirror.Reasons, ev *inswitch.Event, act *inswitch.Actions) {
	pkt := ev.Packet
	m := mirror.Mirror{
		Reasons: why, Switch: p.dev.ID, In: ev.In, Time: ev.Now,
		Length: uint16(min(max(int(pkt.Size), len(p.frame)), math.MaxUint16)), Frame: p.frame,
	}
	if ev.Stage == inswitch.Ingress && !pkt.Key.IsZero() {
		m.Out, _ = ev.Switch.Route(pkt.Outer)
	}
	p.data = m.AppendTo(p.data[:0])
	act.Report(dta.Report{
		Primitive: dta.Append, List: p.cfg.List + dta.ListID(p.shard(pkt.Key, p.cfg.Lists)),
		Data: p.data,
	})
}

// sendERSPAN sends the mirror as an ERSPAN packet, as SONiC switches do.
func (p *Program) sendERSPAN(ev *inswitch.Event, act *inswitch.Actions) {
	pkt := ev.Packet
	m := erspan.Mirror{
		Kind: p.cfg.Kind, Session: p.cfg.Session, Truncated: len(p.frame) < int(pkt.Size), Frame: p.frame,
		Index: uint32(ev.In), // type II
		PDU:   true, Timestamp: uint32(ev.Now / 100), Granularity: erspan.Per100ns,
	}
	if m.Kind == erspan.TypeII || m.Kind == erspan.TypeIII {
		m.GRE.HasSeq, m.GRE.Seq = true, p.seq
		p.seq++
	}
	p.data = m.AppendTo(p.data[:0])
	to := p.cfg.Collectors[p.shard(pkt.Key, uint32(len(p.cfg.Collectors)))]
	key := model.FlowKey{Src: p.dev.IPv4, Dst: to, Proto: model.GRE}
	if !to.Is4() {
		key.Src, key.V6 = p.dev.IPv6, true
	}
	act.Send(inswitch.Send{Key: key, Content: p.data, TTL: mirrorTTL, DSCP: mirrorDSCP})
}
