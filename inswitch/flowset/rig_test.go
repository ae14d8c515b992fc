package flowset

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// rig is a host for one program: it keeps time and timers, and takes what the
// program reports.
type rig struct {
	t      tb
	p      *Program
	act    inswitch.Actions
	timers []timer
	now    model.Time
	routes map[model.FlowKey]model.PortID // of outer keys
	keyID  uint32                         // of the next packet
	out    [][]byte                       // chunks
	most   int                            // reports of one event
}

type timer struct {
	at model.Time
	id inswitch.TimerID
}

func newRig(t tb, cfg Config, start model.Time) *rig {
	t.Helper()
	p, err := New(inswitch.Device{ID: 7, MTU: 1500, Ports: make([]inswitch.Port, 4)}, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	r := &rig{t: t, p: p, now: start, routes: map[model.FlowKey]model.PortID{}}
	r.observe(&inswitch.Event{Stage: inswitch.Timer, Now: start, Timer: inswitch.StartTimer})
	return r
}

func (r *rig) Route(key *model.FlowKey) (model.PortID, bool) {
	out, ok := r.routes[*key]
	return out, ok
}

func (r *rig) Queue(model.PortID, model.Priority) inswitch.Queue { return inswitch.Queue{} }

func (r *rig) observe(ev *inswitch.Event) {
	ev.Switch = r
	r.act.Reset()
	r.p.Observe(ev, &r.act)
	for _, rep := range r.act.Reports {
		r.out = append(r.out, slices.Clone(rep.Data))
	}
	r.most = max(r.most, len(r.act.Reports))
	for _, w := range r.act.Timers {
		r.timers = append(r.timers, timer{ev.Now + model.Time(w.Delay), w.Timer})
	}
}

// until lets time pass and timers fire.
func (r *rig) until(now model.Time) {
	for {
		next := -1
		for i, t := range r.timers {
			if t.at <= now && (next < 0 || t.at < r.timers[next].at) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		t := r.timers[next]
		r.timers = slices.Delete(r.timers, next, next+1)
		r.now = max(r.now, t.at)
		r.observe(&inswitch.Event{Stage: inswitch.Timer, Now: r.now, Timer: t.id})
	}
	r.now = max(r.now, now)
}

// packet shows a packet of a flow.
func (r *rig) packet(in model.PortID, key model.FlowKey, size int32) {
	r.observe(&inswitch.Event{
		Stage: inswitch.Ingress, Now: r.now, In: in,
		Packet: &inswitch.Packet{Key: &key, Outer: &key, KeyID: r.keyID, Size: size},
	})
}

// name identifies an exported flowset.
type name struct {
	slot  uint32
	scope model.PortID
	v6    bool
}

// flowset is one that was put together again.
type flowset struct {
	wire.Header
	filter sketch.Filter
	cells  []wire.Cell
	units  [3]uint32 // that arrived, by section
}

// collect puts the chunks together.
func (r *rig) collect() map[name]*flowset {
	r.t.Helper()
	sets := map[name]*flowset{}
	for _, data := range r.out {
		var c wire.Chunk
		if n, err := c.Parse(data); err != nil || n != len(data) {
			r.t.Fatalf("Parse of a chunk = %d, %v; want all %d bytes", n, err, len(data))
		}
		at := name{c.Slot, c.Scope, c.Layout.Key == model.KeyLen6}
		f := sets[at]
		if f == nil {
			f = &flowset{Header: c.Header, filter: sketch.NewFilter(sketch.Geometry(c.Geometry)), cells: make([]wire.Cell, c.Units(wire.Cells))}
			sets[at] = f
		}
		if f.Header != c.Header {
			r.t.Fatalf("chunks of one flowset have headers %+v and %+v", f.Header, c.Header)
		}
		f.units[c.Section] += uint32(c.Len())
		if c.Section == wire.Filter {
			f.filter.SetBytes(c.First, c.Data)
			continue
		}
		for i := range c.Len() {
			c.Cell(i, &f.cells[c.First+uint32(i)])
		}
	}
	for at, f := range sets {
		if f.units[wire.Filter] != f.Units(wire.Filter) || f.units[wire.Cells] != f.Units(wire.Cells) {
			r.t.Fatalf("flowset %+v has %d bytes of filter and %d cells; want %d and %d", at, f.units[wire.Filter], f.units[wire.Cells], f.Units(wire.Filter), f.Units(wire.Cells))
		}
	}
	return sets
}

// tiny is a configuration whose filter takes no flow for another in tests.
func tiny() Config {
	g := sketch.Geometry{FilterHashes: 20, FilterBits: 1 << 14, Tables: 3, TableCells: 60}
	return Config{
		Slot: 10 * time.Millisecond, Bursts: 8, Seed: 42,
		IPv4: Table{g, Layout4}, IPv6: Table{g, Layout6},
	}
}

func flow4(i int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000002), SrcPort: uint16(i), DstPort: 80, Proto: model.TCP}
}

func flow6(i int) model.FlowKey {
	return model.FlowKey{Src: model.Addr{Hi: 0xfd << 56, Lo: 1}, Dst: model.Addr{Hi: 0xfd << 56, Lo: 2}, SrcPort: uint16(i), DstPort: 80, Proto: model.UDP, V6: true}
}

var _ tb = (*testing.T)(nil)
