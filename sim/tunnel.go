package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// While a packet has outer headers, its TTL, DSCP and ECN are those of the
// outermost: what switches read and change. Its IPID and all else are the
// innermost's, as programs name packets.

// below is what the header beneath an outer one says.
type below struct{ ttl, dscp, ecn uint8 }

// encapsulate puts a packet behind one more IP header. Marks are copied
// outward (RFC 6040); the packet is no longer on its flow's way.
func (n *Network) encapsulate(p *Packet, outer model.FlowKey) {
	size := p.bare() + ipSize(&outer)
	e := n.pool.extra(p)
	e.Outer = slices.Insert(e.Outer, 0, outer)
	e.below = slices.Insert(e.below, 0, below{p.TTL, p.DSCP, p.ECN})
	p.Size = max(minFrame, size)
	p.TTL = n.cfg.TTL
	p.hop = uint8(len(p.path))
}

// decapsulate takes the outermost header off, if there is one. A mark that the
// packet got in the tunnel stays with it.
func (p *Packet) decapsulate() {
	if !p.tunnelled() {
		return
	}
	e, inner := p.Extra, p.header(1)
	p.Size = max(minFrame, p.bare()-ipSize(&e.Outer[0]))
	p.TTL, p.DSCP = inner.ttl, inner.dscp
	if p.ECN != CE || inner.ecn == NotECT {
		p.ECN = inner.ecn
	}
	e.Outer = slices.Delete(e.Outer, 0, 1)
	if len(e.below) > 0 {
		e.below = slices.Delete(e.below, 0, 1)
	}
}

// tunnelled tells whether the packet has an outer header.
func (p *Packet) tunnelled() bool { return p.Extra != nil && len(p.Extra.Outer) > 0 }

// header is what the IP header at a depth says; 0 is the outermost. Where a
// program wrote outer headers itself, they are all alike.
func (p *Packet) header(depth int) below {
	if depth == 0 || p.Extra == nil || depth > len(p.Extra.below) {
		return below{p.TTL, p.DSCP, p.ECN}
	}
	return p.Extra.below[depth-1]
}

// bare is the packet's length without Ethernet's padding, which ends at every
// hop. RDMA has none: its headers are long enough.
func (p *Packet) bare() int32 {
	size := ethernetSize + ipSize(&p.Key) + p.Payload
	switch {
	case p.Size > minFrame:
		return p.Size
	case p.Kind == KindTCP:
		size += tcpSize
	case p.Kind == KindUDP:
		size += udpSize
	default:
		return p.Size
	}
	if p.Extra != nil {
		for i := range p.Extra.Outer {
			size += ipSize(&p.Extra.Outer[i])
		}
	}
	return size
}
