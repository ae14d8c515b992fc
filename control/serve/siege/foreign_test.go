package siege

import (
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/intreport"
)

func (h *hostile) intNoise() []byte {
	b := intreport.Group{Node: uint32(h.node()), Seq: h.r.Uint32()}.AppendTo(nil)
	return append(b, h.bytes(h.r.IntN(200))...)
}

// intLie is a valid report of a real switch: packets that it dropped, queues that
// are full, at any time.
func (h *hostile) intLie() []byte {
	r := intreport.Report{Type: intreport.INT, Flags: intreport.Dropped | intreport.Congested | intreport.Tracked, Inner: intreport.InnerEthernet}
	r.Contents = h.frame(uint16(h.r.Uint32()), uint8(h.r.Uint32()))
	r.Metadata = intreport.Metadata{
		Bits:    intreport.BitPorts | intreport.BitQueue | intreport.BitIngressTime | intreport.BitHopLatency,
		Ingress: uint16(h.r.IntN(6)), Egress: uint16(h.r.IntN(6)), QueueDepth: uint32(h.number()) & 0xffffff,
		HopLatency: uint32(h.number()), IngressTime: uint64(h.time()),
	}
	if h.r.IntN(2) == 0 {
		r.IngressTime = uint64(h.clock.model())
	}
	return r.AppendTo(intreport.Group{Node: uint32(h.victimSwitch()), Seq: h.r.Uint32()}.AppendTo(nil))
}

func (h *hostile) erspanNoise() []byte {
	out := erspan.Mirror{Kind: erspan.TypeIII, GRE: gre.Header{HasSeq: true, Seq: h.r.Uint32()}, Timestamp: h.r.Uint32(), Frame: h.bytes(h.r.IntN(120))}
	if h.r.IntN(2) == 0 {
		out.Kind = erspan.TypeII
	}
	return out.AppendTo(nil)
}

// erspanLie is a mirror of a packet that goes round.
func (h *hostile) erspanLie() []byte {
	h.n++
	out := erspan.Mirror{
		Kind: erspan.TypeII, GRE: gre.Header{HasSeq: true, Seq: uint32(h.n)}, Session: uint16(h.r.IntN(4)), Index: uint32(h.r.IntN(8)),
		Frame: h.frame(uint16(h.n/8), uint8(63-h.n%8)),
	}
	return out.AppendTo(nil)
}
