package truth

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// Recording changes nothing of the run, also where priorities take turns.
func TestRecordingIsPassive(t *testing.T) {
	run := func(observed bool) ([]sim.FlowRecord, sim.Counts) {
		cfg := sim.DefaultConfig()
		cfg.Buffer = 1200 * model.KB
		cfg.Lossless = 1<<3 | 1<<4
		b := fatTree(t, cfg, All())
		if !observed {
			b.Observe(nil)
		}
		for prio := range model.Priority(5) {
			flows := incast(50_000)
			for i := range flows {
				flows[i].Priority = prio
				flows[i].Start += model.Time(i) * 7_000
			}
			b.add(flows...)
		}
		b.Run(10 * engine.Millisecond)
		return b.Records(), b.Counts
	}
	bare, bareCounts := run(false)
	seen, seenCounts := run(true)
	if diff := cmp.Diff(bare, seen); diff != "" {
		t.Errorf("flows differ (-unobserved +recorded):\n%s", diff)
	}
	if bareCounts != seenCounts {
		t.Errorf("counts %+v; want those of an unobserved run %+v", seenCounts, bareCounts)
	}
}

func TestOptionsErrors(t *testing.T) {
	for want, o := range map[string]Options{
		"MaxDrops 0":        {Drops: true},
		"MaxSamples -1":     {Sample: time.Second, MaxSamples: -1},
		"MaxPauses 2000000": {Pauses: true, MaxPauses: 2_000_000_000},
		"slot -1ns":         {Slot: -1, MaxSlots: 1},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%+v) = %v; want an error with %q", o, err, want)
		}
	}
	b := dumbbell(t, 1, sim.DefaultConfig(), All())
	b.Run(engine.Microsecond)
	if _, err := Record(b.Network, All()); err == nil {
		t.Errorf("Record during a run = nil; want an error")
	}
}

func TestNothingRecordedIsEmpty(t *testing.T) {
	b := dumbbell(t, 1, sim.DefaultConfig(), Options{})
	b.add(udp(0, 1, 10*model.Gbps, 10_000))
	b.Run(engine.Millisecond)
	r := b.r
	if r.Paths(0, false) != nil || r.Slots() != nil || r.Drops() != nil || r.Pauses() != nil || r.Series() != nil ||
		r.Deadlocks() != nil || r.Flow(0, false) != (FlowTotal{}) || r.Peak(model.Port{Node: 2, Port: 1}, 3) != (Peak{}) || r.Conserved() == nil {
		t.Errorf("a Recorder without options recorded something, or says that packets are conserved")
	}
}

func TestCauses(t *testing.T) {
	b := dumbbell(t, 2, sim.DefaultConfig(), All())
	port := model.Port{Node: 4, Port: 3}
	b.inject(sim.Injection{At: 1000, For: 500, Fault: sim.LinkDown{Port: port}})
	b.inject(sim.Injection{At: 1200, Fault: sim.Storm{Host: 2, Priority: 3}})
	b.r.AddCause(Cause{Kind: "incast", Begin: 0, End: engine.Microsecond, Flows: []int{0, 1}})
	for at, want := range map[engine.Time]string{
		0: "incast", 999_999: "incast", 1_000_000: "link-down", 1_300_000: "link-down storm", 1_500_000: "storm", engine.Second: "storm",
	} {
		var got []string
		for _, c := range b.r.ActiveCauses(at) {
			got = append(got, c.Kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("wrong at %v: %v; want %s", at, got, want)
		}
	}
	if c := b.r.Causes()[0]; len(c.Ports) != 1 || c.Ports[0] != port || c.Text != "link of port 4:3 down" {
		t.Errorf("cause %+v; want the port and a sentence", c)
	}
	if err := b.r.Inject(sim.Injection{Fault: sim.Storm{Host: 4}}); err == nil || len(b.r.Causes()) != 3 {
		t.Errorf("a storm of a switch: %v with %d causes; want an error and 3", err, len(b.r.Causes()))
	}
}

// steady is a fat-tree with long flows and no end, warmed up.
func steady(t testing.TB, o Options) *bed {
	o.Until = 1 // no samples
	b := fatTree(t, sim.DefaultConfig(), o)
	for src := range model.NodeID(16) {
		for j := range model.NodeID(4) {
			b.add(traffic.Flow{Src: src, Dst: (src + 3 + 4*j) % 16, Stop: 1e12, Priority: 3, Rate: 15 * model.Gbps})
		}
	}
	b.Run(200 * engine.Microsecond)
	return b
}

func TestRecordingAllocatesNothing(t *testing.T) {
	b := steady(t, All())
	// Steady also means no new slot.
	b.r.slots.length = engine.Second
	b.Run(400 * engine.Microsecond)
	if n := testing.AllocsPerRun(10, func() { b.Run(b.Now() + 20*engine.Microsecond) }); n > 0 {
		t.Errorf("20µs of recorded traffic allocate %v times; want never", n)
	}
}

func BenchmarkRecord(bb *testing.B) {
	for _, tc := range []struct {
		name string
		o    Options
	}{
		{"none", Options{}},
		{"flows", Options{Flows: true}},
		{"conserve", Options{Conserve: true}},
		{"depths", Options{Depths: true}},
		{"slots", Options{Slot: 10 * time.Millisecond, MaxSlots: 1 << 20}},
		{"paths", Options{Paths: true, MaxPathHops: 1 << 20}},
		{"all", All()},
	} {
		bb.Run(tc.name, func(bb *testing.B) {
			b := steady(bb, tc.o)
			if tc.name == "none" {
				b.Observe(nil)
			}
			hops := b.Counts.Hops
			bb.ReportAllocs()
			for bb.Loop() {
				b.Run(b.Now() + 10*engine.Microsecond)
			}
			bb.ReportMetric(float64(b.Counts.Hops-hops)/bb.Elapsed().Seconds()/1e6, "Mhop/s")
		})
	}
}

func BenchmarkWaitFor(bb *testing.B) {
	b := fatTree(bb, sim.DefaultConfig(), Options{})
	for i := range 20 {
		flows := incast(10_000_000)
		for j := range flows {
			flows[j].NoCC = i < 19
		}
		b.add(flows...)
	}
	b.Run(300 * engine.Microsecond)
	packets := int64(0)
	for bb.Loop() {
		packets = 0
		for _, n := range WaitFor(b.Network).Nodes {
			if n.Kind == KindQueue {
				packets += n.Count.Packets
			}
		}
	}
	bb.ReportMetric(float64(packets), "packets")
}
