package fairshare

import (
	"math"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"pgregory.net/rapid"
)

func TestRates(t *testing.T) {
	// A flow over both links, one over each; the second link is half as fast.
	got := Rates([]float64{10, 5}, [][]int{{0, 1}, {0}, {1}, {}}, 100)
	if want := []float64{2.5, 7.5, 2.5, 100}; !slices.Equal(got, want) {
		t.Errorf("Rates = %v; want %v", got, want)
	}
}

// TestRatesAreMaxMinFair checks the definition: no link carries more than it can,
// and each flow has a full link where no other flow has a higher rate.
func TestRatesAreMaxMinFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "links")
		capacity := rapid.SliceOfN(rapid.Float64Range(1, 100), n, n).Draw(t, "capacity")
		links := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []int {
			list := rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 4).Draw(t, "path")
			slices.Sort(list)
			return slices.Compact(list)
		}), 1, 12).Draw(t, "flows")
		rates := Rates(capacity, links, math.Inf(1))
		used, most := make([]float64, n), make([]float64, n)
		for f, list := range links {
			for _, l := range list {
				used[l] += rates[f]
				most[l] = max(most[l], rates[f])
			}
		}
		for l := range used {
			if used[l] > capacity[l]*(1+1e-9) {
				t.Fatalf("link %d of %v carries %v: rates %v of %v", l, capacity, used[l], rates, links)
			}
		}
		for f, list := range links {
			if !slices.ContainsFunc(list, func(l int) bool {
				return used[l] > capacity[l]*(1-1e-9) && rates[f] > most[l]*(1-1e-9)
			}) {
				t.Fatalf("flow %d could have more: rates %v of %v over %v", f, rates, links, capacity)
			}
		}
	})
}

func TestForecast(t *testing.T) {
	f, err := topo.Dumbbell(2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	flow := func(src, dst model.NodeID, demand model.Rate) Flow {
		return Flow{Key: model.FlowKey{Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4, Proto: model.UDP}, Src: src, Demand: demand}
	}
	// Two flows share the link between the switches; a third stays on its side.
	fc := New(r, []Flow{flow(0, 2, 0), flow(1, 3, 20*model.Gbps), flow(2, 3, 0)})
	want := []struct {
		rate     model.Rate
		slowdown float64
	}{{80 * model.Gbps, 1.25}, {20 * model.Gbps, 1}, {80 * model.Gbps, 1}}
	for i, w := range want {
		if got := fc.Flows[i]; got.Rate != w.rate || got.Slowdown() != w.slowdown {
			t.Errorf("flow %d: %v, slowdown %v; want %v, %v", i, got.Rate, got.Slowdown(), w.rate, w.slowdown)
		}
	}
	s0, _ := f.ByName("s0")
	between := model.Port{Node: s0, Port: 3}
	at := Direction(f, between)
	if fc.Load[at] != float64(100*model.Gbps) || Egress(f, at) != between || fc.Worst() != 0 {
		t.Errorf("load of %v is %v, worst flow %d; want 100 Gb/s and flow 0", Egress(f, at), fc.Load[at], fc.Worst())
	}
	without, err := r.Without(f.Port(between).Link)
	if err != nil {
		t.Fatal(err)
	}
	if fc := New(without, []Flow{flow(0, 2, 0)}); !fc.Flows[0].NoPath || !math.IsInf(fc.Flows[0].Slowdown(), 1) {
		t.Errorf("without its link, a flow gets %+v; want no path", fc.Flows[0])
	}
}

// TestKnownPath: a flow keeps the path that it is known to take, and takes the routes'
// once a link of it is down.
func TestKnownPath(t *testing.T) {
	f, err := topo.LeafSpine(2, 2, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	hosts := f.Hosts()
	key := model.FlowKey{Src: f.Node(hosts[0]).IPv4, Dst: f.Node(hosts[1]).IPv4, Proto: model.UDP}
	paths, _ := r.Paths(hosts[0], key.Dst, 4)
	hashed, err := r.Path(key, hosts[0])
	if err != nil {
		t.Fatal(err)
	}
	other := paths[slices.IndexFunc(paths, func(p []topo.Hop) bool { return p[2].Node != hashed[2].Node })]
	up := Direction(f, model.Port{Node: other[1].Node, Port: other[1].Out})
	fc := New(r, []Flow{{Key: key, Src: hosts[0], Path: other}})
	if fc.Load[up] == 0 || len(fc.Flows[0].Links) != 4 {
		t.Errorf("a flow with a known path loads %v, %d links; want 4 of its own path", fc.Load, len(fc.Flows[0].Links))
	}
	without, err := r.Without(up / 2)
	if err != nil {
		t.Fatal(err)
	}
	fc = New(without, []Flow{{Key: key, Src: hosts[0], Path: other}})
	if fc.Load[up] != 0 || fc.Flows[0].NoPath {
		t.Errorf("without a link of its path: %+v; want the path of the hash", fc.Flows[0])
	}
}
