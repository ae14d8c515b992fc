package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// packetSpraying is a lossy fabric that sprays and trims, with NICs for it.
func packetSpraying(by LoadBalancing) Config {
	cfg := DefaultConfig()
	cfg.LoadBalancing, cfg.Selective, cfg.Trimming = by, true, true
	cfg.NoPFC, cfg.LossyQueue = true, 100*model.KB
	return cfg
}

// A lone flow of full packets meets no queue on any of its paths: they arrive in
// order, in the ideal time.
func TestLoneSprayedFlowTakesTheIdealTime(t *testing.T) {
	for _, by := range []LoadBalancing{ECMP, Spray, Adaptive} {
		for _, selective := range []bool{false, true} {
			for _, size := range []model.Bytes{1, 1024, 5 * 1024, 10_240_000} {
				cfg := DefaultConfig()
				cfg.LoadBalancing, cfg.Selective = by, selective
				n := fatTree(t, 4, cfg)
				n.add(t, traffic.Flow{Src: 0, Dst: 15, Bytes: size, Priority: 3, Start: 1000})
				n.run(50 * time.Millisecond)
				r := n.Records()
				if len(r) != 1 || !r[0].Finished || r[0].FCT() != r[0].Ideal || n.Counts.Reordered > 0 {
					t.Fatalf("%v, selective %v, %d bytes: records %+v, %d packets reordered; want the ideal time, in order",
						by, selective, size, r, n.Counts.Reordered)
				}
			}
		}
	}
}

// A last packet that is shorter overtakes the one before it on another path, and is
// not waited for: the flow takes up to its transmission time less than on one path.
func TestShortLastPacketOvertakes(t *testing.T) {
	for seed := range uint64(20) {
		cfg := DefaultConfig()
		cfg.Seed, cfg.LoadBalancing, cfg.Selective = seed, Spray, true
		n := fatTree(t, 4, cfg)
		n.add(t, traffic.Flow{Src: 0, Dst: 15, Bytes: 1025, Priority: 3})
		n.run(time.Millisecond)
		r := n.Records()
		overtakes := n.Counts.Reordered == 1
		if faster := r[0].Ideal - r[0].FCT(); !r[0].Finished || r[0].Retransmitted > 0 || faster < 0 || faster > 10*engine.Nanosecond ||
			!overtakes && faster != 0 {
			t.Errorf("seed %d: %+v, overtaken %v; want the ideal time, or up to 10 ns less if overtaken", seed, r, overtakes)
		}
	}
}

// Spraying uses every path of a flow about equally; adaptive routing does, too, and
// avoids a slow one.
func TestSprayingUsesEveryPath(t *testing.T) {
	for _, by := range []LoadBalancing{Spray, Adaptive} {
		cfg := DefaultConfig()
		cfg.LoadBalancing, cfg.Selective = by, true
		n := fatTree(t, 4, cfg)
		n.add(t, traffic.Flow{Src: 0, Dst: 15, Bytes: 4 * model.MB, Priority: 3})
		n.run(10 * time.Millisecond)
		cores := 0
		for _, sw := range n.switches {
			if n.fabric.Node(sw.ID).Role != topo.Spine {
				continue
			}
			cores++
			through := int64(0)
			for _, p := range sw.ports {
				through += int64(p.TxData)
			}
			if share := float64(through) / float64(4*model.MB); share < 0.2 || share > 0.33 {
				t.Errorf("%v: %.2f of the flow is sent through %s; want about a quarter", by, share, sw.Name)
			}
		}
		if cores != 4 {
			t.Fatalf("%d core switches; want 4", cores)
		}
	}
}

