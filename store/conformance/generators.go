package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Records are drawn from few values, so that they share flows, nodes, steps and
// times.

var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var times = rapid.Custom(func(t *rapid.T) time.Time {
	if rapid.IntRange(0, 19).Draw(t, "epoch") == 0 { // a run's clock, a device's offset
		return time.Unix(0, rapid.Int64Range(-1e11, 1e11).Draw(t, "ns")).UTC()
	}
	at := base.Add(time.Duration(rapid.IntRange(-400, 400).Draw(t, "s")) * time.Second)
	return at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 500_000_000, 999_999_999}).Draw(t, "ns")))
})

var (
	names = rapid.SampledFrom([]string{"e1", "e2", "a1", "h1", "H1", "é", "o'hara\"; --", "x:1"})
	flows = rapid.SampledFrom([]model.FlowKey{
		{},
		key4("10.0.0.2:40000", "10.0.1.2:80"),
		key4("10.0.1.2:80", "10.0.0.2:40000"),
		key4("[2001:db8::1]:1", "[2001:db8::2]:65535"),
		key4("[::ffff:10.0.0.2]:40000", "[::ffff:10.0.1.2]:80"),
	})
	bodies = rapid.SampledFrom([]string{"", "{}", `{"a": [1,  2], "b":"ü"}`, "null"})
)

func key4(src, dst string) model.FlowKey {
	return model.NewFlowKey(netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst), model.TCP)
}

func count(t *rapid.T, name string) uint64 {
	return rapid.OneOf(rapid.Uint64Range(0, 1<<20), rapid.SampledFrom([]uint64{1 << 63, math.MaxUint64})).Draw(t, name)
}

// small values have exact sums in any order.
func small(t *rapid.T, name string) uint64 { return rapid.Uint64Range(0, 1<<20).Draw(t, name) }

func port(t *rapid.T) model.PortID {
	return model.PortID(rapid.SampledFrom([]uint16{0, 1, 2, math.MaxUint16}).Draw(t, "port"))
}

func span(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, name))
}

var flowSlots = rapid.Custom(func(t *rapid.T) record.FlowSlot {
	return record.FlowSlot{
		Time: times.Draw(t, "time"), Slot: span(t, "slot"), Flow: flows.Draw(t, "flow"), Src: names.Draw(t, "src"), Dst: names.Draw(t, "dst"),
		Packets: count(t, "packets"), Bytes: count(t, "bytes"), Exact: rapid.Bool().Draw(t, "exact"), Samples: count(t, "samples"), Partial: rapid.Bool().Draw(t, "partial"),
		Path: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record.FlowHop {
			return record.FlowHop{Switch: names.Draw(t, "switch"), Packets: count(t, "packets")}
		}), 0, 4).Draw(t, "path"),
	}
})

var losses = rapid.Custom(func(t *rapid.T) record.Loss {
	return record.Loss{
		Time: times.Draw(t, "time"), Flow: flows.Draw(t, "flow"), From: names.Draw(t, "from"), To: names.Draw(t, "to"),
		Packets: count(t, "packets"), Sent: count(t, "sent"), Pattern: names.Draw(t, "pattern"),
	}
})

var portSamples = rapid.Custom(func(t *rapid.T) record.PortSample {
	return record.PortSample{
		Time: times.Draw(t, "time"), Node: names.Draw(t, "node"), Port: port(t), Queue: model.Bytes(small(t, "queue")), QueueMax: model.Bytes(small(t, "queue max")),
		Latency: span(t, "latency"), Load: model.Rate(small(t, "load")), Paused: float64(small(t, "paused")) / (1 << 20),
		Samples: rapid.Uint64Range(0, 3).Draw(t, "samples"),
	}
})

var traces = rapid.Custom(func(t *rapid.T) record.Trace {
	return record.Trace{
		Time: times.Draw(t, "time"), ID: count(t, "id"), Flow: flows.Draw(t, "flow"), End: names.Draw(t, "end"), Why: names.Draw(t, "why"),
		Latency: span(t, "latency"), LostMirrors: rapid.IntRange(0, 5).Draw(t, "lost"), Frame: rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "frame"),
		Hops: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record.TraceHop {
			return record.TraceHop{
				Time: times.Draw(t, "time"), Switch: names.Draw(t, "switch"), In: port(t), Out: port(t), TTL: rapid.Byte().Draw(t, "ttl"),
				DSCP: rapid.Byte().Draw(t, "dscp"), ECN: rapid.Byte().Draw(t, "ecn"), Depth: rapid.Byte().Draw(t, "depth"),
			}
		}), 0, 4).Draw(t, "hops"),
	}
})

