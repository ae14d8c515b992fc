package api

import (
	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// addrResolver knows the addresses of nodes by name.
func addrResolver(f *topo.Fabric) func(string) (model.Addr, bool) {
	return func(name string) (model.Addr, bool) {
		id, ok := f.ByName(name)
		if !ok {
			return model.Addr{}, false
		}
		return f.Node(id).IPv4, true
	}
}

// nodeNames lists nodes as values of a text field.
func nodeNames(f *topo.Fabric, ids []model.NodeID) map[string]int64 {
	names := make(map[string]int64, len(ids))
	for _, id := range ids {
		names[f.Node(id).Name] = int64(id)
	}
	return names
}

// flowSchema is the fields of flow records: of the 5-tuple under the names that
// headers have, of the ends and the way by name, and of what was counted.
func flowSchema(f *topo.Fabric) *filter.Schema[record.FlowSlot] {
	hosts, switches := nodeNames(f, f.Hosts()), nodeNames(f, f.Switches())
	fields := keyFields(func(r *record.FlowSlot) *model.FlowKey { return &r.Flow })
	number := func(name string, typ filter.Type, about string, get func(*record.FlowSlot) filter.Value) {
		fields = append(fields, filter.Field[record.FlowSlot]{Name: name, Type: typ, About: about, Get: filter.SingleValue(get)})
	}
	number("flow.packets", filter.Int, "in the slot", func(r *record.FlowSlot) filter.Value { return filter.Value{Int: int64(r.Packets)} })
	number("flow.bytes", filter.Bytes, "in the slot", func(r *record.FlowSlot) filter.Value { return filter.Value{Int: int64(r.Bytes)} })
	number("flow.rate", filter.Rate, "in the slot", func(r *record.FlowSlot) filter.Value {
		return filter.Value{Int: int64(float64(r.Bytes) * 8 / max(r.Slot, 1).Seconds())}
	})
	number("flow.exact", filter.Bool, "every count was decoded, not estimated", func(r *record.FlowSlot) filter.Value { return filter.BoolValue(r.Exact) })
	number("flow.hops", filter.Int, "switches on its way", func(r *record.FlowSlot) filter.Value { return filter.IntValue(len(r.Path)) })
	fields = append(fields,
		textField("flow.src", "host that sends", hosts, func(r *record.FlowSlot, i int) (string, bool) { return r.Src, i == 0 && r.Src != "" }),
		textField("flow.dst", "host that receives", hosts, func(r *record.FlowSlot, i int) (string, bool) { return r.Dst, i == 0 && r.Dst != "" }),
		textField("flow.host", "host at either end", hosts, func(r *record.FlowSlot, i int) (string, bool) {
			if i == 0 {
				return r.Src, true
			}
			return r.Dst, i == 1
		}),
		textField("hop.switch", "a switch on its way", switches, func(r *record.FlowSlot, i int) (string, bool) {
			if i >= len(r.Path) {
				return "", false
			}
			return r.Path[i].Switch, true
		}),
	)
	return filter.NewSchema(fields, addrResolver(f))
}

func textField[T any](name, about string, known map[string]int64, get func(*T, int) (string, bool)) filter.Field[T] {
	return filter.Field[T]{Name: name, Type: filter.Text, About: about, Names: known, Get: func(r *T, i int) (filter.Value, bool) {
		s, ok := get(r, i)
		return filter.TextValue(s), ok
	}}
}

// keyFields are the fields of a 5-tuple.
func keyFields[T any](key func(*T) *model.FlowKey) (fields []filter.Field[T]) {
	protos := map[string]int64{}
	for _, p := range []model.Proto{model.ICMP, model.TCP, model.UDP, model.ICMPv6} {
		protos[p.String()] = int64(p)
	}
	// addSlot makes a field that only some keys have, with the values of get.
	add := func(name string, typ filter.Type, about string, has func(*model.FlowKey) bool, get ...func(*model.FlowKey) filter.Value) {
		f := filter.Field[T]{Name: name, Type: typ, About: about, Get: func(r *T, i int) (filter.Value, bool) {
			k := key(r)
			if i >= len(get) || !has(k) {
				return filter.Value{}, false
			}
			return get[i](k), true
		}}
		if name == "ip.proto" || name == "ipv6.nxt" {
			f.Names = protos
		}
		fields = append(fields, f)
	}
	yes := func(*model.FlowKey) filter.Value { return filter.BoolValue(true) }
	src := func(k *model.FlowKey) filter.Value { return filter.AddrValue(k.Src) }
	dst := func(k *model.FlowKey) filter.Value { return filter.AddrValue(k.Dst) }
	proto := func(k *model.FlowKey) filter.Value { return filter.IntValue(k.Proto) }
	for _, v := range []struct {
		name, proto string
		typ         filter.Type
		six         bool
	}{{"ip", "ip.proto", filter.IPv4, false}, {"ipv6", "ipv6.nxt", filter.IPv6, true}} {
		has := func(k *model.FlowKey) bool { return k.V6 == v.six }
		add(v.name, filter.Bool, "it is "+v.name, has, yes)
		add(v.name+".src", v.typ, "source", has, src)
		add(v.name+".dst", v.typ, "destination", has, dst)
		add(v.name+".addr", v.typ, "source or destination", has, src, dst)
		add(v.proto, filter.Int, "protocol", has, proto)
	}
	for _, p := range []model.Proto{model.TCP, model.UDP} {
		has := func(k *model.FlowKey) bool { return k.Proto == p }
		from := func(k *model.FlowKey) filter.Value { return filter.IntValue(k.SrcPort) }
		to := func(k *model.FlowKey) filter.Value { return filter.IntValue(k.DstPort) }
		add(p.String(), filter.Bool, "it is "+p.String(), has, yes)
		add(p.String()+".srcport", filter.Int, "source port", has, from)
		add(p.String()+".dstport", filter.Int, "destination port", has, to)
		add(p.String()+".port", filter.Int, "either port", has, from, to)
	}
	return fields
}

// traceView is a trace as filters see it, with its headers read. One serves
// many traces.
type traceView struct {
	*record.Trace
	frame headers.Frame
}

func (v *traceView) withTrace(t *record.Trace) *traceView {
	v.Trace = t
	v.frame.Read(t.Frame, len(t.Frame))
	return v
}

// traceSchema is the fields of kept traces: those of analyze/trace that a
// record has, under the same names.
func traceSchema(f *topo.Fabric) *filter.Schema[traceView] {
	switches := nodeNames(f, f.Switches())
	fields := headers.Fields(func(v *traceView) *headers.Frame { return &v.frame })
	one := func(name string, typ filter.Type, about string, get func(*record.Trace) filter.Value) {
		fields = append(fields, filter.Field[traceView]{Name: name, Type: typ, About: about, Get: filter.SingleValue(func(v *traceView) filter.Value { return get(v.Trace) })})
	}
	ends := map[string]int64{"unknown": 0, "arrived": 0, "short": 0, "looped": 0, "unsettled": 0}
	one("trace.drop", filter.Bool, "seen last where it should not end", func(t *record.Trace) filter.Value { return filter.BoolValue(t.End == "short") })
	one("trace.loop", filter.Bool, "passed a device twice", func(t *record.Trace) filter.Value { return filter.BoolValue(t.End == "looped") })
	one("trace.hops", filter.Int, "switches that saw it", func(t *record.Trace) filter.Value { return filter.IntValue(len(t.Hops)) })
	one("trace.lost", filter.Int, "mirrors that are missing for certain", func(t *record.Trace) filter.Value { return filter.IntValue(t.Lost) })
	one("trace.latency", filter.Duration, "from the first hop to the last, by their clocks", func(t *record.Trace) filter.Value { return filter.IntValue(t.Latency) })
	one("trace.why", filter.Text, "it was mirrored: flag, sample, debug, protocol, rule", func(t *record.Trace) filter.Value { return filter.TextValue(t.Why) })
	hop := func(name, about string, get func(*record.TraceHop) filter.Value) {
		fields = append(fields, filter.Field[traceView]{Name: name, Type: filter.Int, About: about, Get: func(v *traceView, i int) (filter.Value, bool) {
			if i >= len(v.Hops) {
				return filter.Value{}, false
			}
			return get(&v.Hops[i]), true
		}})
	}
	hop("hop.in", "port that it came by", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.In) })
	hop("hop.out", "port that it left by", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.Out) })
	hop("hop.ttl", "of the first header", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.TTL) })
	hop("hop.dscp", "of the first header", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.DSCP) })
	hop("hop.ecn", "of the first header, 3 is marked", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.ECN) })
	hop("hop.depth", "IP headers", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.Depth) })
	at := func(v *traceView, i int) (string, bool) {
		if i < 0 || i >= len(v.Hops) {
			return "", false
		}
		return v.Hops[i].Switch, true
	}
	fields = append(fields,
		textField("trace.end", "what became of the packet", ends, func(v *traceView, i int) (string, bool) { return v.End, i == 0 }),
		textField("trace.first", "switch that saw it first", switches, func(v *traceView, i int) (string, bool) { return at(v, -min(i, 1)) }),
		textField("trace.last", "switch that saw it last", switches, func(v *traceView, i int) (string, bool) {
			if i > 0 {
				return "", false
			}
			return at(v, len(v.Hops)-1)
		}),
		textField("hop.switch", "a switch that saw it", switches, at),
		filter.Field[traceView]{Name: "hop.latency", Type: filter.Duration, About: "from a switch to the next, by both clocks", Get: func(v *traceView, i int) (filter.Value, bool) {
			if i+1 >= len(v.Hops) {
				return filter.Value{}, false
			}
			return filter.IntValue(v.Hops[i+1].Time.Sub(v.Hops[i].Time)), true
		}},
	)
	return filter.NewSchema(fields, addrResolver(f))
}
