package flowset

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/probe"
)

const ms = model.Time(time.Millisecond)

// TestExportIsSpread checks when reports are made: never more than a burst's
// at once, over most of the slot, each to the switch's list and short enough
// for a standard frame.
func TestExportIsSpread(t *testing.T) {
	cfg := DefaultConfig()
	cfg.List = 1007
	r := newRig(t, cfg, 0)
	r.until(10 * ms)
	var first, last model.Time
	for at := 10 * ms; at < 20*ms; at += model.Time(time.Microsecond) {
		before := len(r.out)
		r.until(at)
		if len(r.out) > before {
			if first == 0 {
				first = at
			}
			last = at
		}
	}
	chunks := len(r.out)
	if want := (chunks + cfg.Bursts - 1) / cfg.Bursts; r.most != want {
		t.Errorf("at most %d of %d reports at once; want %d in %d bursts", r.most, chunks, want, cfg.Bursts)
	}
	if first > 10*ms+ms/2 || last < 17*ms || last > 18*ms {
		t.Errorf("reports from %v to %v; want the first at 10 ms and the last just before 18 ms", first, last)
	}
	for _, rep := range r.act.Reports {
		if rep.Primitive != dta.Append || rep.List != 1007 || dta.HeaderSize+rep.Size() > 1500-48 {
			t.Errorf("report %d of %d bytes to list %d; want Append of at most %d to 1007", rep.Primitive, rep.Size(), rep.List, 1500-48-dta.HeaderSize)
		}
	}
	if got := len(r.collect()); got != 2 {
		t.Errorf("%d flowsets in the export; want 2, one per family", got)
	}
}

// TestLateExportIsCounted holds back the host's timers, so that a slot ends
// before the export of the one before: packets find no table, and are counted
// as missed in the next flowset that there is.
func TestLateExportIsCounted(t *testing.T) {
	r := newRig(t, tiny(), 0)
	seen := uint64(0)
	packet := func(at model.Time, keys ...model.FlowKey) {
		r.now = at
		for _, k := range keys {
			r.packet(1, k, 100)
			seen++
		}
	}
	packet(1*ms, flow4(1), flow4(2))
	packet(11*ms, flow4(3))                  // slot 1; slot 0 is to be exported, but no timer fires
	packet(21*ms, flow4(4), flow6(4))        // slot 2 has no table
	packet(31*ms, flow4(5), model.FlowKey{}) // nor has slot 3
	r.until(33 * ms)                         // late timers: one burst each, then time passes
	packet(39*ms, flow4(6), flow6(6))
	r.until(70*ms - 1)
	var total wire.Counts
	sets := r.collect()
	for _, f := range sets {
		total.Packets += f.Counts.Packets
		total.Unkeyed += f.Counts.Unkeyed
		total.Missed += f.Counts.Missed
	}
	if got := total.Packets + uint64(total.Unkeyed) + uint64(total.Missed); got != seen || total.Missed == 0 {
		t.Errorf("counted %d, unkeyed %d, missed %d; want %d in all, some missed", total.Packets, total.Unkeyed, total.Missed, seen)
	}
	for slot, want := range map[uint32]uint64{0: 2, 1: 1} {
		if f := sets[name{slot: slot}]; f == nil || f.Counts.Packets != want {
			t.Errorf("flowset of slot %d: %+v; want %d packets", slot, f, want)
		}
	}
	if f := sets[name{slot: 2}]; f != nil {
		t.Errorf("slot 2 had no table and was exported: %+v", f.Counts)
	}
}

// TestClockSteps moves the switch's clock: a step ahead leaves a gap in slot
// numbers, a step back neither repeats nor reorders them.
func TestClockSteps(t *testing.T) {
	r := newRig(t, tiny(), 5*ms)
	r.packet(1, flow4(1), 100)
	r.now = 1005 * ms // step ahead
	r.packet(1, flow4(2), 100)
	r.until(1009 * ms)
	r.observe(&inswitch.Event{Stage: inswitch.Timer, Now: 300 * ms, Timer: tick}) // step back
	ev := inswitch.Event{Stage: inswitch.Ingress, Now: 300 * ms, In: 1, Packet: &inswitch.Packet{}}
	key := flow4(3)
	ev.Packet.Key, ev.Packet.Outer = &key, &key
	r.observe(&ev)
	r.until(1020*ms - 1)
	sets := r.collect()
	if a, b := sets[name{slot: 0}], sets[name{slot: 100}]; a == nil || b == nil || a.Counts.Flows != 1 || b.Counts.Flows != 2 {
		t.Errorf("flowsets after clock steps: %v; want 1 flow in slot 0 and 2 in slot 100", sets)
	}
}

