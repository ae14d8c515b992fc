// Package headers provides filters with the fields of packet headers, under
// Wireshark's names: ip.src, tcp.dstport, infiniband.bth.psn.
//
// A tunnelled packet has two sets of headers, the outer and the innermost. A
// plain name means either of them, as in Wireshark; with "outer." or "inner."
// before it, the outer, or the innermost of a tunnelled packet.
// Manual: docs/filters.md.
package headers

import (
	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Frame is a frame with its headers parsed. Read fills it in place, so one Frame
// serves many frames.
type Frame struct {
	packet.Packet
	Bytes  []byte // from the Ethernet header on; may be truncated
	Length int    // of the whole frame; 0: not known
}

// Read parses the headers of b, whose length before truncation is given. Fields
// that cannot be parsed have no value.
func (f *Frame) Read(b []byte, length int) {
	_ = f.Parse(b) // a frame that claims to be IP and is not has no IP fields
	f.Bytes, f.Length = b, length
}

// vni is the VXLAN network of the first tunnel.
func (f *Frame) vni() (uint32, bool) {
	var vx packet.VXLAN
	if f.Depth < 2 || f.Outer.Key.Proto != model.UDP || f.Outer.Key.DstPort != packet.VXLANPort ||
		int(f.Outer.Payload) > len(f.Bytes) {
		return 0, false
	}
	if _, err := vx.Parse(f.Bytes[f.Outer.Payload:]); err != nil {
		return 0, false
	}
	return vx.VNI, true
}

// header returns the i-th of the outer and innermost header, or nil.
func (f *Frame) header(i int) *packet.IP {
	switch {
	case i == 0 && f.Depth > 0:
		return &f.Outer
	case i == 1 && f.Depth > 1:
		return &f.Inner
	}
	return nil
}

// Schema returns the fields of a Frame alone. resolve may be nil.
func Schema(resolve func(name string) (model.Addr, bool)) *filter.Schema[Frame] {
	return filter.NewSchema(Fields(func(f *Frame) *Frame { return f }), resolve)
}

// Fields returns the fields for records that have a frame.
func Fields[T any](of func(r *T) *Frame) []filter.Field[T] {
	list := []filter.Field[T]{
		one(of, "frame.len", filter.Int, "length of the frame in bytes",
			func(f *Frame) (filter.Value, bool) { return filter.IntValue(f.Length), f.Length > 0 }),
		one(of, "eth.src", filter.MAC, "source MAC address: the previous hop", func(f *Frame) (filter.Value, bool) {
			return filter.MACValue(f.Src), len(f.Bytes) >= packet.EthernetSize
		}),
		one(of, "eth.dst", filter.MAC, "destination MAC address", func(f *Frame) (filter.Value, bool) {
			return filter.MACValue(f.Dst), len(f.Bytes) >= packet.EthernetSize
		}),
		one(of, "eth.type", filter.Int, "EtherType after VLAN tags", func(f *Frame) (filter.Value, bool) {
			return filter.IntValue(f.EtherType), len(f.Bytes) >= packet.EthernetSize
		}),
		one(of, "vlan.id", filter.Int, "VLAN ID of the outermost tag",
			func(f *Frame) (filter.Value, bool) { return filter.IntValue(f.VLAN.ID), f.Tags > 0 }),
		one(of, "vxlan.vni", filter.Int, "VXLAN network identifier",
			func(f *Frame) (filter.Value, bool) { v, ok := f.vni(); return filter.IntValue(v), ok }),
		one(of, "tunnel.depth", filter.Int, "number of IP headers",
			func(f *Frame) (filter.Value, bool) { return filter.IntValue(f.Depth), f.Depth > 0 }),
	}
	for _, d := range described() {
		for _, level := range levels {
			list = append(list, each(of, level, d))
		}
	}
	return list
}

func one[T any](of func(*T) *Frame, name string, t filter.Type, about string,
	get func(*Frame) (filter.Value, bool),
) filter.Field[T] {
	return filter.Field[T]{Name: name, Type: t, About: about, Get: func(r *T, i int) (filter.Value, bool) {
		if i > 0 {
			return filter.Value{}, false
		}
		return get(of(r))
	}}
}

// level is a selection of headers, and the prefix of their fields' names.
type level struct {
	prefix, about string
	from, to      int
}

var levels = []level{
	{"", "", 0, 2},
	{"outer.", ", outer header", 0, 1},
	{"inner.", ", innermost header of a tunnelled packet", 1, 2},
}

// describedField is a field of one header: its k-th value, if there is one.
type describedField struct {
	name  string
	typ   filter.Type
	about string
	names map[string]int64
	get   func(h *packet.IP, k int) (filter.Value, bool)
}

// each visits the headers of a level one after the other.
func each[T any](of func(*T) *Frame, l level, d describedField) filter.Field[T] {
	return filter.Field[T]{
		Name: l.prefix + d.name, Type: d.typ, About: d.about + l.about, Names: d.names,
		Get: func(r *T, i int) (filter.Value, bool) {
			f := of(r)
			for n := l.from; n < l.to; n++ {
				h := f.header(n)
				if h == nil {
					break
				}
				for k := 0; ; k++ {
					v, ok := d.get(h, k)
					if !ok {
						break
					}
					if i == 0 {
						return v, true
					}
					i--
				}
			}
			return filter.Value{}, false
		},
	}
}

// described returns the fields that every header has.
func described() []describedField {
	number := func(name, about string, has func(*packet.IP) bool, get func(*packet.IP) filter.Value) describedField {
		return describedField{name: name, typ: filter.Int, about: about, get: single(has, get)}
	}
	flag := func(name string, bit packet.TCPFlags) describedField {
		return describedField{
			name: "tcp.flags." + name, typ: filter.Bool, about: "TCP flag",
			get: single(isTCP, func(h *packet.IP) filter.Value { return filter.BoolValue(h.TCPFlags&bit != 0) }),
		}
	}
	there := func(name, about string, has func(*packet.IP) bool) describedField {
		return describedField{
			name: name, typ: filter.Bool, about: about,
			get: single(has, func(*packet.IP) filter.Value { return filter.BoolValue(true) }),
		}
	}
	list := []describedField{
		there("ip", "IPv4", is4), there("ipv6", "IPv6", is6), there("tcp", "TCP", isTCP),
		there("udp", "UDP", isUDP), there("icmp", "ICMP", isICMP), there("icmpv6", "ICMPv6",
			isICMPv6), there("infiniband", "RoCEv2", isRoCE),
	}
	for _, family := range []struct {
		name string
		typ  filter.Type
		has  func(*packet.IP) bool
	}{{"ip", filter.IPv4, is4}, {"ipv6", filter.IPv6, is6}} {
		list = append(
			list,
			describedField{
				name: family.name + ".src", typ: family.typ, about: "source address",
				get: single(family.has, func(h *packet.IP) filter.Value { return filter.AddrValue(h.Key.Src) }),
			},
			describedField{
				name: family.name + ".dst", typ: family.typ, about: "destination address",
				get: single(family.has, func(h *packet.IP) filter.Value { return filter.AddrValue(h.Key.Dst) }),
			},
			describedField{
				name: family.name + ".addr", typ: family.typ, about: "source or destination address",
				get: func(h *packet.IP, k int) (filter.Value, bool) {
					return filter.AddrValue([...]model.Addr{h.Key.Src, h.Key.Dst}[k&1]), k < 2 && family.has(h)
				},
			},
		)
	}
	list = append(
		list,
		describedField{
			name: "ip.proto", typ: filter.Int, about: "IP protocol", names: protocols,
			get: single(is4, protoOf),
		},
		describedField{
			name: "ipv6.nxt", typ: filter.Int, about: "protocol after extension headers", names: protocols,
			get: single(is6, protoOf),
		},
		number("ip.ttl", "time to live", is4, func(h *packet.IP) filter.Value { return filter.IntValue(h.TTL) }),
		number("ipv6.hlim", "hop limit", is6, func(h *packet.IP) filter.Value { return filter.IntValue(h.TTL) }),
		number("ip.id", "identification", is4, func(h *packet.IP) filter.Value { return filter.IntValue(h.ID) }),
		number("ip.len", "length of the IP packet in bytes", is4,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.Length) }),
		number("ip.dsfield.dscp", "DSCP", is4, func(h *packet.IP) filter.Value { return filter.IntValue(h.DSCP()) }),
		number("ip.dsfield.ecn", "ECN bits; 3: congestion experienced", is4,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.ECN()) }),
		number("ipv6.tclass.dscp", "DSCP", is6, func(h *packet.IP) filter.Value { return filter.IntValue(h.DSCP()) }),
		number("ipv6.tclass.ecn", "ECN bits; 3: congestion experienced", is6,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.ECN()) }),
	)
	for _, proto := range []struct {
		name string
		has  func(*packet.IP) bool
	}{{"tcp", isTCP}, {"udp", isUDP}} {
		ports := func(h *packet.IP) bool { return proto.has(h) && !h.Flags.Has(packet.NoPorts) }
		list = append(
			list,
			number(proto.name+".srcport", "source port", ports,
				func(h *packet.IP) filter.Value { return filter.IntValue(h.Key.SrcPort) }),
			number(proto.name+".dstport", "destination port", ports,
				func(h *packet.IP) filter.Value { return filter.IntValue(h.Key.DstPort) }),
			describedField{
				name: proto.name + ".port", typ: filter.Int, about: "source or destination port",
				get: func(h *packet.IP, k int) (filter.Value, bool) {
					return filter.IntValue([...]uint16{h.Key.SrcPort, h.Key.DstPort}[k&1]), k < 2 && ports(h)
				},
			},
		)
	}
	list = append(
		list,
		number("tcp.seq", "sequence number", isTCP, func(h *packet.IP) filter.Value { return filter.IntValue(h.Seq) }),
		number("tcp.flags", "TCP flags", isTCP, func(h *packet.IP) filter.Value { return filter.IntValue(h.TCPFlags) }),
		flag("fin", packet.FIN), flag("syn", packet.SYN), flag("reset", packet.RST), flag("push",
			packet.PSH), flag("ack", packet.ACK),
		number("icmp.type", "ICMP type", isICMP, func(h *packet.IP) filter.Value { return filter.IntValue(h.Type) }),
		number("icmp.code", "ICMP code", isICMP, func(h *packet.IP) filter.Value { return filter.IntValue(h.Code) }),
		number("icmpv6.type", "ICMPv6 type", isICMPv6,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.Type) }),
		number("icmpv6.code", "ICMPv6 code", isICMPv6,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.Code) }),
	)
	return append(
		list,
		number("infiniband.bth.opcode", "RoCEv2 opcode", isRoCE,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.Type) }),
		number("infiniband.bth.psn", "RoCEv2 packet sequence number", isRoCE,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.Seq) }),
		number("infiniband.bth.destqp", "RoCEv2 destination queue pair", isRoCE,
			func(h *packet.IP) filter.Value { return filter.IntValue(h.QP) }),
	)
}