// Adaptive routing shifts load off a port that other flows load; spraying does
// not know.
func TestAdaptiveRoutingAvoidsLoad(t *testing.T) {
	sent := map[LoadBalancing]int64{}
	for _, by := range []LoadBalancing{Spray, Adaptive} {
		cfg := DefaultConfig()
		cfg.LoadBalancing, cfg.Selective, cfg.Congestion = by, true, nil
		n := fatTree(t, 4, cfg)
		tor := n.Host(0).ports[0].peer.sw
		busy := tor.ports[2]
		if !n.fabric.Node(busy.peer.Node).Role.IsSwitch() {
			t.Fatalf("port 3 of %s leads to a host; want an uplink", tor.Name)
		}
		n.add(t, traffic.Flow{Src: 0, Dst: 15, Bytes: 4 * model.MB, Priority: 3, Start: 1000})
		// UDP is hashed: take source ports that choose the busy port.
		for port, found := uint16(1), 0; found < 3; port++ {
			spec := traffic.Flow{Src: 1, Dst: 14, Stop: 600_000, Transport: traffic.UDP, Priority: 3, Rate: 25 * model.Gbps, SrcPort: port}
			probe, err := n.newFlow(&spec)
			if err != nil {
				t.Fatal(err)
			}
			if out, ok := tor.NextHop(probe.key); ok && out == busy {
				n.add(t, spec)
				found++
			}
		}
		n.run(5 * time.Millisecond)
		if r := n.Records(); !r[0].Finished {
			t.Fatalf("%v: %+v; want all finished", by, r)
		}
		sent[by] = tor.ports[3].TxPkts
	}
	if sent[Adaptive] < sent[Spray]*11/10 {
		t.Errorf("%d packets take the free port with adaptive routing, %d with spraying; want a tenth more", sent[Adaptive], sent[Spray])
	}
}

// TestEveryByteIsPlacedOnce has flows of any size over a fabric that loses,
// reorders and trims: receivers place every byte once, and no other.
func TestEveryByteIsPlacedOnce(t *testing.T) {
	var all Counts
	rapid.Check(t, func(rt *rapid.T) {
		cfg := packetSpraying(LoadBalancing(rapid.IntRange(0, 2).Draw(rt, "balance")))
		cfg.Seed = rapid.Uint64().Draw(rt, "seed")
		cfg.Trimming = rapid.Bool().Draw(rt, "trimming")
		cfg.NoPFC = rapid.Bool().Draw(rt, "lossy class")
		cfg.MTU = int32(rapid.IntRange(64, 1500).Draw(rt, "mtu"))
		cfg.LossyQueue = model.Bytes(rapid.IntRange(4, 30).Draw(rt, "queue")) * model.KB
		cfg.ReorderWindow = int32(rapid.IntRange(64, 300).Draw(rt, "window"))
		cfg.ReorderTime = time.Duration(rapid.IntRange(0, 60).Draw(rt, "reorder")) * time.Microsecond
		cfg.AckPerBytes = int64(rapid.IntRange(0, 8000).Draw(rt, "ack every"))
		cfg.RTO = time.Duration(rapid.IntRange(20, 300).Draw(rt, "rto")) * time.Microsecond
		cfg.Window = rapid.Bool().Draw(rt, "windows")
		if rapid.Bool().Draw(rt, "no congestion control") {
			cfg.Congestion = nil
		}
		n := fatTree(t, 4, cfg)
		for range rapid.IntRange(1, 6).Draw(rt, "flows") {
			src, dst := rapid.IntRange(0, 7).Draw(rt, "src"), rapid.IntRange(14, 15).Draw(rt, "dst")
			n.add(t, traffic.Flow{
				Src: model.NodeID(src), Dst: model.NodeID(dst), Priority: 3,
				Bytes: model.Bytes(rapid.IntRange(1, 300_000).Draw(rt, "bytes")), Start: model.Time(rapid.IntRange(0, 20_000).Draw(rt, "start")),
			})
		}
		for range rapid.IntRange(0, 4).Draw(rt, "faults") {
			port := n.ports[rapid.IntRange(0, len(n.ports)-1).Draw(rt, "port")]
			if rapid.Bool().Draw(rt, "last switch") {
				port = n.Host(15).ports[0]
				if rapid.Bool().Draw(rt, "payload") {
					port = port.peer
				}
			}
			fault := Lossy{Port: model.Port{Node: port.Node, Port: port.ID}, Share: rapid.Float64Range(0.001, 0.3).Draw(rt, "loss")}
			if err := n.Inject(Injection{At: 0, Fault: fault}); err != nil {
				rt.Fatal(err)
			}
		}
		n.Run(2 * engine.Second)
		all.add(&n.Counts)
		for i, f := range n.flows {
			if !f.done || f.placed.bytes != f.size || f.expected != f.size || f.repeats.inHand != 0 || f.repeats.lostPackets != 0 {
				rt.Fatalf("flow %d of %d bytes: done %v, %d placed, %d in order, %+v; want every byte once",
					i, f.size, f.done, f.placed.bytes, f.expected, f.repeats)
			}
		}
		if !n.Idle() {
			rt.Fatalf("events are left at %v", n.Now())
		}
	})
	if all.Reordered == 0 || all.Drops[DropSilent] == 0 {
		t.Errorf("%+v; want packets that are reordered and lost", all)
	}
}