// TestPortsAreThoseOfTheFirstPacket moves a flow to other ports within a slot.
// The ports that a decoder finds belong to one packet, never a mixture.
func TestPortsAreThoseOfTheFirstPacket(t *testing.T) {
	r := newRig(t, tiny(), 0)
	key := flow4(1)
	for _, path := range [][2]model.PortID{{1, 4}, {2, 3}, {1, 3}} {
		r.routes[key] = path[1]
		r.packet(path[0], key, 100)
	}
	lost := flow4(2) // has no route
	r.packet(3, lost, 100)
	r.until(20*ms - 1)
	got := decode(t, r.collect()[name{slot: 0}])
	if c := got[key]; c.in != 1 || c.out != 4 || c.packets != 3 {
		t.Errorf("the flow that moved: %+v; want 3 packets from port 1 to port 4", c)
	}
	if c := got[lost]; c.in != 3 || c.out != 0 || c.packets != 1 {
		t.Errorf("the flow without route: %+v; want 1 packet from port 3 to port 0", c)
	}
}

// decode peels an exported IPv4 flowset.
func decode(t testing.TB, f *flowset) map[model.FlowKey]counters {
	t.Helper()
	fam, err := sketch.NewFamily(sketch.Geometry(f.Geometry), f.Seed)
	if err != nil {
		t.Fatal(err)
	}
	cells := make([]sketch.Cell[sketch.Key4], len(f.cells))
	for i, c := range f.cells {
		cells[i] = sketch.Cell[sketch.Key4]{Key: sketch.ReadKey[sketch.Key4](&c.Key), Packets: c.Packets, Bytes: c.Bytes, Flows: c.Flows, In: c.InPort, Out: c.OutPort}
	}
	out := map[model.FlowKey]counters{}
	var p sketch.Peeler[sketch.Key4]
	p.Peel(&fam, f.filter, cells, func(c *sketch.Cell[sketch.Key4]) {
		out[c.Key.FlowKey()] = counters{c.Packets, c.Bytes, c.In, c.Out}
	})
	return out
}

// TestSeedsDiffer holds that no two switches, ports or boots share hash
// functions.
func TestSeedsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for boot := range uint64(10) {
		for sw := range model.NodeID(100) {
			for port := range model.PortID(65) {
				seen[SeedOf(boot, sw, port)] = true
			}
		}
	}
	if want := 10 * 100 * 65; len(seen) != want {
		t.Errorf("%d seeds; want %d", len(seen), want)
	}
}