var counters = rapid.Custom(func(t *rapid.T) record.Counter {
	return record.Counter{
		Time: times.Draw(t, "time"), Period: span(t, "period"), Name: names.Draw(t, "name"),
		Packets: small(t, "packets"), Bytes: small(t, "bytes"), Flows: float64(small(t, "flows")) / 16,
	}
})

var diagnoses = rapid.Custom(func(t *rapid.T) record.Diagnosis {
	return record.Diagnosis{
		Time: times.Draw(t, "time"), ID: names.Draw(t, "id"), Anomaly: names.Draw(t, "anomaly"), RootCause: names.Draw(t, "cause"),
		Initial: record.Port{Node: names.Draw(t, "node"), Port: port(t), Peer: names.Draw(t, "peer")}, Victim: flows.Draw(t, "victim"),
		Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"), Body: json.RawMessage(bodies.Draw(t, "body")),
	}
})

var incidents = rapid.Custom(func(t *rapid.T) record.Incident {
	r := record.Incident{
		ID: fmt.Sprint("i", rapid.IntRange(0, 9).Draw(t, "id")), Begin: times.Draw(t, "begin"), Updated: times.Draw(t, "updated"),
		Cause: names.Draw(t, "cause"), Severity: names.Draw(t, "severity"), Location: names.Draw(t, "location"), Summary: names.Draw(t, "summary"),
		Body: json.RawMessage(bodies.Draw(t, "body")),
	}
	if rapid.Bool().Draw(t, "ended") {
		r.End = times.Draw(t, "end")
	}
	return r
})

var batches = rapid.Custom(func(t *rapid.T) *record.Batch {
	const n = 12
	return &record.Batch{
		Flows:     rapid.SliceOfN(flowSlots, 0, n).Draw(t, "flows"),
		Losses:    rapid.SliceOfN(losses, 0, n).Draw(t, "losses"),
		Ports:     rapid.SliceOfN(portSamples, 0, n).Draw(t, "ports"),
		Traces:    rapid.SliceOfN(traces, 0, n).Draw(t, "traces"),
		Counters:  rapid.SliceOfN(counters, 0, n).Draw(t, "counters"),
		Diagnoses: rapid.SliceOfN(diagnoses, 0, n).Draw(t, "diagnoses"),
		Incidents: rapid.SliceOfN(incidents, 0, n).Draw(t, "incidents"),
	}
})

// ended adds endpoints to a query, mostly those of an existing flow.
func ended(t *rapid.T, q record.Query) record.Query {
	of, some := flows.Draw(t, "endpoints of"), rapid.IntRange(0, 2)
	if some.Draw(t, "source") == 0 {
		q.Ends.Src = of.Src
	}
	if some.Draw(t, "destination") == 0 {
		q.Ends.Dst = of.Dst
	}
	if some.Draw(t, "source port") == 0 {
		q.Ends.SrcPort = of.SrcPort
	}
	if some.Draw(t, "destination port") == 0 {
		q.Ends.DstPort = of.DstPort
	}
	return q
}

// queries draws a query of the fields that a kind has.
func queries(t *rapid.T, node, port, flow, step bool, name *rapid.Generator[string]) record.Query {
	var q record.Query
	some := func(label string) bool { return rapid.IntRange(0, 2).Draw(t, label) == 0 }
	if some("from") {
		q.From = times.Draw(t, "from")
	}
	if some("to") {
		q.To = times.Draw(t, "to")
	}
	if node && some("node") {
		q.Node = names.Draw(t, "node")
	}
	if port && some("port") {
		q.Port = model.PortID(rapid.SampledFrom([]uint16{1, 2, math.MaxUint16}).Draw(t, "port"))
	}
	if flow && some("flow") {
		q.Flow = flows.Draw(t, "flow")
	}
	if name != nil && some("name") {
		q.Name = name.Draw(t, "name")
	}
	if step && rapid.Bool().Draw(t, "rolled") {
		q.Step = rapid.SampledFrom([]time.Duration{1, time.Second, 1001 * time.Millisecond, 7 * time.Second, time.Minute, 61 * time.Second, time.Hour}).Draw(t, "step")
	}
	q.Limit = rapid.SampledFrom([]int{0, 1, 2, 3, 10, 1000}).Draw(t, "limit")
	return q
}
