package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// While a packet has outer headers, its TTL, DSCP and ECN are those of the
// outermost: what switches read and change. Its IPID and all else are the
// innermost's, as programs name packets.
//
// Muxes wrap packets, and so may a host do with its own: each outer header that
// names a switch's own address is taken off there, and the packet goes on by
// the next one. Nested headers thus lead a packet along any list of switches.
// Labels ride behind the outermost header; whoever wraps or unwraps a packet
// takes them off, as hosts do.

// innerHeader is what the header beneath an outer one says.
type innerHeader struct{ ttl, dscp, ecn uint8 }

// encapsulate puts a packet behind one more IP header. Marks are copied
// outward (RFC 6040); the packet is no longer on its flow's way.
func (n *Network) encapsulate(p *Packet, outer model.FlowKey) {
	n.unlabel(p)
	size := p.unpaddedSize() + ipSize(&outer)
	e := n.pool.extra(p)
	e.Outer = slices.Insert(e.Outer, 0, outer)
	e.inner = slices.Insert(e.inner, 0, innerHeader{p.TTL, p.DSCP, p.ECN})
	p.Size = max(minFrame, size)
	p.TTL = n.cfg.TTL
	p.hop = uint8(len(p.path))
}

// decapsulate takes the outermost header off, if there is one. A mark that the
// packet got in the tunnel stays with it.
func (n *Network) decapsulate(p *Packet) {
	if !p.tunnelled() {
		return
	}
	n.unlabel(p)
	e, inner := p.Extra, p.header(1)
	p.Size = max(minFrame, p.unpaddedSize()-ipSize(&e.Outer[0]))
	p.TTL, p.DSCP = inner.ttl, inner.dscp
	if p.ECN != CE || inner.ecn == NotECT {
		p.ECN = inner.ecn
	}
	e.Outer = slices.Delete(e.Outer, 0, 1)
	e.inner = slices.Delete(e.inner, 0, 1)
}

// unlabel takes all labels off; they are lost.
func (n *Network) unlabel(p *Packet) {
	if p.Extra != nil && len(p.Extra.Labels) > 0 {
		n.Counts.LabelsLost += int64(len(p.Extra.Labels)-label.OptionSize) / label.ItemSize
		p.Size -= int32(len(p.Extra.Labels))
		p.Extra.Labels = p.Extra.Labels[:0]
	}
}

// Encapsulate puts a packet of the host's own behind one more IP header, for a
// switch whose own address is the header's destination. It has a TTL of its
// own; the packet's Payload must be right.
func (h *Host) Encapsulate(p *Packet, outer model.FlowKey) { h.net.wrap(p, outer) }

// Encapsulate is Host's, for a packet of the switch's own.
func (sw *Switch) Encapsulate(p *Packet, outer model.FlowKey) { sw.net.wrap(p, outer) }

// wrap is encapsulate, with the protocol that says what is inside.
func (n *Network) wrap(p *Packet, outer model.FlowKey) {
	outer.Proto = model.IPIP
	if p.outermost().V6 {
		outer.Proto = model.IPv6
	}
	n.encapsulate(p, outer)
}

// unwrap takes the outer headers off that are for the switch itself. It tells
// whether there is something to send on; the packet is then as if it had just
// arrived and been found to be for somewhere else.
func (sw *Switch) unwrap(in *Port, p *Packet) bool {
	sw.net.decapsulate(p)
	if p.TTL <= 1 {
		sw.net.drop(p, in, DropTTL)
		return false
	}
	p.TTL--
	return true
}

// tunnelled tells whether the packet has an outer header.
func (p *Packet) tunnelled() bool { return p.Extra != nil && len(p.Extra.Outer) > 0 }

// header is what the IP header at a depth says; 0 is the outermost.
func (p *Packet) header(depth int) innerHeader {
	if depth == 0 {
		return innerHeader{p.TTL, p.DSCP, p.ECN}
	}
	return p.Extra.inner[depth-1]
}

// InnerTTL is the TTL of the innermost header: TTL, where there is no tunnel.
func (p *Packet) InnerTTL() uint8 { return p.header(p.depth()).ttl }

// unpaddedSize is the packet's length without Ethernet's padding, which ends at every
// hop. RDMA has none: its headers are long enough.
func (p *Packet) unpaddedSize() int32 {
	size := ethernetSize + ipSize(&p.Key) + p.Payload
	switch {
	case p.Size > minFrame:
		return p.Size
	case p.Kind == KindTCP:
		size += tcpSize
	case p.Kind <= KindPFC:
		return p.Size
	case p.Key.Proto == model.UDP:
		size += udpSize
	}
	if p.Extra != nil {
		for i := range p.Extra.Outer {
			size += ipSize(&p.Extra.Outer[i])
		}
	}
	return size
}
