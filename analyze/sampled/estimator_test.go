package sampled

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// fatTree is the routes of a fat-tree with k=4.
func fatTree(t testing.TB) *topo.Routes {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newEstimator(t testing.TB, r *topo.Routes) *Estimator {
	t.Helper()
	e, err := NewEstimator(DefaultConfig(topo.NewIntent(r)))
	if err != nil {
		t.Fatal(err)
	}
	for _, sw := range r.Fabric().Switches() { // all sample
		e.Add(&portstat.Sample{Node: sw, Rate: 1})
	}
	return e
}

func flowBetween(r *topo.Routes, src, dst int, port uint16) model.FlowKey {
	f, hosts := r.Fabric(), r.Fabric().Hosts()
	return model.FlowKey{Src: f.Node(hosts[src]).IPv4, Dst: f.Node(hosts[dst]).IPv4, SrcPort: port, DstPort: 4791, Proto: model.UDP}
}

// send samples the packets of a flow along its path, one of n at each switch.
func send(t testing.TB, e *Estimator, r *topo.Routes, rng *rand.Rand, key model.FlowKey, packets, size, n int, silent ...model.NodeID) {
	t.Helper()
	src, _ := r.Fabric().ByAddr(key.Src)
	path, err := r.Path(key, src)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range path[1 : len(path)-1] {
		if slices.Contains(silent, h.Node) {
			continue
		}
		for range packets {
			if rng.IntN(n) == 0 {
				e.Add(&portstat.Sample{Node: h.Node, In: h.In, Out: h.Out, Flow: key, Bytes: uint32(size), Rate: uint32(n)})
			}
		}
	}
}

// TestErrorIsAsStated: estimates of many flows are unbiased, and those whose relative error
// is above twice the stated one are as few as those of a normal distribution.
func TestErrorIsAsStated(t *testing.T) {
	r := fatTree(t)
	rng := rand.New(rand.NewPCG(1, 2))
	const packets, size, flows = 3000, 1000, 400
	var sum float64
	beyond := 0
	for i := range flows {
		e := newEstimator(t, r)
		key := flowBetween(r, i%16, (i*7+5)%16, uint16(i))
		if key.Src == key.Dst {
			key = flowBetween(r, 0, 15, uint16(i))
		}
		send(t, e, r, rng, key, packets, size, 32)
		got := e.Take(0)
		// Both are rounded, and all packets have one size.
		if len(got) != 1 || math.Abs(float64(got[0].Bytes)-float64(got[0].Packets*size)) > size {
			t.Fatalf("flow %d: %+v", i, got)
		}
		wrong := float64(got[0].Packets)/packets - 1
		sum += wrong
		if math.Abs(wrong) > 2*got[0].Error() {
			beyond++
		}
	}
	if mean := sum / flows; math.Abs(mean) > 0.01 {
		t.Errorf("estimates are %.3f off in the mean; want 0", mean)
	}
	if share := float64(beyond) / flows; share > 0.08 {
		t.Errorf("%.3f of the estimates are off by two standard errors; want 0.046", share)
	}
}

// TestSilentSwitchesMakeNoFlowSmaller: a stage with a switch that does not sample is left out.
func TestSilentSwitchesMakeNoFlowSmaller(t *testing.T) {
	r := fatTree(t)
	f := r.Fabric()
	for _, sw := range f.Switches() {
		e, err := NewEstimator(DefaultConfig(topo.NewIntent(r)))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range f.Switches() {
			if other != sw {
				e.Add(&portstat.Sample{Node: other, Rate: 1})
			}
		}
		rng := rand.New(rand.NewPCG(3, uint64(sw)))
		for i := range 8 {
			send(t, e, r, rng, flowBetween(r, i, 15-i, uint16(i)), 4000, 500, 1, sw)
		}
		for _, got := range e.Take(0) {
			if got.Packets != 4000 || got.Bytes != 4000*500 {
				t.Errorf("without samples of %s: %d packets, %d bytes of a flow of 4000 packets", f.Node(sw).Name, got.Packets, got.Bytes)
			}
		}
	}
}

// TestHopsAreInPathOrder, whatever the order of samples is.
func TestHopsAreInPathOrder(t *testing.T) {
	r := fatTree(t)
	key := flowBetween(r, 0, 15, 9)
	src, _ := r.Fabric().ByAddr(key.Src)
	path, err := r.Path(key, src)
	if err != nil {
		t.Fatal(err)
	}
	var want []model.NodeID
	for _, h := range path[1 : len(path)-1] {
		want = append(want, h.Node)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		e := newEstimator(t, r)
		for _, i := range rng.Perm(len(want)) {
			e.Add(&portstat.Sample{Node: want[i], Flow: key, Bytes: 100, Rate: 1})
		}
		var got []model.NodeID
		for _, h := range e.Take(0)[0].Hops {
			got = append(got, h.Switch)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("hops %v; want %v", got, want)
		}
	}
}

// TestEverySampleIsAccountedFor, also those beyond the limit, and a window starts empty.
func TestEverySampleIsAccountedFor(t *testing.T) {
	r := fatTree(t)
	cfg := DefaultConfig(topo.NewIntent(r))
	cfg.MaxFlows = 3
	e, err := NewEstimator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sw := r.Fabric().Switches()[0]
	for i := range 5 {
		e.Add(&portstat.Sample{Node: sw, Flow: flowBetween(r, 0, 1, uint16(i)), Bytes: 100, Rate: 10})
	}
	e.Add(&portstat.Sample{Node: sw, Bytes: 60, Rate: 10})
	if got := e.Take(0); len(got) != 3 || got[0].Packets != 10 || got[0].Samples != 1 {
		t.Errorf("%+v; want 3 flows of 10 packets", got)
	}
	if got, want := e.Stats(), (Stats{Samples: 6, Used: 3, NotIP: 1, TooMany: 2}); got != want {
		t.Errorf("Stats = %+v; want %+v", got, want)
	}
	if got := e.Take(0); len(got) != 0 {
		t.Errorf("%d flows of a window without samples", len(got))
	}
	// A source outside the fabric has no route here: its largest hop is the estimate.
	stranger := model.FlowKey{Src: model.Addr4(0x08080808), Dst: r.Fabric().Node(r.Fabric().Hosts()[0]).IPv4, Proto: model.TCP}
	for i := range 3 {
		for range i + 1 {
			e.Add(&portstat.Sample{Node: r.Fabric().Switches()[i], Flow: stranger, Bytes: 100, Rate: 10})
		}
	}
	if got := e.Take(0); len(got) != 1 || got[0].Packets != 30 || got[0].Bytes != 3000 || got[0].Samples != 3 || len(got[0].Hops) != 3 {
		t.Errorf("%+v; want 30 packets by 3 samples", got)
	}
}

// TestAddAllocatesNothing once the memory is there.
func TestAddAllocatesNothing(t *testing.T) {
	r := fatTree(t)
	e := newEstimator(t, r)
	s := portstat.Sample{Node: r.Fabric().Switches()[0], Flow: flowBetween(r, 0, 15, 1), Bytes: 100, Rate: 10}
	e.Add(&s)
	e.Take(0)
	if n := testing.AllocsPerRun(100, func() { e.Add(&s); e.Take(0) }); n != 0 {
		t.Errorf("a window allocates %v times", n)
	}
}
