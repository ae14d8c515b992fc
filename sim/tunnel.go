package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// While a packet has outer headers, its TTL, DSCP and ECN are those of the
// outermost: what switches read and change. Its IPID and all else are the
// innermost's, as programs identify packets.
//
// Muxes encapsulate packets, and hosts may encapsulate their own: a switch
// removes each outer header that is addressed to it and forwards the packet by
// the next one. Nested headers thus lead a packet along any list of switches.
// Labels follow the outermost header; encapsulation and decapsulation remove
// them, as hosts do.

// innerHeader is what the header inside an outer one says.
type innerHeader struct{ ttl, dscp, ecn uint8 }

// encapsulate adds an outer IP header. ECN marks are copied outward (RFC 6040);
// the packet leaves its flow's path.
func (w *worker) encapsulate(p *Packet, outer model.FlowKey) {
	w.unlabel(p)
	size := p.unpaddedSize() + ipSize(&outer)
	e := w.pool.extra(p)
	e.Outer = slices.Insert(e.Outer, 0, outer)
	e.inner = slices.Insert(e.inner, 0, innerHeader{p.TTL, p.DSCP, p.ECN})
	p.Size = max(minFrame, size)
	p.TTL = w.net.cfg.TTL
	p.hop = uint8(len(p.path))
}

// decapsulate removes the outermost header, if there is one. A mark that the
// packet got in the tunnel is kept.
func (w *worker) decapsulate(p *Packet) {
	if !p.tunnelled() {
		return
	}
	w.unlabel(p)
	e, inner := p.Extra, p.header(1)
	p.Size = max(minFrame, p.unpaddedSize()-ipSize(&e.Outer[0]))
	p.TTL, p.DSCP = inner.ttl, inner.dscp
	if p.ECN != CE || inner.ecn == NotECT {
		p.ECN = inner.ecn
	}
	e.Outer = slices.Delete(e.Outer, 0, 1)
	e.inner = slices.Delete(e.inner, 0, 1)
}

// unlabel removes all labels; they are lost.
func (w *worker) unlabel(p *Packet) {
	if p.Extra != nil && len(p.Extra.Labels) > 0 {
		w.counts.LabelsLost += int64(len(p.Extra.Labels)-label.OptionSize) / label.ItemSize
		p.Size -= int32(len(p.Extra.Labels))
		p.Extra.Labels = p.Extra.Labels[:0]
	}
}

// Encapsulate adds an outer IP header to a packet that the host originates, for
// a switch whose address is the header's destination. It has a separate TTL;
// the packet's Payload must be right.
func (h *Host) Encapsulate(p *Packet, outer model.FlowKey) { h.w.wrap(p, outer) }

// Encapsulate is Host's, for a packet that the switch originates.
func (sw *Switch) Encapsulate(p *Packet, outer model.FlowKey) { sw.w.wrap(p, outer) }

// wrap is encapsulate with the protocol number of the inner header.
func (w *worker) wrap(p *Packet, outer model.FlowKey) {
	outer.Proto = model.IPIP
	if p.outermost().V6 {
		outer.Proto = model.IPv6
	}
	w.encapsulate(p, outer)
}

// unwrap removes the outer headers that are for the switch itself. It reports
// whether there is something to forward; the packet is then as if it had just
// arrived for another destination.
func (sw *Switch) unwrap(in *Port, p *Packet) bool {
	sw.w.decapsulate(p)
	if p.TTL <= 1 {
		sw.net.drop(p, in, DropTTL)
		return false
	}
	p.TTL--
	return true
}

// tunnelled reports whether the packet has an outer header.
func (p *Packet) tunnelled() bool { return p.Extra != nil && len(p.Extra.Outer) > 0 }

// header returns the IP header at a depth; 0 is the outermost.
func (p *Packet) header(depth int) innerHeader {
	if depth == 0 {
		return innerHeader{p.TTL, p.DSCP, p.ECN}
	}
	return p.Extra.inner[depth-1]
}

// InnerTTL returns the TTL of the innermost header: TTL, where there is no
// tunnel.
func (p *Packet) InnerTTL() uint8 { return p.header(p.depth()).ttl }

// unpaddedSize returns the packet's length without Ethernet's padding, which
// ends at every hop. RDMA has none: its headers are long enough.
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
