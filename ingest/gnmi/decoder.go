package gnmi

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/proto"

	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/reading"
	"github.com/weft-telemetry/weft/ingest/sai"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// decoder makes readings of SubscribeResponses. Several goroutines may use it: one for
// each target.
type decoder struct {
	out      source.Output
	names    *identity.Table
	nodes    map[model.NodeID]*node
	byTarget map[netip.AddrPort]model.NodeID
	targets  []target

	stats struct {
		updates, used            atomic.Uint64
		malformed, unknownTarget atomic.Uint64 // messages
		unknownPort, otherPath   atomic.Uint64 // updates
		badValue, clock          atomic.Uint64
	}
}

// node is the state of a switch, of ports of the topology alone.
type node struct {
	sw *source.Switch

	mu       sync.Mutex
	ports    []port // by number, from 1
	readings *reading.Tracker
	read     portstat.Reading
	counters portstat.Counters
}

type port struct {
	totals sai.Totals
	ticked bool // a round of counters has begun with this update
}

func newDecoder(f *source.Fabric, out source.Output) *decoder {
	d := &decoder{out: out, names: f.Identity, nodes: map[model.NodeID]*node{}, byTarget: map[netip.AddrPort]model.NodeID{}}
	for i := range f.Switches {
		sw := &f.Switches[i]
		d.nodes[sw.ID] = &node{
			sw: sw, ports: make([]port, sw.Ports+1),
			readings: reading.NewTracker(portstat.GNMI, func(p model.Port) model.Rate { return sw.Rate(p.Port) }),
		}
	}
	return d
}

// Decode is part of source.Decoder: data is a SubscribeResponse.
func (d *decoder) Decode(at model.Time, from netip.AddrPort, data []byte) bool {
	sw, known := d.byTarget[from]
	if !known {
		sw, known = d.names.NodeByAddr(from.Addr())
		known = known && d.nodes[sw].sw.SendsFrom(from.Addr().Unmap())
	}
	if !known {
		d.stats.unknownTarget.Add(1)
		return false
	}
	return d.decode(at, d.nodes[sw], data)
}

// decode makes readings of a message of a switch.
func (d *decoder) decode(at model.Time, n *node, data []byte) bool {
	var m gnmipb.SubscribeResponse
	if proto.Unmarshal(data, &m) != nil {
		d.stats.malformed.Add(1)
		return false
	}
	note := m.GetUpdate()
	if note == nil { // all values have been sent once
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	when := d.timeOf(at, note.GetTimestamp())
	used := false
	for _, u := range note.GetUpdate() {
		d.stats.updates.Add(1)
		if d.update(n, when, note.GetPrefix(), u) {
			d.stats.used.Add(1)
			used = true
		}
	}
	return used
}

// maxSkew is how far the clock of a switch may be off, with what a busy collector is
// late: within it the switch's own times stay in order.
const maxSkew = 30 * time.Second

// timeOf is when a switch read its counters: by its own clock, if that can be right.
func (d *decoder) timeOf(at model.Time, stamp int64) model.Time {
	own := model.Time(stamp)
	if stamp == 0 {
		return at
	}
	if own.Sub(at).Abs() > maxSkew {
		d.stats.clock.Add(1)
		return at
	}
	return own
}

// update takes one update and reports whether it was of use.
func (d *decoder) update(n *node, when model.Time, prefix *gnmipb.Path, u *gnmipb.Update) bool {
	var buffer [maxElements]element
	path, ok := flatten(buffer[:0], prefix, u.GetPath())
	if !ok || len(path) == 0 {
		d.stats.otherPath.Add(1)
		return false
	}
	v, ok := valueOf(u)
	if !ok {
		d.stats.badValue.Add(1)
		return false
	}
	x := extraction{d: d, n: n, when: when}
	switch path[0].name {
	case "COUNTERS", "PERIODIC_WATERMARKS":
		x.sonic(path, v)
	case "interfaces", "qos":
		x.openconfig(path, v)
	default:
		d.stats.otherPath.Add(1)
		return false
	}
	x.finish()
	if x.bad {
		d.stats.badValue.Add(1)
	}
	if x.unknown > 0 {
		d.stats.unknownPort.Add(x.unknown)
	}
	return x.used
}

// emit makes a reading of a port whose round of counters has come.
func (d *decoder) emit(n *node, id model.PortID, when model.Time) {
	p := &n.ports[id]
	p.totals.Counters(&n.counters)
	if n.readings.Add(model.Port{Node: n.sw.ID, Port: id}, when, &n.counters, &n.read) == reading.Made && d.out.Reading != nil {
		d.out.Reading(&n.read)
	}
}

// Counters is part of source.Decoder.
func (d *decoder) Counters() source.Counters {
	var r reading.Stats
	for _, n := range d.nodes {
		n.mu.Lock()
		for i, v := range n.readings.Stats() {
			r[i] += v
		}
		n.mu.Unlock()
	}
	s := &d.stats
	return source.Counters{Unit: "updates", In: s.updates.Load(), Out: s.used.Load(), Losses: []source.Loss{
		{Reason: "malformed", About: "messages", Count: s.malformed.Load()},
		{Reason: "unknown target", About: "messages", Count: s.unknownTarget.Load()},
		{Reason: "unknown port", About: "interfaces that the topology has not", Count: s.unknownPort.Load(), Expected: true},
		{Reason: "bad value", About: "updates whose value is not a number, or no JSON", Count: s.badValue.Load()},
		{Reason: "other path", About: "of no use here", Count: s.otherPath.Load(), Expected: true},
		{Reason: "late", About: "counters not newer than those before", Count: r[reading.Late]},
		{Reason: "reset", About: "counters of a switch that restarted, or was cleared", Count: r[reading.Reset]},
		{Reason: "implausible", About: "more than the link carries", Count: r[reading.Implausible]},
		{Reason: "clock", About: "times that disagree with this machine's clock", Count: s.clock.Load()},
	}}
}
