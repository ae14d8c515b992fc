// Package flowfields provides filters of flows with the fields of a flow's sums over
// a range: the 5-tuple under Wireshark's names, hosts and switches, counters, losses.
// A store that lists flows evaluates the same fields: see record.Condition.
// Manual: docs/filters.md.
package flowfields

import (
	"math"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Names are the names that a fabric has.
type Names struct {
	Hosts, Switches, Jobs map[string]int64
	Job                   func(*record.FlowSum) string // of a flow; empty without one
	Resolve               func(name string) (model.Addr, bool)
}

// Schema returns the fields of flows.
func Schema(n Names) *filter.Schema[record.FlowSum] {
	fields := keyFields()
	one := func(name string, typ filter.Type, about string, get func(*record.FlowSum) filter.Value) {
		fields = append(fields, filter.Field[record.FlowSum]{Name: name, Type: typ, About: about, Get: filter.SingleValue(get)})
	}
	one("flow.packets", filter.Int, "in the range", func(s *record.FlowSum) filter.Value { return countValue(s.Packets) })
	one("flow.bytes", filter.Bytes, "in the range", func(s *record.FlowSum) filter.Value { return countValue(s.Bytes) })
	one("flow.lost", filter.Int, "packets lost in the range",
		func(s *record.FlowSum) filter.Value { return countValue(s.Lost) })
	one("flow.lost_share", filter.Float, "lost packets as a share of its packets",
		func(s *record.FlowSum) filter.Value { return filter.Value{Float: s.LostShare()} })
	one("flow.rate", filter.Rate, "mean rate from its first to its last slot",
		func(s *record.FlowSum) filter.Value { return filter.Value{Int: truncate(s.Rate())} })
	one("flow.duration", filter.Duration, "from its first to its last slot",
		func(s *record.FlowSum) filter.Value { return filter.IntValue(s.Duration()) })
	one("flow.slots", filter.Int, "slots with packets", func(s *record.FlowSum) filter.Value { return countValue(s.Slots) })
	one("flow.exact", filter.Bool, "all counters were decoded exactly, not estimated",
		func(s *record.FlowSum) filter.Value { return filter.BoolValue(s.Exact) })
	one("flow.hops", filter.Int, "switches on its longest path",
		func(s *record.FlowSum) filter.Value { return filter.IntValue(s.Hops) })
	one("flow.paths", filter.Int, "different paths; more than 1: its path changed",
		func(s *record.FlowSum) filter.Value { return filter.IntValue(s.Paths) })
	text := func(name, about string, known map[string]int64, get func(*record.FlowSum, int) (string, bool)) {
		fields = append(fields, filter.Field[record.FlowSum]{
			Name: name, Type: filter.Text, About: about, Names: known,
			Get: func(s *record.FlowSum, i int) (filter.Value, bool) {
				t, ok := get(s, i)
				return filter.TextValue(t), ok
			},
		})
	}
	text("flow.src", "source host", n.Hosts,
		func(s *record.FlowSum, i int) (string, bool) { return s.Src, i == 0 && s.Src != "" })
	text("flow.dst", "destination host", n.Hosts,
		func(s *record.FlowSum, i int) (string, bool) { return s.Dst, i == 0 && s.Dst != "" })
	text("flow.host", "source or destination host", n.Hosts, func(s *record.FlowSum, i int) (string, bool) {
		if i == 0 {
			return s.Src, true
		}
		return s.Dst, i == 1
	})
	text("flow.job", "job that has both hosts", n.Jobs, func(s *record.FlowSum, i int) (string, bool) {
		if i > 0 || n.Job == nil {
			return "", false
		}
		name := n.Job(s)
		return name, name != ""
	})
	text("hop.switch", "a switch on its paths", n.Switches, func(s *record.FlowSum, i int) (string, bool) {
		if i >= len(s.Switches) {
			return "", false
		}
		return s.Switches[i], true
	})
	return filter.NewSchema(fields, n.Resolve)
}

// countValue is a count; a filter cannot name one above the largest int64.
func countValue(n uint64) filter.Value { return filter.Value{Int: int64(min(n, math.MaxInt64))} }

// truncate is the integer part of a rate.
func truncate(rate float64) int64 {
	if rate >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(rate)
}

// keyFields are the fields of a 5-tuple.
func keyFields() (fields []filter.Field[record.FlowSum]) {
	protos := map[string]int64{}
	for _, p := range []model.Proto{model.ICMP, model.TCP, model.UDP, model.ICMPv6} {
		protos[p.String()] = int64(p)
	}
	// add appends a field of the keys for which has is true, with the values of get.
	add := func(name string, typ filter.Type, about string, has func(*model.FlowKey) bool,
		get ...func(*model.FlowKey) filter.Value,
	) {
		f := filter.Field[record.FlowSum]{Name: name, Type: typ, About: about, Get: func(r *record.FlowSum, i int) (filter.Value, bool) {
			k := &r.Flow
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
		add(v.name, filter.Bool, "the packet is "+v.name, has, yes)
		add(v.name+".src", v.typ, "source", has, src)
		add(v.name+".dst", v.typ, "destination", has, dst)
		add(v.name+".addr", v.typ, "source or destination", has, src, dst)
		add(v.proto, filter.Int, "protocol", has, proto)
	}
	for _, p := range []model.Proto{model.TCP, model.UDP} {
		has := func(k *model.FlowKey) bool { return k.Proto == p }
		from := func(k *model.FlowKey) filter.Value { return filter.IntValue(k.SrcPort) }
		to := func(k *model.FlowKey) filter.Value { return filter.IntValue(k.DstPort) }
		add(p.String(), filter.Bool, "the packet is "+p.String(), has, yes)
		add(p.String()+".srcport", filter.Int, "source port", has, from)
		add(p.String()+".dstport", filter.Int, "destination port", has, to)
		add(p.String()+".port", filter.Int, "either port", has, from, to)
	}
	return fields
}
