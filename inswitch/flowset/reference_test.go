package flowset

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// counters is what a plain map keeps of a flow.
type counters struct {
	packets, bytes uint64
	in, out        model.PortID // of the first packet
}

// reference keeps every flowset as a map of flows.
type reference struct {
	flows   map[name]map[model.FlowKey]*counters
	unkeyed map[name]uint32
}

func newReference() *reference {
	return &reference{map[name]map[model.FlowKey]*counters{}, map[name]uint32{}}
}

func (w *reference) count(at name, key model.FlowKey, size int32, in, out model.PortID) {
	if w.flows[at] == nil {
		w.flows[at] = map[model.FlowKey]*counters{}
	}
	c := w.flows[at][key]
	if c == nil {
		c = &counters{in: in, out: out}
		w.flows[at][key] = c
	}
	c.packets++
	c.bytes += uint64(size)
}

// check encodes the reference's flows slowly and compares with what a switch
// has exported.
func (w *reference) check(t tb, at name, f *flowset) {
	t.Helper()
	flows := w.flows[at]
	want := wire.Counts{Flows: uint32(len(flows)), Unkeyed: w.unkeyed[at]}
	cells := make([]wire.Cell, len(f.cells))
	fam, err := sketch.NewFamily(sketch.Geometry(f.Geometry), f.Seed)
	if err != nil {
		t.Fatalf("NewFamily: %v", err)
	}
	filter := sketch.NewFilter(fam.Geometry)
	for key, c := range flows {
		want.Packets += c.packets
		want.Bytes += c.bytes
		var h sketch.Hash
		if key.V6 {
			k := sketch.Pack6(&key)
			h = sketch.HashOf(&fam, &k)
		} else {
			k := sketch.Pack4(&key)
			h = sketch.HashOf(&fam, &k)
		}
		filter.Add(&fam, h)
		for table := range int(fam.Tables) {
			cell := &cells[fam.Cell(h, table)]
			for i, b := range key.AppendTo(nil) {
				cell.Key[i] ^= b
			}
			cell.Flows++
			cell.Packets += c.packets
			cell.Bytes += c.bytes
			if f.Layout.Ports > 0 {
				cell.InPort ^= c.in
				cell.OutPort ^= c.out
			}
		}
	}
	mf, mp, mb := f.Layout.Limits()
	for i := range cells {
		c := &cells[i]
		c.Flows, c.Packets, c.Bytes = min(c.Flows, mf), min(c.Packets, mp), min(c.Bytes, mb)
	}
	if f.Counts != want {
		t.Fatalf("flowset %+v counts %+v; want %+v", at, f.Counts, want)
	}
	if !slices.Equal(f.cells, cells) {
		t.Fatalf("flowset %+v has cells %v; want %v", at, f.cells, cells)
	}
	if !slices.Equal(f.filter, filter) {
		t.Fatalf("flowset %+v has filter %x; want %x", at, f.filter, filter)
	}
}

// TestProgramEqualsReference shows random packets to a program and to a map, and
// compares every flowset that the program exports with the map's flows.
func TestProgramEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := tiny()
		cfg.PerPort = rapid.Bool().Draw(t, "per port")
		cfg.Seed = rapid.Uint64().Draw(t, "seed")
		cfg.Bursts = rapid.IntRange(1, 20).Draw(t, "bursts")
		switch rapid.IntRange(0, 2).Draw(t, "cells") {
		case 1:
			cfg.IPv4.Layout = wire.Layout{Key: model.KeyLen4, Flows: 1, Packets: 1, Bytes: 1}
		case 2:
			cfg.IPv4.Layout, cfg.IPv6.Layout = NarrowLayout4, NarrowLayout6
		}
		switch rapid.IntRange(0, 5).Draw(t, "families") {
		case 0:
			cfg.IPv4 = Table{}
		case 1:
			cfg.IPv6 = Table{}
		}
		start := model.Time(rapid.Int64Range(-1e9, 1e9).Draw(t, "start"))
		r := newRig(t, cfg, start)
		w := newReference()
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "packets"), 0))
		first, _ := slotOf(start, cfg.Slot)
		for range rapid.IntRange(0, 400).Draw(t, "count") {
			r.until(r.now + model.Time(random.Int64N(int64(300*time.Microsecond))))
			in := model.PortID(1 + random.IntN(4))
			var key model.FlowKey
			switch random.IntN(8) {
			case 0: // ARP
			case 1, 2, 3:
				key = flow6(random.IntN(30))
			default:
				key = flow4(random.IntN(30))
			}
			r.keyID = 0
			if number := uint32(key.SrcPort)*2 + uint32(random.IntN(2)); random.IntN(2) == 0 && key.V6 {
				r.keyID = 1 + number
			} else if key.Src.Is4() {
				r.keyID = 1001 + number // some share slots with those
			}
			out := model.PortID(random.IntN(5))
			r.routes[key] = out // it moves all the time: the first packet decides
			if out == 0 {
				delete(r.routes, key)
			}
			size := int32(60 + random.IntN(9000))
			r.packet(in, key, size)

			at := name{v6: key.V6}
			at.slot, _ = slotOf(r.now, cfg.Slot)
			if cfg.PerPort {
				at.scope = in
			}
			keyed := key.V6 && cfg.IPv6.enabled() || key.Src.Is4() && cfg.IPv4.enabled()
			if keyed {
				w.count(at, key, size, in, out)
				continue
			}
			at.v6 = !cfg.IPv4.enabled()
			w.unkeyed[at]++
		}
		last, end := slotOf(r.now, cfg.Slot)
		r.until(end + model.Time(cfg.Slot) - 1)
		sets := r.collect()
		scopes, families := 1, 0
		if cfg.PerPort {
			scopes = 4
		}
		for _, used := range []bool{cfg.IPv4.enabled(), cfg.IPv6.enabled()} {
			if used {
				families++
			}
		}
		if want := int(last-first+1) * scopes * families; len(sets) != want {
			t.Fatalf("%d flowsets of slots %d to %d; want %d", len(sets), first, last, want)
		}
		for at, f := range sets {
			w.check(t, at, f)
			if f.Start != model.Time(int64(int32(at.slot)))*model.Time(cfg.Slot) || f.Length != cfg.Slot || f.Switch != 7 {
				t.Fatalf("flowset %+v is of switch %d and starts at %v for %v", at, f.Switch, f.Start, f.Length)
			}
		}
	})
}

// slotOf is the number of the slot that an instant is in, and its end.
func slotOf(now model.Time, length time.Duration) (number uint32, end model.Time) {
	n := int64(0)
	for model.Time(n)*model.Time(length) > now {
		n--
	}
	for model.Time(n+1)*model.Time(length) <= now {
		n++
	}
	return uint32(n), model.Time(n+1) * model.Time(length)
}
