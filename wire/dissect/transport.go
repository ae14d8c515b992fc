package dissect

import (
	"encoding/binary"
	"strings"

	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/probe"
	"github.com/weft-telemetry/weft/wire/roce"
)

func tcp(r *reader) step {
	var h packet.TCP
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("TCP", err)
	}
	fields := []Field{
		field("source port", 0, 2, "%d", h.SrcPort), field("destination port", 2, 2, "%d", h.DstPort),
		field("sequence", 4, 4, "%d", h.Seq), field("acknowledgment", 8, 4, "%d", h.Ack),
		field("flags", 12, 2, "%s", tcpFlags(h.Flags)),
		field("window", 14, 2, "%d", h.Window), field("checksum", 16, 2, "0x%04x", h.Checksum),
		field("urgent", 18, 2, "%d", h.Urgent),
	}
	if n > packet.TCPSize {
		fields = append(fields, field("options", packet.TCPSize, n-packet.TCPSize, "%x", h.Options))
	}
	r.addLayer("TCP", n, fields...)
	return stamp
}

func tcpFlags(f uint16) string {
	var set []string
	for i, name := range []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "NS"} {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return "none"
	}
	return strings.Join(set, " ")
}

func udp(r *reader) step {
	var h packet.UDP
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("UDP", err)
	}
	r.addLayer("UDP", n,
		field("source port", 0, 2, "%d", h.SrcPort), field("destination port", 2, 2, "%d", h.DstPort),
		field("length", 4, 2, "%d bytes", h.Length), field("checksum", 6, 2, "0x%04x", h.Checksum))
	switch h.DstPort {
	case packet.VXLANPort:
		return vxlan
	case roce.Port:
		return rocev2
	}
	return stamp
}

func icmp(r *reader) step {
	var h packet.ICMP
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("ICMP", err)
	}
	r.addLayer("ICMP", n,
		field("type", 0, 1, "%d", h.Type), field("code", 1, 1, "%d", h.Code), field("checksum", 2, 2, "0x%04x", h.Checksum),
		field("rest", 4, 4, "0x%08x", h.Rest))
	return stamp
}

func vxlan(r *reader) step {
	var h packet.VXLAN
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("VXLAN", err)
	}
	r.addLayer("VXLAN", n, field("flags", 0, 1, "0x%02x", h.Flags), field("VNI", 4, 3, "%d", h.VNI))
	return ethernet
}

func rocev2(r *reader) step {
	// A guided probe has a flow's ports, but none of its transport's headers.
	var s probe.Stamp
	if _, err := s.Parse(r.rest()); err == nil {
		return stamp
	}
	var h roce.BTH
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("BTH", err)
	}
	r.addLayer("BTH", n,
		field("opcode", 0, 1, "0x%02x (%s)", uint8(h.Opcode), h.Opcode), field("solicited event", 1, 1, "%t", h.Solicited),
		field("pad count", 1, 1, "%d bytes", h.PadCount),
		field("P_Key", 2, 2, "0x%04x", h.PKey), field("congestion", 4, 1, "%s", congestion(&h)),
		field("destination QP", 5, 3, "%d", h.DestQP),
		field("ACK request", 8, 1, "%t", h.AckReq), field("PSN", 9, 3, "%d", h.PSN))
	return roceExtension(h.Opcode)
}

func congestion(h *roce.BTH) string {
	switch {
	case h.BECN:
		return "BECN"
	case h.FECN:
		return "FECN"
	}
	return "none"
}

// roceExtension returns the step for the extension header of an opcode, or nil.
func roceExtension(o roce.Opcode) step {
	switch o {
	case roce.WriteFirst, roce.WriteOnly, roce.WriteOnlyImm, roce.ReadRequest:
		return reth
	case roce.Acknowledge, roce.AtomicAcknowledge, roce.ReadResponseFirst, roce.ReadResponseLast, roce.ReadResponseOnly:
		return aeth
	}
	return nil
}

func reth(r *reader) step {
	var h roce.RETH
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("RETH", err)
	}
	r.addLayer("RETH", n,
		field("virtual address", 0, 8, "0x%x", h.VA), field("R_Key", 8, 4, "0x%08x", h.RKey),
		field("DMA length", 12, 4, "%d bytes", h.Length))
	return nil
}

func aeth(r *reader) step {
	var h roce.AETH
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("AETH", err)
	}
	what := "other"
	switch {
	case h.Syndrome.IsAck():
		what = "ACK"
	case h.Syndrome.IsRNR():
		what = "RNR NAK, retry after " + h.Syndrome.Delay().String()
	case h.Syndrome == roce.NakSequence:
		what = "NAK, PSN sequence error"
	case h.Syndrome.IsNak():
		what = "NAK"
	}
	r.addLayer("AETH", n, field("syndrome", 0, 1, "0x%02x (%s)", uint8(h.Syndrome), what), field("MSN", 1, 3, "%d", h.MSN))
	return nil
}

// stamp is what a guided probe carries; any other payload is left alone.
func stamp(r *reader) step {
	var s probe.Stamp
	n, err := s.Parse(r.rest())
	if err != nil {
		return nil
	}
	r.addLayer("probe stamp", n,
		field("magic", 0, 4, "0x%08x", binary.BigEndian.Uint32(r.rest())), field("origin host", 4, 4, "%d", s.Origin),
		field("series", 8, 4, "%d", s.Series), field("number", 12, 4, "%d", s.Number))
	return nil
}
