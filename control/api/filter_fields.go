package api

import (
	"maps"
	"strings"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/flowfields"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// addrResolver returns a function that finds the address of a node by name.
func addrResolver(f *topo.Fabric) func(string) (model.Addr, bool) {
	return func(name string) (model.Addr, bool) {
		id, ok := f.ByName(name)
		if !ok {
			return model.Addr{}, false
		}
		return f.Node(id).IPv4, true
	}
}

// nodeNames returns the names of nodes as the values of a text field.
func nodeNames(f *topo.Fabric, ids []model.NodeID) map[string]int64 {
	names := make(map[string]int64, len(ids))
	for _, id := range ids {
		names[f.Node(id).Name] = int64(id)
	}
	return names
}

// interfaceNumbers returns the port numbers of interface names that mean the same
// number on every switch; a filter can name these ports.
func interfaceNumbers(f *topo.Fabric) map[string]int64 {
	numbers := map[string]int64{}
	ambiguous := map[string]bool{}
	for _, id := range f.Switches() {
		for _, p := range f.Node(id).Ports {
			if n, known := numbers[p.Name]; known && n != int64(p.ID) {
				ambiguous[p.Name] = true
			}
			numbers[p.Name] = int64(p.ID)
		}
	}
	maps.DeleteFunc(numbers, func(name string, _ int64) bool { return ambiguous[name] })
	return numbers
}

// flowSchema has the filter fields of flows.
func flowSchema(f *topo.Fabric, jobs []record.Job) *filter.Schema[record.FlowSum] {
	names := make(map[string]int64, len(jobs))
	for i := range jobs {
		names[jobs[i].Name] = int64(i)
	}
	return flowfields.Schema(flowfields.Names{
		Hosts: nodeNames(f, f.Hosts()), Switches: nodeNames(f, f.Switches()), Jobs: names,
		Job: func(s *record.FlowSum) string { return jobOf(jobs, s) }, Resolve: addrResolver(f),
	})
}

// jobOf returns the name of a flow's job, empty without one.
func jobOf(jobs []record.Job, s *record.FlowSum) string {
	for i := range jobs {
		if jobs[i].Has(s.Src, s.Flow.Src) && jobs[i].Has(s.Dst, s.Flow.Dst) {
			return jobs[i].Name
		}
	}
	return ""
}

func textField[T any](name, about string, known map[string]int64, get func(*T, int) (string, bool)) filter.Field[T] {
	return filter.Field[T]{
		Name: name, Type: filter.Text, About: about, Names: known,
		Get: func(r *T, i int) (filter.Value, bool) {
			s, ok := get(r, i)
			return filter.TextValue(s), ok
		},
	}
}

// traceView is a trace with decoded headers, as filters see it. It is reusable.
type traceView struct {
	*record.Trace
	frame headers.Frame
}

func (v *traceView) withTrace(t *record.Trace) *traceView {
	v.Trace = t
	v.frame.Read(t.Frame, len(t.Frame))
	return v
}

// traceSchema has the filter fields of stored traces: those of analyze/trace that
// a record contains, under the same names.
func traceSchema(f *topo.Fabric) *filter.Schema[traceView] {
	switches := nodeNames(f, f.Switches())
	fields := headers.Fields(func(v *traceView) *headers.Frame { return &v.frame })
	one := func(name string, typ filter.Type, about string, get func(*record.Trace) filter.Value) {
		fields = append(fields, filter.Field[traceView]{
			Name: name, Type: typ, About: about,
			Get: filter.SingleValue(func(v *traceView) filter.Value { return get(v.Trace) }),
		})
	}
	ends := map[string]int64{"unknown": 0, "arrived": 0, "lost": 0, "looped": 0, "unsettled": 0}
	one("trace.drop", filter.Bool, "last seen before the destination",
		func(t *record.Trace) filter.Value { return filter.BoolValue(t.End == "lost") })
	one("trace.loop", filter.Bool, "visited a switch twice",
		func(t *record.Trace) filter.Value { return filter.BoolValue(t.End == "looped") })
	one("trace.hops", filter.Int, "switches that mirrored it",
		func(t *record.Trace) filter.Value { return filter.IntValue(len(t.Hops)) })
	one("trace.lost", filter.Int, "mirrors known to be missing",
		func(t *record.Trace) filter.Value { return filter.IntValue(t.LostMirrors) })
	one("trace.latency", filter.Duration, "from first to last hop, by their clocks",
		func(t *record.Trace) filter.Value { return filter.IntValue(t.Latency) })
	one("trace.why", filter.Text, "reason for mirroring: flag, sample, debug, protocol, rule",
		func(t *record.Trace) filter.Value { return filter.TextValue(t.Why) })
	interfaces := interfaceNumbers(f)
	one("trace.debug", filter.Bool, "marked by its sender", func(t *record.Trace) filter.Value {
		return filter.BoolValue(strings.Contains(t.Why, "debug"))
	})
	one("trace.protocol", filter.Bool, "of a network protocol: BGP, PFC, RDMA control",
		func(t *record.Trace) filter.Value {
			return filter.BoolValue(strings.Contains(t.Why, "protocol"))
		})
	hop := func(name, about string, get func(*record.TraceHop) filter.Value) {
		field := filter.Field[traceView]{
			Name: name, Type: filter.Int, About: about,
			Get: func(v *traceView, i int) (filter.Value, bool) {
				if i >= len(v.Hops) {
					return filter.Value{}, false
				}
				return get(&v.Hops[i]), true
			},
		}
		if name == "hop.in" || name == "hop.out" {
			field.Names = interfaces
		}
		fields = append(fields, field)
	}
	hop("hop.in", "ingress port, by number or interface name",
		func(h *record.TraceHop) filter.Value { return filter.IntValue(h.In) })
	hop("hop.out", "egress port, by number or interface name",
		func(h *record.TraceHop) filter.Value { return filter.IntValue(h.Out) })
	hop("hop.ttl", "outermost IP header", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.TTL) })
	hop("hop.dscp", "outermost IP header", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.DSCP) })
	hop("hop.ecn", "outermost IP header, 3 is CE", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.ECN) })
	hop("hop.depth", "number of IP headers", func(h *record.TraceHop) filter.Value { return filter.IntValue(h.Depth) })
	at := func(v *traceView, i int) (string, bool) {
		if i < 0 || i >= len(v.Hops) {
			return "", false
		}
		return v.Hops[i].Switch, true
	}
	fields = append(fields,
		textField("trace.end", "how the trace ended", ends,
			func(v *traceView, i int) (string, bool) { return v.End, i == 0 }),
		textField("trace.first", "first switch", switches,
			func(v *traceView, i int) (string, bool) { return at(v, -min(i, 1)) }),
		textField("trace.last", "last switch", switches, func(v *traceView, i int) (string, bool) {
			if i > 0 {
				return "", false
			}
			return at(v, len(v.Hops)-1)
		}),
		textField("hop.switch", "a switch on the path", switches, at),
		filter.Field[traceView]{
			Name: "hop.latency", Type: filter.Duration,
			About: "from one switch to the next, by their clocks", Get: func(v *traceView, i int) (filter.Value, bool) {
				if i+1 >= len(v.Hops) {
					return filter.Value{}, false
				}
				return filter.IntValue(v.Hops[i+1].Time.Sub(v.Hops[i].Time)), true
			},
		},
	)
	return filter.NewSchema(fields, addrResolver(f))
}
