package truth

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestConservation checks the counts all along runs of mixed traffic with
// faults. At the end all is done, unless a wrong table has made packets of a
// lossless class loop: such a loop may deadlock, and its packets with it.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := sim.DefaultConfig()
		cfg.Buffer = 600 * model.KB
		cfg.LossyQueue = 20 * model.KB
		cfg.AckControl = rapid.Bool().Draw(rt, "ack control")
		if rapid.Bool().Draw(rt, "no control") {
			cfg.Congestion = nil
		}
		b := fatTree(t, cfg, Options{Conserve: true, Flows: true})
		for range rapid.IntRange(1, 20).Draw(rt, "flows") {
			src := model.NodeID(rapid.IntRange(0, 15).Draw(rt, "src"))
			b.add(traffic.Flow{
				Src: src, Dst: (src + model.NodeID(rapid.IntRange(1, 15).Draw(rt, "dst"))) % 16,
				Bytes:     model.Bytes(rapid.IntRange(1, 200_000).Draw(rt, "bytes")),
				Transport: traffic.Transport(rapid.IntRange(0, 2).Draw(rt, "transport")),
				Priority:  model.Priority(rapid.SampledFrom([]int{1, 3}).Draw(rt, "priority")), Start: 1000,
			})
		}
		for range rapid.IntRange(1, 3).Draw(rt, "faults") {
			port := model.Port{Node: model.NodeID(rapid.IntRange(16, 35).Draw(rt, "switch")), Port: 1}
			host := model.NodeID(rapid.IntRange(0, 3).Draw(rt, "host"))
			at := model.Time(rapid.IntRange(0, 300_000).Draw(rt, "at"))
			b.inject(sim.Injection{At: at, For: 200 * time.Microsecond, Fault: rapid.SampledFrom([]sim.Fault{
				sim.LinkDown{Port: port},
				sim.LinkDown{Port: model.Port{Node: host, Port: 1}, Down: 20 * time.Microsecond, Up: 10 * time.Microsecond},
				sim.Lossy{Port: port, Share: 0.5},
				sim.LossySwitch{Switch: port.Node, Share: 0.1},
				sim.CorruptTable{Switch: port.Node, Share: 0.3, Via: 2},
				sim.Storm{Host: host, Priority: 3},
				sim.Storm{Host: host, Priority: 3, On: 20 * time.Microsecond, Off: 10 * time.Microsecond},
				sim.SlowReceiver{Host: host, Rate: model.Gbps, Priority: 3},
				sim.SlowReceiver{Host: host, Rate: 2 * model.Gbps, Priority: 1, Buffer: 10 * model.KB},
			}).Draw(rt, "fault")})
		}
		for at := engine.Time(0); at < engine.Millisecond; at += 10 * engine.Microsecond {
			b.Run(at)
			if err := b.r.Conserved(); err != nil {
				rt.Fatalf("at %v: %v", at, err)
			}
		}
		b.Run(5 * engine.Second)
		loops := WaitFor(b.Network).Cycles()
		if err := b.r.Conserved(); err != nil || b.Idle() != (len(loops) == 0) {
			rt.Fatalf("at the end: %v, idle %v, loops %v; want nil, true, none, or false and some", err, b.Idle(), loops)
		}
	})
}

// TestConservedInDeadlock: a table that is wrong for some time sends a flow
// back where it came from. Both switches fill up and pause each other, and what
// they hold is counted for as long as that persists.
func TestConservedInDeadlock(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Buffer = 600 * model.KB
	b := fatTree(t, cfg, Options{Conserve: true, Flows: true})
	b.add(traffic.Flow{Src: 14, Dst: 12, Bytes: 117_050, Priority: 3, Start: 1000})
	b.inject(sim.Injection{For: 200 * time.Microsecond, Fault: sim.CorruptTable{Switch: 31, Share: 0.3, Via: 2}})
	b.run(50 * time.Millisecond) // the sender has tried again, and is paused
	held := b.Counts
	b.run(100 * time.Millisecond)
	if loops := WaitFor(b.Network).Cycles(); len(loops) != 1 || len(loops[0]) != 2 || b.Idle() || b.Counts.Hops != held.Hops {
		t.Errorf("cycles %v, idle %v, %d more hops; want two queues that wait for each other, and no progress", loops, b.Idle(), b.Counts.Hops-held.Hops)
	}
	if err := b.r.Conserved(); err != nil {
		t.Errorf("Conserved() = %v; want nil", err)
	}
}

func TestConservedErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(b *bed)
		want  string
	}{
		"made of nothing": {func(b *bed) { b.Counts.Delivered++ }, "-1 left over"},
		"vanished":        {func(b *bed) { b.Counts.Delivered-- }, "1 left over"},
		"out of nowhere":  {func(b *bed) { b.r.queues.by[b.r.queue(QueueNode(model.Port{Node: 2, Port: 1}, 3))].in.Packets++ }, "port 2:1 priority 3 holds 0 packets, 0B, want 1 packet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := dumbbell(t, 1, sim.DefaultConfig(), Options{Conserve: true})
			b.add(udp(0, 1, 10*model.Gbps, 100_000))
			b.run(5 * time.Millisecond)
			tc.spoil(b)
			if err := b.r.Conserved(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Conserved() = %v; want an error with %q", err, tc.want)
			}
		})
	}
}
