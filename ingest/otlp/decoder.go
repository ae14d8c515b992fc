package otlp

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/reading"
	"github.com/weft-telemetry/weft/ingest/sai"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// decoder makes readings of requests. Several goroutines may use it.
type decoder struct {
	out      source.Output
	names    *identity.Table
	switches map[model.NodeID]*source.Switch
	shortest time.Duration

	mu       sync.Mutex
	ports    map[model.Port]*port
	readings *reading.Tracker
	read     portstat.Reading
	counters portstat.Counters
	stats    stats
}

type stats struct {
	points, used                     uint64
	malformed, denied, unknownSender uint64 // requests
	unknownPort, otherMetric, clock  uint64 // points
}

// port is the newest counters of a port.
type port struct {
	totals sai.Totals
	at     model.Time           // of the present round
	round  map[statKey]struct{} // counters that have come in it
	made   model.Time           // of the last reading
}

// statKey is a counter of an object of a port.
type statKey struct {
	object, stat uint32
	class        int
}

// maxRound bounds the counters of a port in a round: all that SAI numbers and Weft uses, for eight
// classes.
const maxRound = 256

func newDecoder(f *source.Fabric, out source.Output, shortest time.Duration) *decoder {
	d := &decoder{out: out, names: f.Identity, switches: map[model.NodeID]*source.Switch{}, shortest: shortest, ports: map[model.Port]*port{}}
	for i := range f.Switches {
		d.switches[f.Switches[i].ID] = &f.Switches[i]
	}
	d.readings = reading.NewTracker(portstat.OTLP, func(p model.Port) model.Rate { return d.switches[p.Node].Rate(p.Port) })
	return d
}

// Decode is part of source.Decoder: data is an ExportMetricsServiceRequest, which has the
// form of MetricsData.
func (d *decoder) Decode(at model.Time, from netip.AddrPort, data []byte) bool {
	var m metricspb.MetricsData
	err := proto.Unmarshal(data, &m)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.stats.malformed++
		return false
	}
	before := d.stats.used
	for _, r := range m.GetResourceMetrics() {
		sw, ok := d.sender(from.Addr().Unmap(), r.GetResource().GetAttributes())
		if !ok {
			continue
		}
		for _, scope := range r.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				d.metric(at, sw, metric)
			}
		}
	}
	return d.stats.used > before
}

// sender is the switch that metrics are of: by the address that they come from, because
// SONiC's exporter does not name itself; or by host.name, for exporters that share an
// address.
func (d *decoder) sender(from netip.Addr, attributes []*commonpb.KeyValue) (sw model.NodeID, ok bool) {
	name := ""
	for _, a := range attributes {
		if a.GetKey() == "host.name" {
			name = a.GetValue().GetStringValue()
		}
	}
	if sw, ok = d.names.NodeByName(name); !ok {
		sw, ok = d.names.NodeByAddr(from)
	}
	switch {
	case !ok:
		d.stats.unknownSender++
		d.refuse(from, translate.UnknownReporter)
	case !d.switches[sw].SendsFrom(from):
		d.stats.denied++
		d.refuse(from, translate.AddressNotAllowed)
		ok = false
	}
	return sw, ok
}

func (d *decoder) refuse(from netip.Addr, why translate.Refusal) {
	if d.out.Refused != nil {
		d.out.Refused(from, why, 0)
	}
}

// parseName splits sai_counter_type_T_stat_S.
func parseName(name string) (object, stat uint32, ok bool) {
	rest, found := strings.CutPrefix(name, "sai_counter_type_")
	t, s, split := strings.Cut(rest, "_stat_")
	if !found || !split {
		return 0, 0, false
	}
	a, errA := strconv.ParseUint(t, 10, 32)
	b, errB := strconv.ParseUint(s, 10, 32)
	return uint32(a), uint32(b), errA == nil && errB == nil
}

// metric takes the data points of a metric.
func (d *decoder) metric(at model.Time, sw model.NodeID, m *metricspb.Metric) {
	points := m.GetGauge().GetDataPoints()
	if points == nil {
		points = m.GetSum().GetDataPoints()
	}
	d.stats.points += uint64(len(points))
	object, stat, ok := parseName(m.GetName())
	if !ok {
		d.stats.otherMetric += uint64(len(points))
		return
	}
	for _, p := range points {
		d.point(at, sw, object, stat, p)
	}
}

