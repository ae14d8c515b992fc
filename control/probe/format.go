package probe

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// FormatError says what is wrong with a format, and where: the column counts
// from 1.
type FormatError struct {
	Column int
	Msg    string
}

func (e *FormatError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Msg) }

// ParseFormat reads what probes shall look like: conditions in the style of
// display filters, joined by &&, each of which sets a field. Fields of IP headers
// take lists, the outermost header first, and the innermost one is the probe's
// own:
//
//	ip.src == 10.0.0.2,10.1.0.2 && ip.dst == 10.0.9.1,10.3.0.2 && ip.proto == tcp && tcp.dstport == 80
//
// is a TCP packet from 10.1.0.2 to 10.3.0.2 in a tunnel from 10.0.0.2 to
// 10.0.9.1. A list of one value stands for all headers, but for ip.src and
// ip.dst. Every error is a *FormatError.
func ParseFormat(text string) (prober.Packet, error) {
	f := format{fields: map[string]field{}}
	for at := 0; at <= len(text); {
		end := strings.Index(text[at:], "&&")
		if end < 0 {
			end = len(text) - at
		}
		if err := f.condition(text[at:at+end], at); err != nil {
			return prober.Packet{}, err
		}
		at += end + 2
	}
	return f.packet()
}

type format struct {
	fields map[string]field
}

type field struct {
	at     int // of the first value
	values []string
}

// fieldNames are all fields; true for those of IP headers.
var fieldNames = map[string]bool{
	"ip.src": true, "ip.dst": true, "ip.ttl": true,
	"ip.proto": false, "ip.id": false, "ip.dscp": false, "ip.ecn": false,
	"tcp.srcport": false, "tcp.dstport": false, "tcp.flags": false, "tcp.seq": false, "tcp.ack": false,
	"udp.srcport": false, "udp.dstport": false, "data.len": false,
}

func at(column int, format string, args ...any) error {
	return &FormatError{Column: column + 1, Msg: fmt.Sprintf(format, args...)}
}

// condition reads "field == value,value" that begins at a column.
func (f *format) condition(text string, column int) error {
	name, list, ok := strings.Cut(text, "==")
	column += len(name) - len(strings.TrimLeft(name, " \t"))
	trimmed := strings.TrimSpace(name)
	multi, known := fieldNames[trimmed]
	switch {
	case !ok:
		return at(column, "%q, want a condition such as ip.dst == 10.0.0.2", strings.TrimSpace(text))
	case !known:
		return at(column, "field %q, want ip.src, ip.dst, ip.ttl, ip.proto, ip.id, ip.dscp, ip.ecn, a field of tcp or udp, or data.len", trimmed)
	case f.fields[trimmed].values != nil:
		return at(column, "%s again, want it once", trimmed)
	}
	start := column + len(strings.TrimLeft(name, " \t")) + 2
	one := field{at: start + len(list) - len(strings.TrimLeft(list, " \t"))}
	for _, v := range strings.Split(list, ",") {
		if v = strings.TrimSpace(v); v == "" {
			return at(one.at, "%s without a value, want one", trimmed)
		}
		one.values = append(one.values, v)
	}
	if !multi && len(one.values) > 1 {
		return at(one.at, "%d values of %s, want one: it is the innermost header's", len(one.values), trimmed)
	}
	f.fields[trimmed] = one
	return nil
}

// packet puts the fields together.
func (f *format) packet() (p prober.Packet, err error) {
	var src, dst []model.Addr
	if src, err = f.addrs("ip.src"); err != nil {
		return p, err
	}
	if dst, err = f.addrs("ip.dst"); err != nil {
		return p, err
	}
	if len(src) != len(dst) {
		return p, at(f.fields["ip.dst"].at, "%d destinations and %d sources, want as many", len(dst), len(src))
	}
	last := len(dst) - 1
	p.Key = model.FlowKey{Src: src[last], Dst: dst[last], V6: !dst[last].Is4(), Proto: model.UDP}
	for i := range last {
		p.Along = append(p.Along, prober.Header{Src: src[i], Dst: dst[i]})
	}
	if err := f.ttls(&p); err != nil {
		return p, err
	}
	if one, ok := f.fields["ip.proto"]; ok {
		if p.Key.Proto, err = model.ParseProto(one.values[0]); err != nil {
			return p, at(one.at, "protocol %q, want tcp, udp or a number", one.values[0])
		}
	} else if f.of("tcp.") {
		p.Key.Proto = model.TCP
	}
	for proto, prefix := range map[model.Proto]string{model.TCP: "tcp.", model.UDP: "udp."} {
		if p.Key.Proto != proto && f.of(prefix) {
			return p, at(f.first(prefix), "a field of %s in a packet of protocol %v, want that of its own", prefix[:3], p.Key.Proto)
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
		{"ip.dscp", 63, &dscp},
		{"ip.ecn", 3, &ecn},
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
			return p, at(one.at, "%s %q, want a number up to %d", n.name, one.values[0], n.most)
		}
	}
	p.IPID, p.DSCP, p.ECN, p.Payload = uint16(id), uint8(dscp), uint8(ecn), int(size)
	p.TCPFlags, p.Seq, p.Ack = packet.TCPFlags(flags), uint32(seq), uint32(ack)
	p.Key.SrcPort, p.Key.DstPort = uint16(sport), uint16(dport)
	if err := p.Check(); err != nil {
		return p, at(0, "%s", strings.TrimPrefix(err.Error(), "prober: "))
	}
	return p, nil
}

// of tells whether there is a field of a protocol.
func (f *format) of(prefix string) bool { return f.first(prefix) >= 0 }

// first is where the first value of a protocol's fields stands, -1 of none.
func (f *format) first(prefix string) int {
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
		return nil, at(0, "no %s, want one, or a list from the outermost header to the innermost", name)
	}
	for _, v := range one.values {
		a, err := netip.ParseAddr(v)
		if err != nil || a.Zone() != "" {
			return nil, at(one.at, "%s %q, want an address", name, v)
		}
		list = append(list, model.AddrOf(a))
	}
	return list, nil
}

func (f *format) ttls(p *prober.Packet) error {
	one, ok := f.fields["ip.ttl"]
	if !ok {
		return nil
	}
	if len(one.values) != 1 && len(one.values) != len(p.Along)+1 {
		return at(one.at, "%d TTLs of %d headers, want one for all or one each", len(one.values), len(p.Along)+1)
	}
	for i := range len(p.Along) + 1 {
		v := one.values[min(i, len(one.values)-1)]
		n, err := strconv.ParseUint(v, 0, 8)
		if err != nil || n == 0 {
			return at(one.at, "TTL %q, want 1 to 255", v)
		}
		if i < len(p.Along) {
			p.Along[i].TTL = uint8(n)
		} else {
			p.TTL = uint8(n)
		}
	}
	return nil
}
