package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
)

const ethernetSize = packet.EthernetSize

// kinds maps the simulator's kinds; its length is a power of two, so that no
// index is out of bounds.
var kinds = [16]inswitch.Kind{
	sim.KindData: inswitch.Data, sim.KindAck: inswitch.Ack, sim.KindNack: inswitch.Nak, sim.KindCNP: inswitch.CNP,
	sim.KindTrimmed: inswitch.Data, sim.KindPFC: inswitch.NotRDMA, sim.KindTCP: inswitch.NotRDMA, sim.KindUDP: inswitch.NotRDMA,
	sim.KindOther: inswitch.NotRDMA,
}

// fillView fills the view of a packet. It runs for every packet, so it copies
// few words and leaves the rest to packetSource.
func (s *Switch) fillView(p *sim.Packet) {
	v := &s.packet
	v.Key, v.Outer, v.KeyID = &p.Key, &p.Key, p.KeyID
	v.Size, v.IPID, v.EtherType = p.Size, p.IPID, packet.TypeIPv4
	v.TTL, v.ECN, v.DSCP, v.TCPFlags = p.TTL, p.ECN, p.DSCP, p.TCPFlags
	v.InnerTTL, v.LabelCount, v.Kind = p.TTL, 0, kinds[p.Kind%16]
	if p.V6() {
		v.EtherType, v.IPID = packet.TypeIPv6, 0 // IPv6 has no IPID
	}
	if p.Extra != nil {
		s.fillExtra(p, p.Extra)
	}
}

func (s *Switch) fillExtra(p *sim.Packet, e *sim.Extra) {
	v := &s.packet
	if e.EtherType != 0 {
		v.EtherType = e.EtherType
	}
	if len(e.Outer) > 0 {
		v.Outer, v.InnerTTL = &e.Outer[0], p.InnerTTL()
	}
	if p.Key.Proto == model.ICMP || p.Key.Proto == model.ICMPv6 {
		v.ICMPType, v.ICMPCode = 0, 0 // ICMP always has Extra, so it always comes here
		if len(e.Content) >= 2 {
			v.ICMPType, v.ICMPCode = e.Content[0], e.Content[1]
		}
	}
	if n := len(e.Labels); n > 0 {
		v.LabelCount = uint8((n - label.OptionSize) / label.ItemSize)
	}
}

// packetSource implements inswitch.Source for the current packet, to keep its
// methods out of Switch's API.
type packetSource struct{ *Switch }

// Seq returns the number that AppendFrame writes.
func (s packetSource) Seq() uint32 {
	p := s.ctx.Packet
	switch {
	case p.Kind == sim.KindTCP:
		seq, _ := p.TCPNumbers()
		return seq
	case p.Kind <= sim.KindCNP:
		return uint32(p.Seq/s.payload) & 0xffffff
	}
	return 0
}

func (s packetSource) Labels() (k label.Block) {
	if e := s.ctx.Packet.Extra; e != nil {
		_, _ = k.Parse(e.Labels) // leaves no label on an error
	}
	return k
}

// CanPushLabel checks what label.Push would check on the bytes.
func (s packetSource) CanPushLabel(how label.Params) error {
	_, err := s.nextOption(how)
	return err
}

// nextOption returns the packet's option after one more label.
func (s *Switch) nextOption(how label.Params) (opt label.Option, err error) {
	p := s.ctx.Packet
	if s.packet.EtherType != packet.TypeIPv4 && s.packet.EtherType != packet.TypeIPv6 {
		return opt, label.ErrNotIP
	}
	grow := int32(label.ItemSize)
	if k := (packetSource{s}).Labels(); k.Len() > 0 {
		if k.Len() == int(k.MaxHop) {
			return opt, label.ErrFull
		}
		opt = k.Option
		opt.Num++
	} else {
		grow = label.FirstGrowth
		opt = label.Option{NextHeader: s.packet.Outer.Proto, Num: 1, MaxHop: how.MaxHop}
		if opt.MaxHop == 0 {
			opt.MaxHop = label.DefaultMaxHop
		}
		if err := opt.Check(); err != nil {
			return opt, err
		}
		if how.Specific {
			opt.Num += opt.MaxHop
		}
	}
	limit := s.mtu
	if how.MTU > 0 {
		limit = min(limit, int32(how.MTU))
	}
	if p.Size-ethernetSize+grow > limit {
		return opt, label.ErrTooLong
	}
	return opt, nil
}

// AppendFrame writes the frame that the neighbour sent, or at Dequeue the frame
// to send.
func (s packetSource) AppendFrame(b []byte, limit int) []byte {
	from := s.ctx.Out
	if in := s.ctx.In(); in != nil && s.ctx.Stage != sim.StageDequeue {
		from = in.Peer()
	}
	start := len(b)
	b = s.net.AppendFrame(b, s.ctx.Packet, from)
	if limit > 0 && len(b) > start+limit {
		b = b[:start+limit]
	}
	return b
}

// pushLabel adds an item under the option that nextOption returned.
func pushLabel(e *sim.Extra, opt label.Option, item *label.Item) {
	old := len(e.Labels)
	grow := label.ItemSize
	if old == 0 {
		grow = label.FirstGrowth
	}
	var zeros [label.FirstGrowth]byte
	e.Labels = append(e.Labels, zeros[:grow]...)
	if old > 0 {
		copy(e.Labels[label.OptionSize+label.ItemSize:], e.Labels[label.OptionSize:old])
	}
	item.AppendTo(opt.AppendTo(e.Labels[:0]))
}

// keyBytes returns the length of the headers that carry a key: IP, and UDP.
func keyBytes(k *model.FlowKey) int32 {
	n := int32(packet.IPv4Size)
	if k.V6 {
		n = packet.IPv6Size
	}
	if k.Proto == model.UDP {
		n += packet.UDPSize
	}
	return n
}
