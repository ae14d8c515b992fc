package packet

import (
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// brief prints a Packet in one line, for tests to compare by eye.
func brief(p *Packet) string {
	var b strings.Builder
	if p.Tags > 0 {
		fmt.Fprintf(&b, "tags=%d vlan=%d/%d ", p.Tags, p.VLAN.ID, p.VLAN.PCP)
	}
	if p.Depth == 0 {
		fmt.Fprintf(&b, "ethertype=%#x", p.EtherType)
		return b.String()
	}
	briefIP(&b, &p.Outer)
	if p.Encap != None {
		fmt.Fprintf(&b, " | encap=%d depth=%d", p.Encap, p.Depth)
	}
	if p.Depth > 1 {
		b.WriteByte(' ')
		briefIP(&b, &p.Inner)
	}
	return b.String()
}

func briefIP(b *strings.Builder, h *IP) {
	fmt.Fprintf(b, "%v id=%d ttl=%d dscp=%d ecn=%d", h.Key, h.ID, h.TTL, h.DSCP(), h.ECN())
	if h.TCPFlags&SYN != 0 {
		b.WriteString(" syn")
	}
	if h.Key.Proto == model.TCP && !h.Flags.Has(NoPorts) {
		fmt.Fprintf(b, " seq=%d", h.Seq)
	}
	if h.Key.Proto == model.ICMP {
		fmt.Fprintf(b, " type=%d code=%d", h.Type, h.Code)
	}
	for _, f := range []struct {
		flag Flags
		name string
	}{{Fragment, "fragment"}, {NoPorts, "no-ports"}, {Truncated, "truncated"}, {Malformed, "malformed"}, {TooDeep, "too-deep"}, {Labelled, "labelled"}, {RoCE, "roce"}} {
		if h.Flags.Has(f.flag) {
			b.WriteString(" " + f.name)
		}
	}
	if h.Flags.Has(RoCE) {
		fmt.Fprintf(b, " op=%#x qp=%#x psn=%#x", h.Type, h.QP, h.Seq)
	}
	fmt.Fprintf(b, " payload=%d", h.Payload)
}

// dirty returns a Packet that an earlier, tunnelled frame filled: a Parse that
// forgets a field shows.
func dirty() (p Packet) {
	inner := ip4(nil, model.UDP, "9.9.9.9", "8.8.8.8", udp(4, 4791, make([]byte, 20)))
	b := join(ether(TypeVLAN), unhex("e001 0800"), ip4(nil, model.IPIP, "7.7.7.7", "6.6.6.6", inner))
	if err := p.Parse(b); err != nil || p.Depth != 2 {
		panic("dirty: the frame is not tunnelled")
	}
	return p
}
