package sim

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// network builds a simulation of a fabric with the usual routes.
func network(t testing.TB, f *topo.Fabric, err error, cfg Config) *Network {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: cfg.Seed})
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(routes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func fatTree(t testing.TB, k int, cfg Config) *Network {
	f, err := topo.FatTree(k, topo.DefaultLinks())
	return network(t, f, err, cfg)
}

func (n *Network) add(t testing.TB, flows ...traffic.Flow) {
	t.Helper()
	if err := n.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
}

// run runs until no events are pending or the time is over.
func (n *Network) run(limit time.Duration) { n.Run(engine.Of(limit)) }

func TestLoneFlowTakesTheIdealTime(t *testing.T) {
	for _, size := range []model.Bytes{1, 1000, 1024, 1025, 5000, 100_000, 10_000_000} {
		for _, v6 := range []bool{false, true} {
			n := fatTree(t, 4, DefaultConfig())
			n.add(t, traffic.Flow{Src: 0, Dst: 15, Bytes: size, Priority: 3, V6: v6, Start: 1000})
			n.run(50 * time.Millisecond)
			r := n.Records()
			if len(r) != 1 || !r[0].Finished {
				t.Fatalf("%d bytes: records %+v; want one finished flow", size, r)
			}
			if got, want := r[0].FCT(), r[0].Ideal; got != want {
				t.Errorf("%d bytes, IPv6 %v: completion %d ps; want the ideal %d ps", size, v6, got, want)
			}
			if n.Counts.Drops != [numReasons]int64{} {
				t.Errorf("%d bytes: drops %v; want none", size, n.Counts.Drops)
			}
		}
	}
}

func TestIncastLosesNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Buffer = 2 * model.MB
	n := fatTree(t, 4, cfg)
	var flows []traffic.Flow
	for src := range model.NodeID(15) {
		flows = append(flows, traffic.Flow{Src: src, Dst: 15, Bytes: 2_000_000, Priority: 3, Start: 1000})
	}
	n.add(t, flows...)
	n.run(100 * time.Millisecond)
	if n.Finished != 15 || n.Counts.Drops != [numReasons]int64{} || n.Counts.Pauses == 0 {
		t.Errorf("finished %d, drops %v, pauses %d; want 15, none, some", n.Finished, n.Counts.Drops, n.Counts.Pauses)
	}
}

// An idle fabric takes no events: between two flows a run goes from the last event of the
// first to the first of the second, whether they are 10 ms or 100 s apart.
func TestIdleTimeTakesNoEvents(t *testing.T) {
	events := func(apart time.Duration) int64 {
		n := fatTree(t, 4, DefaultConfig())
		for i := range model.Time(2) {
			n.add(t, traffic.Flow{Src: 0, Dst: 15, Bytes: 100 * model.KB, Priority: 3, Start: 1000 + i*model.Time(apart)})
		}
		n.run(2 * apart)
		if n.Finished != 2 {
			t.Fatalf("%d flows finished; want 2", n.Finished)
		}
		return n.Counts.Events
	}
	near, far := events(10*time.Millisecond), events(100*time.Second)
	if near != far || near == 0 {
		t.Errorf("%d events with the flows 10 ms apart, %d with 100 s; want the same", near, far)
	}
}
