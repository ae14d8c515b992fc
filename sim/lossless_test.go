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

// randomFabric draws a small fabric with links of various speeds and lengths.
func randomFabric(t *rapid.T) (*topo.Fabric, error) {
	rate := func(name string) model.Rate {
		return rapid.SampledFrom([]model.Rate{10, 25, 40, 100, 200, 400}).Draw(t, name) * model.Gbps
	}
	delay := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(1, 5000).Draw(t, name))
	}
	links := topo.Links{
		Host:   topo.LinkSpec{Rate: rate("host rate"), Delay: delay("host delay")},
		Fabric: topo.LinkSpec{Rate: rate("fabric rate"), Delay: delay("fabric delay")},
	}
	switch rapid.SampledFrom([]string{"leaf-spine", "dumbbell", "fat-tree", "clos"}).Draw(t, "kind") {
	case "leaf-spine":
		return topo.LeafSpine(rapid.IntRange(2, 4).Draw(t, "leaves"), rapid.IntRange(1, 3).Draw(t, "spines"), rapid.IntRange(1, 5).Draw(t, "hosts"), links)
	case "dumbbell":
		return topo.Dumbbell(rapid.IntRange(2, 8).Draw(t, "hosts"), links)
	case "clos":
		return topo.Clos(topo.DefaultClos(), links)
	default:
		return topo.FatTree(4, links)
	}
}

// TestLosslessLosesNothing is the promise of PFC with computed headroom: on
// 1,000 random fabrics and incasts no packet of a lossless class is dropped,
// whatever the senders do, and every packet sent is received.
func TestLosslessLosesNothing(t *testing.T) {
	runs, paused := 0, 0
	check := func(t *rapid.T) {
		f, err := randomFabric(t)
		if err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		cfg.Seed = rapid.Uint64().Draw(t, "seed")
		cfg.MTU = int32(rapid.SampledFrom([]int{256, 1000, 1024, 4096}).Draw(t, "mtu"))
		if rapid.Bool().Draw(t, "unthrottled") {
			cfg.Congestion = nil
		}
		if rapid.Bool().Draw(t, "sticky pauses") {
			cfg.PauseTime = 0
		}
		cfg.AckControl = rapid.Bool().Draw(t, "acks in control")
		cfg.Lossless = 1<<3 | uint8(rapid.SampledFrom([]int{0, 1 << 4}).Draw(t, "second class"))
		cfg.AlphaShift = uint8(rapid.IntRange(0, 6).Draw(t, "alpha"))
		routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: cfg.Seed})
		if err != nil {
			t.Fatal(err)
		}
		n := smallestBuffer(t, routes, cfg, model.Bytes(rapid.IntRange(20, 400).Draw(t, "shared KB"))*model.KB)
		hosts := f.Hosts()
		to := hosts[rapid.IntRange(0, len(hosts)-1).Draw(t, "victim")]
		var flows []traffic.Flow
		for _, h := range hosts {
			if h == to {
				continue
			}
			prio := model.Priority(3)
			if cfg.Lossless != 1<<3 && rapid.Bool().Draw(t, "class") {
				prio = 4
			}
			flows = append(flows, traffic.Flow{
				Src: h, Dst: to, Priority: prio, Bytes: model.Bytes(rapid.IntRange(1, 300_000).Draw(t, "bytes")),
				Start: model.Time(rapid.IntRange(0, 20_000).Draw(t, "start")),
			})
		}
		if err := n.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		n.Run(engine.Second)
		runs++
		if n.Counts.Pauses > 0 {
			paused++
		}
		if n.Counts.Drops != [numReasons]int64{} {
			t.Fatalf("drops %v on %s; want none", n.Counts.Drops, f.Name())
		}
		if n.Finished != len(flows) {
			t.Fatalf("%d of %d flows finished in a second", n.Finished, len(flows))
		}
		for _, fl := range n.flows {
			if fl.retransmitted != 0 || fl.expected != fl.size {
				t.Fatalf("flow %d: %d bytes sent again, %d of %d received; want 0 and all", fl.id, fl.retransmitted, fl.expected, fl.size)
			}
		}
		for _, sw := range n.switches {
			if left := sw.buffer.Shared(); left != 0 {
				t.Fatalf("%s still holds %v when all is done", sw.Name, left)
			}
		}
	}
	// rapid runs 100 cases at a time; the promise is about a thousand.
	for range race.Less(10, 1) {
		rapid.Check(t, check)
	}
	if paused < runs/4 {
		t.Errorf("PFC fired in %d of %d runs; want it in many, or nothing is proven", paused, runs)
	}
}

// smallestBuffer makes a network whose switches have headroom and reserve as
// computed, and little to share beyond.
func smallestBuffer(t *rapid.T, routes *topo.Routes, cfg Config, shared model.Bytes) *Network {
	for size := shared; ; size += size / 4 {
		cfg.Buffer = size
		n, err := New(routes, cfg)
		if err == nil {
			return n
		}
		if size > 10*model.GB {
			t.Fatal(err)
		}
	}
}
