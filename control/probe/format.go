package probe

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// ParseFormat parses the format of probes: conditions in the style of display
// filters, joined by &&, each of which sets a field. Fields of IP headers take
// lists, the outermost header first, the innermost one is that of the probe:
//
//	ip.src == 10.0.0.2,10.1.0.2 && ip.dst == 10.0.9.1,10.3.0.2 && ip.proto == tcp && tcp.dstport == 80
//
// is a TCP packet from 10.1.0.2 to 10.3.0.2 in a tunnel from 10.0.0.2 to
// 10.0.9.1. A list of one value stands for all headers, but for ip.src and
// ip.dst. Resolve, which may be nil, knows names of addresses. Every error is a
// *filter.Error.
func ParseFormat(text string, resolve func(name string) (model.Addr, bool)) (prober.Packet, error) {
	f := format{text: text, resolve: resolve, fields: map[string]field{}}
	for at := 0; at <= len(text); {
		end := strings.Index(text[at:], "&&")
		if end < 0 {
			end = len(text) - at
		}
		if err := f.parseCondition(text[at:at+end], at); err != nil {
			return prober.Packet{}, err
		}
		at += end + 2
	}
	return f.buildPacket()
}

type format struct {
	text    string
	resolve func(name string) (model.Addr, bool)
	fields  map[string]field
}

// field is the values of a field, and their position.
type field struct {
	at, end int
	values  []string
}

// fieldNames are all fields; true for those of IP headers.
var fieldNames = map[string]bool{
	"ip.src": true, "ip.dst": true, "ip.ttl": true,
	"ip.proto": false, "ip.id": false, "ip.dsfield.dscp": false, "ip.dsfield.ecn": false,
	"tcp.srcport": false, "tcp.dstport": false, "tcp.flags": false, "tcp.seq": false, "tcp.ack": false,
	"udp.srcport": false, "udp.dstport": false, "data.len": false,
}

// errorAt is an error at a part of the text: the problem, ", want ", and what is
// wanted.
func (f *format) errorAt(at, end int, format string, args ...any) error {
	problem, want, _ := strings.Cut(fmt.Sprintf(format, args...), ", want ")
	return &filter.Error{Text: f.text, At: at, End: max(at, end), Problem: problem, Want: want}
}

// fieldError is an error at the values of a field.
func (f *format) fieldError(of field, format string, args ...any) error {
	return f.errorAt(of.at, of.end, format, args...)
}

// parseCondition parses "field == value,value" that begins at a column.
func (f *format) parseCondition(text string, column int) error {
	name, list, ok := strings.Cut(text, "==")
	begin := column + len(name) - len(strings.TrimLeft(name, " \t"))
	name = strings.TrimSpace(name)
	end := begin + len(name)
	multi, known := fieldNames[name]
	switch {
	case !ok:
		return f.errorAt(begin, end, "%q, want a condition such as ip.dst == 10.0.0.2", name)
	case !known:
		return f.errorAt(begin, end, "unknown field %q, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(fieldNames)), ", "))
	case f.fields[name].values != nil:
		return f.errorAt(begin, end, "%s again, want it once", name)
	}
	one := field{at: column + len(text) - len(strings.TrimLeft(list, " \t")), end: column + len(strings.TrimRight(text, " \t"))}
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v == "" {
			return f.fieldError(one, "%s without a value, want one", name)
		}
		one.values = append(one.values, v)
	}
	if !multi && len(one.values) > 1 {
		return f.fieldError(one, "%d values of %s, want one: it is the innermost header's", len(one.values), name)
	}
	f.fields[name] = one
	return nil
}

