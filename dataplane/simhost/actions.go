package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Refusal is why an action was not executed. A label that cannot be pushed is
// refused with the text of label.Push's error.
type Refusal string

// Refusals.
const (
	NoPort   Refusal = "no such port"
	NoRoute  Refusal = "no route"
	NoPacket Refusal = "no packet at this stage" // at Timer, and the frame at PFC
	NotIP    Refusal = "not an IP packet"
)

const (
	minFrame   = 60
	defaultTTL = 64
)

func (s *Switch) refuse(why Refusal) { s.stats.Refused[why]++ }

// Execute carries out a program's actions. The pipeline calls it.
func (s *Switch) Execute(program int, ev *inswitch.Event, act *inswitch.Actions) {
	for i := range act.Reports {
		s.addReport(&act.Reports[i])
	}
	hasPacket := ev.Stage != inswitch.Timer && ev.Stage != inswitch.PFC
	for i := range act.Clones {
		if !hasPacket {
			s.refuse(NoPacket)
			continue
		}
		s.clone(&act.Clones[i])
	}
	for i := range act.Sends {
		s.send(&act.Sends[i])
	}
	if act.Changes != 0 {
		if hasPacket {
			s.applyChanges(act)
		} else {
			s.refuse(NoPacket)
		}
	}
	for _, t := range act.Timers {
		s.ctx.After((*atTimer)(s), t.Delay, timerOf(program, t.Timer))
	}
	if act.Verdict != inswitch.Pass && !hasPacket {
		s.refuse(NoPacket)
	}
	s.finishActions()
}

func (s *Switch) clone(c *inswitch.Clone) {
	for _, id := range c.Ports {
		out := s.port(id)
		if out == nil {
			s.refuse(NoPort)
			continue
		}
		p := s.ctx.Clone()
		if c.Limit > 0 {
			s.ctx.Truncate(p, c.Limit)
		}
		p.Control = p.Control || c.Control
		s.sw.Send(p, out)
	}
}

func (s *Switch) send(m *inswitch.Send) {
	if len(m.Ports) == 0 {
		out, ok := s.sw.NextHop(m.Key)
		if m.EtherType != 0 || !ok {
			s.refuse(NoRoute)
			return
		}
		s.sw.Send(s.buildPacket(m), out)
		return
	}
	for _, id := range m.Ports {
		if out := s.port(id); out != nil {
			s.sw.Send(s.buildPacket(m), out)
		} else {
			s.refuse(NoPort)
		}
	}
}

// buildPacket makes a packet of a Send.
func (s *Switch) buildPacket(m *inswitch.Send) *sim.Packet {
	p := s.buildTunneled(m)
	if p == nil {
		p = s.buildPlain(m)
	}
	p.Priority, p.Control = m.Priority&7, m.Control
	p.TTL, p.DSCP = m.TTL, m.DSCP&63
	if p.TTL == 0 {
		p.TTL = defaultTTL
	}
	return p
}

// buildTunneled returns a packet whose content is an IP packet, so that the
// switch that its header addresses can decapsulate it; nil if it is none.
func (s *Switch) buildTunneled(m *inswitch.Send) *sim.Packet {
	if m.EtherType != 0 || m.Key.Proto != model.IPIP && m.Key.Proto != model.IPv6 {
		return nil
	}
	p, err := s.sw.Craft(m.Content)
	if err != nil {
		return nil
	}
	s.sw.Encapsulate(p, m.Key)
	return p
}

// buildPlain returns any other packet.
func (s *Switch) buildPlain(m *inswitch.Send) *sim.Packet {
	p := s.sw.NewPacket()
	p.Kind = sim.KindOther
	p.Payload = int32(len(m.Content))
	p.Size = ethernetSize + p.Payload
	e := s.sw.Extra(p)
	e.Content = append(e.Content, m.Content...)
	if m.EtherType != 0 {
		e.EtherType = m.EtherType
	} else {
		p.Key = m.Key
		p.Size += keyBytes(&m.Key)
		if m.Key.Proto == model.UDP {
			p.Kind = sim.KindUDP
		}
	}
	p.Size = max(p.Size, minFrame)
	return p
}

// applyChanges rewrites the packet and its view.
func (s *Switch) applyChanges(act *inswitch.Actions) {
	p, v := s.ctx.Packet, &s.packet
	if v.EtherType != packet.TypeIPv4 && v.EtherType != packet.TypeIPv6 {
		s.refuse(NotIP)
		return
	}
	if act.Changes.Has(inswitch.ChangeDSCP) {
		p.DSCP = act.DSCP
	}
	if act.Changes.Has(inswitch.ChangeECN) {
		p.ECN = act.ECN
	}
	if act.Changes.Has(inswitch.StripLabels) && v.LabelCount > 0 {
		s.ctx.Resize(-int32(len(p.Extra.Labels)))
		p.Extra.Labels = p.Extra.Labels[:0]
	}
	if act.Changes.Has(inswitch.PushLabel) {
		if opt, err := s.nextOption(act.LabelParams); err != nil {
			s.refuse(Refusal(err.Error()))
		} else {
			e := s.ctx.Extra(p)
			before := len(e.Labels)
			pushLabel(e, opt, &act.LabelItem)
			s.ctx.Resize(int32(len(e.Labels) - before))
		}
	}
	s.fillView(p)
}