// TestLabelsAndTunnels counts a packet by its inner key and without labels, so
// that it counts alike before and after the switch that adds them.
func TestLabelsAndTunnels(t *testing.T) {
	r := newRig(t, tiny(), 0)
	inner, outer := flow4(1), flow4(1000)
	r.routes[outer] = 2
	r.observe(&inswitch.Event{
		Stage: inswitch.Ingress, Now: 0, In: 1,
		Packet: &inswitch.Packet{Key: &inner, Outer: &outer, Size: 200, LabelCount: 1},
	})
	bare := (&inswitch.Packet{Size: 200, LabelCount: 1}).UnlabeledSize()
	r.until(20*ms - 1)
	if c := decode(t, r.collect()[name{slot: 0}])[inner]; c.bytes != uint64(bare) || c.out != 2 {
		t.Errorf("%+v; want %d bytes to port 2, where the outer header is routed", c, bare)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	cfg := tiny()
	cfg.PerPort = true
	p, err := New(inswitch.Device{ID: 1, MTU: 1500, Ports: make([]inswitch.Port, 4)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var act inswitch.Actions
	ev := inswitch.Event{Stage: inswitch.Timer, Timer: inswitch.StartTimer, Switch: &rig{}, Packet: &inswitch.Packet{}}
	i, reports := 0, 0
	var key model.FlowKey
	step := func() {
		i++
		key = flow4(i)
		if i%2 == 0 {
			key = flow6(i)
		}
		ev.Packet.Key, ev.Packet.Outer, ev.In = &key, &key, model.PortID(1+i%4)
		ev.Now += 20_000
		ev.Stage = inswitch.Ingress
		if i%10 == 0 {
			ev.Stage = inswitch.Timer
		}
		act.Reset()
		p.Observe(&ev, &act)
		reports += len(act.Reports)
	}
	for range 2000 {
		step() // the actions' memory has grown
	}
	if n := testing.AllocsPerRun(4000, step); n != 0 {
		t.Errorf("Observe allocates %v times", n)
	}
	if reports == 0 {
		t.Error("no report was made while allocations were counted")
	}
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"slot 0s, want":                func(c *Config) { c.Slot = 0 },
		"linger 2ms, want at most":     func(c *Config) { c.Linger = 2 * time.Millisecond },
		"0 bursts, want":               func(c *Config) { c.Bursts = 0 },
		"no table, want":               func(c *Config) { c.IPv4, c.IPv6 = Table{}, Table{} },
		"100 filter bits, want":        func(c *Config) { c.IPv4.FilterBits = 100 },
		"3 filter hashes, want":        func(c *Config) { c.IPv6.FilterHashes = 3 },
		"key of 37 bytes in the table": func(c *Config) { c.IPv4.Layout = Layout6 },
		"bad cell layout":              func(c *Config) { c.IPv4.Layout.Packets = 3 },
		"port 256, want at most 255":   func(c *Config) { c.IPv6.Layout = NarrowLayout6 },
		"chunk size 100, want":         func(c *Config) { c.ChunkBytes = 100 },
		"chunks of -1 bytes, want":     func(c *Config) { c.ChunkBytes = -1 },
	} {
		cfg := tiny()
		change(&cfg)
		if _, err := New(inswitch.Device{ID: 3, MTU: 1500, Ports: make([]inswitch.Port, 256)}, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v; want %q", err, want)
		}
	}
}

// bytesOf is a packet that its host keeps as bytes.
type bytesOf struct {
	inswitch.Source
	frame []byte
}

func (s bytesOf) AppendFrame(b []byte, limit int) []byte {
	return append(b, s.frame[:min(limit, len(s.frame))]...)
}

// TestProbesAreCountedApart shows three packets of one flow: one of a user, one of a
// user that its host has marked, and a probe. The table has the first two, the
// flowset's counts the third. A packet with a probe's stamp and no mark is a user's.
func TestProbesAreCountedApart(t *testing.T) {
	key := model.FlowKey{Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000002), SrcPort: 5, DstPort: 4791, Proto: model.UDP}
	frame := func(payload []byte) []byte {
		b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
		b = packet.IPv4{Length: uint16(28 + len(payload)), TTL: 9, Proto: model.UDP, Src: key.Src.V4(), Dst: key.Dst.V4()}.AppendTo(b)
		b = packet.UDP{SrcPort: 5, DstPort: 4791, Length: uint16(8 + len(payload))}.AppendTo(b)
		return append(b, payload...)
	}
	user, stamped := frame(make([]byte, 64)), frame(probe.Stamp{Origin: 1, Series: 2, Number: 3}.AppendTo(nil))
	cfg := DefaultConfig()
	cfg.Slot = time.Millisecond
	r := newRig(t, cfg, 0)
	show := func(dscp uint8, frame []byte) {
		r.observe(&inswitch.Event{Stage: inswitch.Ingress, Now: r.now, In: 1, Packet: &inswitch.Packet{
			Key: &key, Outer: &key, Size: int32(len(frame)), DSCP: dscp, Source: bytesOf{frame: frame},
		}})
	}
	show(0, user)
	show(1, user)
	show(1, stamped)
	show(0, stamped)
	allocs := testing.AllocsPerRun(100, func() { r.p.isProbe(&inswitch.Packet{Source: bytesOf{frame: stamped}}) })
	r.until(model.Time(1900 * time.Microsecond))
	got := r.collect()[name{slot: 0}].Counts
	want := wire.Counts{Packets: 3, Bytes: uint64(2*len(user) + len(stamped)), Flows: 1, Probes: 1}
	if got != want {
		t.Errorf("a marked and a plain packet, a probe, and an unmarked stamp: %+v; want %+v", got, want)
	}
	if allocs > 2 { // the packet and its source
		t.Errorf("recognising a probe allocates %v times, want nothing", allocs)
	}
}
