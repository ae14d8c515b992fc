package dissect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

// isShort reports whether an error means truncated input, not malformed input.
func isShort(err error) bool {
	for _, short := range []error{packet.ErrShort, gre.ErrShort, label.ErrShort, roce.ErrShort} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

func ipv4(r *reader) step {
	var h packet.IPv4
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("IPv4", err)
	}
	switch {
	case h.Length == 0: // left to the card that segments it: the frame's end is the packet's
	case int(h.Length) < n:
		return r.stopAt("IPv4", packet.ErrHeader)
	default:
		r.endAt(int(h.Length))
	}
	sum := fmt.Sprintf("0x%04x (correct)", h.Checksum)
	if want := h.Sum(); want != h.Checksum {
		sum = fmt.Sprintf("0x%04x (incorrect, should be 0x%04x)", h.Checksum, want)
	}
	fields := []Field{
		field("DSCP", 1, 1, "%d", h.TOS>>2), field("ECN", 1, 1, "%s", ecnName(h.TOS&3)),
		field("length", 2, 2, "%d bytes", h.Length),
		field("identification", 4, 2, "%d", h.ID), field("flags", 6, 1, "%s", fragmentFlags(h.Flags)),
		field("fragment offset", 6, 2, "%d", int(h.FragOff)*8),
		field("TTL", 8, 1, "%d", h.TTL), field("protocol", 9, 1, "%s", protoName(h.Proto)),
		field("checksum", 10, 2, "%s", sum),
		field("source", 12, 4, "%s", model.Addr4(h.Src)), field("destination", 16, 4, "%s", model.Addr4(h.Dst)),
	}
	if n > packet.IPv4Size {
		fields = append(fields, field("options", packet.IPv4Size, n-packet.IPv4Size, "%x", h.Options))
	}
	r.addLayer("IPv4", n, fields...)
	if h.FragOff != 0 {
		return nil // the middle of something
	}
	return byProto(h.Proto)
}

func ipv6(r *reader) step {
	var h packet.IPv6
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("IPv6", err)
	}
	if h.Length != 0 {
		r.endAt(n + int(h.Length))
	}
	r.addLayer("IPv6", n,
		field("DSCP", 0, 2, "%d", h.TrafficClass>>2), field("ECN", 1, 1, "%s", ecnName(h.TrafficClass&3)),
		field("flow label", 1, 3, "0x%05x", h.FlowLabel),
		field("payload length", 4, 2, "%d bytes", h.Length), field("next header", 6, 1, "%s", protoName(h.NextHeader)),
		field("hop limit", 7, 1, "%d", h.HopLimit),
		field("source", 8, 16, "%s", h.Src), field("destination", 24, 16, "%s", h.Dst))
	return byProto(h.NextHeader)
}

// extensions are the headers between IPv6 and the transport. Their second byte
// gives their length: (its value + more) units of unit bytes.
var extensions = map[model.Proto]struct {
	name       string
	unit, more int
}{
	0: {"IPv6 hop-by-hop options", 8, 1}, 43: {"IPv6 routing", 8, 1}, 60: {"IPv6 destination options", 8, 1},
	51: {"IPsec authentication", 4, 2},
}

// fragmentHeader is the protocol number of IPv6's.
const fragmentHeader model.Proto = 44

func extension(p model.Proto) step {
	e := extensions[p]
	return func(r *reader) step {
		b := r.rest()
		if len(b) < 2 || len(b) < e.unit*(int(b[1])+e.more) {
			return r.stopAt(e.name, packet.ErrShort)
		}
		next := model.Proto(b[0])
		r.addLayer(e.name, e.unit*(int(b[1])+e.more), field("next header", 0, 1, "%s", protoName(next)))
		return byProto(next)
	}
}

func fragment(r *reader) step {
	b := r.rest()
	if len(b) < 8 {
		return r.stopAt("IPv6 fragment", packet.ErrShort)
	}
	next, at := model.Proto(b[0]), int(b[2])<<8|int(b[3]&^7)
	r.addLayer("IPv6 fragment", 8,
		field("next header", 0, 1, "%s", protoName(next)), field("fragment offset", 2, 2, "%d", at),
		field("more fragments", 3, 1, "%t", b[3]&1 != 0),
		field("identification", 4, 4, "0x%x", b[4:8]))
	if at != 0 {
		return nil
	}
	return byProto(next)
}

func byProto(p model.Proto) step {
	switch p {
	case model.TCP:
		return tcp
	case model.UDP:
		return udp
	case model.ICMP, model.ICMPv6:
		return icmp
	case model.IPIP:
		return ipv4
	case model.IPv6:
		return ipv6
	case model.GRE:
		return greHeader
	case label.Proto:
		return labels
	case fragmentHeader:
		return fragment
	}
	if _, ok := extensions[p]; ok {
		return extension(p)
	}
	return nil
}

func ecnName(ecn uint8) string {
	return [...]string{"0 (Not-ECT)", "1 (ECT(1))", "2 (ECT(0))", "3 (CE)"}[ecn&3]
}

func fragmentFlags(f uint8) string {
	var set []string
	if f&packet.DontFragment != 0 {
		set = append(set, "don't fragment")
	}
	if f&packet.MoreFragments != 0 {
		set = append(set, "more fragments")
	}
	if len(set) == 0 {
		return "none"
	}
	return strings.Join(set, ", ")
}

func greHeader(r *reader) step {
	var h gre.Header
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("GRE", err)
	}
	fields := []Field{field("protocol", 2, 2, "%s", etherName(h.Protocol))}
	at := gre.BaseSize
	if h.HasChecksum {
		fields = append(fields, field("checksum", at, 2, "0x%04x", h.Checksum))
		at += 4
	}
	if h.HasKey {
		fields = append(fields, field("key", at, 4, "0x%08x", h.Key))
		at += 4
	}
	if h.HasSeq {
		fields = append(fields, field("sequence", at, 4, "%d", h.Seq))
	}
	r.addLayer("GRE", n, fields...)
	return byEtherType(h.Protocol)
}

// labels reads an INT-label block: one layer for its option, one for each label.
func labels(r *reader) step {
	var block label.Block
	if _, err := block.Parse(r.rest()); err != nil {
		return r.stopAt("INT-label", err)
	}
	r.addLayer("INT-label", label.OptionSize,
		field("next header", 0, 1, "%s", protoName(block.NextHeader)), field("labels", 1, 1, "%d", block.Count()),
		field("max labels", 2, 1, "%d", block.MaxHop), field("label at every hop", 1, 1, "%t", block.Specific()))
	for i := range block.Len() {
		it := block.Item(i)
		r.addLayer(fmt.Sprintf("label %d", i+1), label.ItemSize,
			field("switch", 0, 4, "%d", it.Switch), field("ingress port", 4, 2, "%d", it.Ingress),
			field("egress port", 6, 2, "%d", it.Egress),
			field("timestamp", 8, 8, "%s", it.Time), field("latency", 16, 4, "%s", it.Latency),
			field("enqueue depth", 20, 4, "%s", it.EnqueueDepth), field("dequeue depth", 24, 4, "%s", it.DequeueDepth),
			field("queue", 28, 1, "%d", it.Queue), field("link utilization", 30, 2, "%.1f%%",
				float64(it.Utilisation)*100/0xffff))
	}
	return byProto(block.NextHeader)
}