// single returns a field's only value, if the header has the field.
func single(has func(*packet.IP) bool, get func(*packet.IP) filter.Value) func(*packet.IP, int) (filter.Value, bool) {
	return func(h *packet.IP, k int) (filter.Value, bool) {
		if k > 0 || !has(h) {
			return filter.Value{}, false
		}
		return get(h), true
	}
}

var protocols = map[string]int64{
	"icmp": int64(model.ICMP), "ipip": int64(model.IPIP), "tcp": int64(model.TCP), "udp": int64(model.UDP),
	"ipv6": int64(model.IPv6), "gre": int64(model.GRE), "icmpv6": int64(model.ICMPv6),
}

func protoOf(h *packet.IP) filter.Value { return filter.IntValue(h.Key.Proto) }

func is4(h *packet.IP) bool      { return !h.Key.V6 }
func is6(h *packet.IP) bool      { return h.Key.V6 }
func isTCP(h *packet.IP) bool    { return h.Key.Proto == model.TCP }
func isUDP(h *packet.IP) bool    { return h.Key.Proto == model.UDP }
func isICMP(h *packet.IP) bool   { return h.Key.Proto == model.ICMP }
func isICMPv6(h *packet.IP) bool { return h.Key.Proto == model.ICMPv6 }
func isRoCE(h *packet.IP) bool   { return h.Flags.Has(packet.RoCE) }