// Trimming tells the sender of a loss at once: an incast that overflows the buffer
// finishes sooner than with timeouts.
func TestTrimmingRepeatsAtOnce(t *testing.T) {
	last := map[bool]engine.Time{}
	for _, trimming := range []bool{false, true} {
		cfg := packetSpraying(Spray)
		cfg.Trimming, cfg.Congestion = trimming, nil
		n := fatTree(t, 4, cfg)
		for src := range model.NodeID(8) {
			n.add(t, traffic.Flow{Src: src, Dst: 15, Bytes: 100 * model.KB, Priority: 3})
		}
		n.run(100 * time.Millisecond)
		if n.Finished != 8 || (n.Counts.Trimmed > 0) != trimming || (n.Counts.Drops[DropBuffer] > 0) == trimming {
			t.Fatalf("trimming %v: %d finished, %+v; want 8, and lost packets either trimmed or dropped", trimming, n.Finished, n.Counts)
		}
		if trimming && n.Counts.Duplicates > 0 {
			t.Errorf("%d packets arrive twice; want none: the sender knows what was lost", n.Counts.Duplicates)
		}
		last[trimming] = n.Records()[7].Finish
	}
	if last[true]*2 > last[false] {
		t.Errorf("the incast takes %v with trimming and %v without; want half the time at most", last[true], last[false])
	}
}

// Go-back-N takes every packet that is overtaken for a loss.
func TestSprayingNeedsSelectiveRepeat(t *testing.T) {
	race.LeaveToPlainRun(t)
	repeated := map[bool]int64{}
	for _, selective := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.LoadBalancing, cfg.Selective, cfg.NackGap = Spray, selective, 0
		n := fatTree(t, 4, cfg)
		for src := range model.NodeID(8) {
			n.add(t, traffic.Flow{Src: src, Dst: 8 + (src+3)%8, Bytes: model.MB, Priority: 3})
		}
		n.run(100 * time.Millisecond)
		if n.Finished != 8 || n.Counts.Reordered == 0 {
			t.Fatalf("selective %v: %d finished, %d reordered; want 8, and some", selective, n.Finished, n.Counts.Reordered)
		}
		for _, r := range n.Records() {
			repeated[selective] += r.Retransmitted
		}
	}
	if repeated[true] != 0 || repeated[false] < 100_000 {
		t.Errorf("%d bytes repeated with selective repeat and %d with go-back-N; want none and many", repeated[true], repeated[false])
	}
}

func TestSprayingAllocatesNothing(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg := packetSpraying(Adaptive)
	n := fatTree(t, 4, cfg)
	for i := range model.NodeID(16) {
		n.add(t, steady(i, (i+5)%16), steady(i, (i+9)%16), traffic.Flow{Src: i, Dst: (i/4*4 + 4) % 16, Stop: 1e12, Priority: 3, NoCC: i%4 != 0})
	}
	n.Run(5 * engine.Millisecond)
	before := n.Counts
	if got := testing.AllocsPerRun(5, func() { n.Run(n.Now() + 200*engine.Microsecond) }); got > 1 {
		t.Errorf("200 µs of a loaded fabric allocate %v times; want 0", got)
	}
	if n.Counts.Trimmed == before.Trimmed || n.Counts.Reordered == before.Reordered {
		t.Errorf("%+v; want packets that are trimmed and reordered", n.Counts)
	}
}

func TestReorderingSettingsAreChecked(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"trimming with go-back-N": func(c *Config) { c.Selective = false },
		"no such balancing":       func(c *Config) { c.LoadBalancing = 3 },
		"small window":            func(c *Config) { c.ReorderWindow = 63 },
		"large window":            func(c *Config) { c.ReorderWindow = 1<<15 + 1 },
		"negative time":           func(c *Config) { c.ReorderTime = -1 },
		"NS3":                     func(c *Config) { c.NS3 = true },
	} {
		cfg := packetSpraying(Spray)
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&cfg); cfg.Check() == nil {
			t.Errorf("%s: Check() = nil; want an error", name)
		}
	}
}