// buildPacket puts the fields together.
func (f *format) buildPacket() (p prober.Packet, err error) {
	var src, dst []model.Addr
	if src, err = f.addrs("ip.src"); err != nil {
		return p, err
	}
	if dst, err = f.addrs("ip.dst"); err != nil {
		return p, err
	}
	if len(src) != len(dst) {
		return p, f.fieldError(f.fields["ip.dst"], "%d destinations and %d sources, want as many", len(dst), len(src))
	}
	last := len(dst) - 1
	p.Key = model.FlowKey{Src: src[last], Dst: dst[last], V6: !dst[last].Is4(), Proto: model.UDP}
	for i := range last {
		p.Tunnels = append(p.Tunnels, prober.Tunnel{Src: src[i], Dst: dst[i]})
	}
	if err := f.ttls(&p); err != nil {
		return p, err
	}
	if one, ok := f.fields["ip.proto"]; ok {
		if p.Key.Proto, err = model.ParseProto(one.values[0]); err != nil {
			return p, f.fieldError(one, "protocol %q, want tcp, udp or a number", one.values[0])
		}
	} else if f.hasPrefix("tcp.") {
		p.Key.Proto = model.TCP
	}
	for proto, prefix := range map[model.Proto]string{model.TCP: "tcp.", model.UDP: "udp."} {
		if p.Key.Proto != proto && f.hasPrefix(prefix) {
			return p, f.errorAt(f.firstWithPrefix(prefix), f.firstWithPrefix(prefix), "a field of %s in a packet of protocol %v, want that of its own", prefix[:3], p.Key.Proto)
		}
	}
	var flags, dscp, ecn, size, id uint64
	var seq, ack, sport, dport uint64
	for _, n := range []struct {
		name string
		most uint64
		into *uint64
	}{
		{"ip.id", 1<<16 - 1, &id},
		{"ip.dsfield.dscp", 63, &dscp},
		{"ip.dsfield.ecn", 3, &ecn},
		{"tcp.flags", 255, &flags},
		{"tcp.seq", 1<<32 - 1, &seq},
		{"tcp.ack", 1<<32 - 1, &ack},
		{"tcp.srcport", 1<<16 - 1, &sport},
		{"udp.srcport", 1<<16 - 1, &sport},
		{"tcp.dstport", 1<<16 - 1, &dport},
		{"udp.dstport", 1<<16 - 1, &dport},
		{"data.len", 1 << 16, &size},
	} {
		one, ok := f.fields[n.name]
		if !ok {
			continue
		}
		if *n.into, err = strconv.ParseUint(one.values[0], 0, 64); err != nil || *n.into > n.most {
			return p, f.fieldError(one, "%s %q, want a number up to %d", n.name, one.values[0], n.most)
		}
	}
	p.IPID, p.DSCP, p.ECN, p.Payload = uint16(id), uint8(dscp), uint8(ecn), int(size)
	p.TCPFlags, p.Seq, p.Ack = packet.TCPFlags(flags), uint32(seq), uint32(ack)
	p.Key.SrcPort, p.Key.DstPort = uint16(sport), uint16(dport)
	if err := p.Check(); err != nil {
		return p, f.errorAt(0, len(f.text), "%s", strings.TrimPrefix(err.Error(), "prober: "))
	}
	return p, nil
}

// hasPrefix reports whether there is a field of a protocol.
func (f *format) hasPrefix(prefix string) bool { return f.firstWithPrefix(prefix) >= 0 }

// firstWithPrefix is the position of the first value of a protocol's fields, or -1.
func (f *format) firstWithPrefix(prefix string) int {
	first := -1
	for name, one := range f.fields {
		if strings.HasPrefix(name, prefix) && (first < 0 || one.at < first) {
			first = one.at
		}
	}
	return first
}

func (f *format) addrs(name string) (list []model.Addr, err error) {
	one, ok := f.fields[name]
	if !ok {
		return nil, f.errorAt(0, 0, "no %s, want one, or a list from the outermost header to the innermost", name)
	}
	for _, v := range one.values {
		if a, err := netip.ParseAddr(v); err == nil && a.Zone() == "" {
			list = append(list, model.AddrOf(a))
		} else if a, ok := f.named(v); ok {
			list = append(list, a)
		} else {
			return nil, f.fieldError(one, "%s %q, want an address or the name of a node", name, v)
		}
	}
	return list, nil
}

func (f *format) named(name string) (model.Addr, bool) {
	if f.resolve == nil {
		return model.Addr{}, false
	}
	return f.resolve(name)
}

func (f *format) ttls(p *prober.Packet) error {
	one, ok := f.fields["ip.ttl"]
	if !ok {
		return nil
	}
	if len(one.values) != 1 && len(one.values) != len(p.Tunnels)+1 {
		return f.fieldError(one, "%d TTLs of %d headers, want one for all or one each", len(one.values), len(p.Tunnels)+1)
	}
	for i := range len(p.Tunnels) + 1 {
		v := one.values[min(i, len(one.values)-1)]
		n, err := strconv.ParseUint(v, 0, 8)
		if err != nil || n == 0 {
			return f.fieldError(one, "TTL %q, want 1 to 255", v)
		}
		if i < len(p.Tunnels) {
			p.Tunnels[i].TTL = uint8(n)
		} else {
			p.TTL = uint8(n)
		}
	}
	return nil
}