// maxSkew is how far the clock of a switch may be off, with what a busy collector is
// late: within it the switch's own times stay in order.
const maxSkew = 30 * time.Second

// point takes one value.
func (d *decoder) point(at model.Time, sw model.NodeID, object, stat uint32, p *metricspb.NumberDataPoint) {
	name := ""
	for _, a := range p.GetAttributes() {
		if a.GetKey() == "object_name" {
			name = a.GetValue().GetStringValue()
		}
	}
	interfaceName, class, ofClass := sai.SplitObject(name)
	if object == sai.TypePort {
		interfaceName, class = name, 0
	} else if !ofClass {
		d.stats.unknownPort++
		return
	}
	id, known := d.names.PortByName(sw, interfaceName)
	v, valid := valueOf(p)
	switch {
	case !known:
		d.stats.unknownPort++
		return
	case !valid:
		d.stats.otherMetric++
		return
	}
	when := model.Time(p.GetTimeUnixNano())
	if p.GetTimeUnixNano() > math.MaxInt64 || when.Sub(at).Abs() > maxSkew {
		d.stats.clock++
		when = at
	}
	d.set(model.Port{Node: sw, Port: id}, when, statKey{object, stat, class}, v)
}

// set sets a counter of a port. One that comes a second time begins the next round, and
// what has come so far is a reading.
func (d *decoder) set(id model.Port, when model.Time, key statKey, v uint64) {
	p := d.ports[id]
	if p == nil {
		p = &port{round: map[statKey]struct{}{}}
		d.ports[id] = p
	}
	if _, again := p.round[key]; again || len(p.round) >= maxRound {
		d.endRound(id, p)
	}
	if !p.totals.SetByNumber(key.object, key.stat, key.class, v) {
		d.stats.otherMetric++
		return
	}
	p.round[key] = struct{}{}
	p.at = max(p.at, when)
	d.stats.used++
}

// endRound makes a reading of a port's counters, unless the last one is too recent.
func (d *decoder) endRound(id model.Port, p *port) {
	clear(p.round)
	if p.at.Sub(p.made) < d.shortest {
		return
	}
	p.made = p.at
	p.totals.Counters(&d.counters)
	if d.readings.Add(id, p.at, &d.counters, &d.read) == reading.Made && d.out.Reading != nil {
		d.out.Reading(&d.read)
	}
}

// valueOf is the value of a point; false for what is no counter.
func valueOf(p *metricspb.NumberDataPoint) (uint64, bool) {
	switch v := p.GetValue().(type) {
	case *metricspb.NumberDataPoint_AsInt:
		return uint64(v.AsInt), v.AsInt >= 0
	case *metricspb.NumberDataPoint_AsDouble:
		return uint64(v.AsDouble), v.AsDouble >= 0 && v.AsDouble < 1<<63
	}
	return 0, false
}

// Counters is part of source.Decoder.
func (d *decoder) Counters() source.Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, r := &d.stats, d.readings.Stats()
	return source.Counters{Unit: "points", In: s.points, Out: s.used, Losses: []source.Loss{
		{Reason: "malformed", About: "requests", Count: s.malformed},
		{Reason: translate.AddressNotAllowed.String(), About: "requests", Count: s.denied},
		{Reason: "unknown sender", About: "resources of no switch's address or name", Count: s.unknownSender},
		{Reason: "unknown port", About: "objects that the topology has not", Count: s.unknownPort, Expected: true},
		{Reason: "other metric", About: "of no use here", Count: s.otherMetric, Expected: true},
		{Reason: "late", About: "counters not newer than those before", Count: r[reading.Late]},
		{Reason: "reset", About: "counters of a switch that restarted, or was cleared", Count: r[reading.Reset]},
		{Reason: "implausible", About: "more than the link carries", Count: r[reading.Implausible]},
		{Reason: "clock", About: "times that disagree with this machine's clock", Count: s.clock},
	}}
}
