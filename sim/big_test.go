package sim

import (
	"runtime"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// TestEightThousandHosts starts a fat-tree of k=32 (8,192 hosts, 1,280
// switches) at 20 % load for 100 µs: it must fit a machine, and lose nothing.
// CI, with the race detector, runs the first 5 µs.
func TestEightThousandHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a fabric of 8,192 hosts")
	}
	f, err := topo.FatTree(32, topo.DefaultLinks())
	n := network(t, f, err, DefaultConfig())
	load := traffic.DefaultPoisson()
	load.Load, load.Duration = 0.2, 100*time.Microsecond
	list, err := traffic.Generate(1, traffic.HostsOf(f), load)
	if err != nil {
		t.Fatal(err)
	}
	n.add(t, list...)
	n.Run(race.Less(100*engine.Microsecond, 5*engine.Microsecond))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if n.Counts.Hops == 0 || n.Counts.Drops != [numReasons]int64{} {
		t.Errorf("%d hops, drops %v; want some and none", n.Counts.Hops, n.Counts.Drops)
	}
	if m.HeapInuse > 4<<30 {
		t.Errorf("%d MB in use; want at most 4 GB of a 24 GB machine", m.HeapInuse>>20)
	}
}
