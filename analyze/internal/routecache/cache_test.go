package routecache

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestAnswersAreThoseOfTheRoutes asks for every pair of a fabric that has more of them than
// the cache, twice, under two routes in turn.
func TestAnswersAreThoseOfTheRoutes(t *testing.T) {
	f, err := topo.FatTree(8, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Hosts()) * len(f.Switches()); n < 2<<nextBits {
		t.Fatalf("%d pairs; want more than the cache has, or the test proves little", n)
	}
	var c Cache
	for seed := range uint64(2) {
		cfg := topo.RouteConfig{Seed: seed}
		if seed == 1 {
			cfg.Down = []int{len(f.Links()) - 1}
		}
		r, err := topo.NewRoutes(f, cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Use(r)
		for range 2 {
			for _, dst := range append([]model.NodeID{}, f.Hosts()...) {
				a := f.Node(dst).IPv4
				if got, want := c.LastHops(a), r.ExpectedLastHops(a); !slices.Equal(got, want) {
					t.Fatalf("LastHops(%v) = %v; want %v", a, got, want)
				}
				for _, sw := range f.Switches() {
					if got, want := c.NextHops(sw, a), r.NextHops(sw, a); !slices.Equal(got, want) {
						t.Fatalf("NextHops(%d, %v) = %v; want %v", sw, a, got, want)
					}
				}
			}
		}
	}
	if c.ToMux(f.Node(f.Hosts()[0]).IPv4) || c.ToMux(model.Addr4(1)) {
		t.Error("ToMux of a host, or of no address of the fabric, is true")
	}
}
