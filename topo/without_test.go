package topo

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestWithoutEqualsNewRoutes compares the routes after failures with routes that
// are computed from nothing.
func TestWithoutEqualsNewRoutes(t *testing.T) {
	all := fabrics()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		f := all[rapid.SampledFrom(names).Draw(t, "fabric")]
		if len(f.links) == 0 {
			return
		}
		link := rapid.IntRange(0, len(f.links)-1)
		cfg := RouteConfig{Seed: 7, Down: rapid.SliceOfN(link, 0, 2).Draw(t, "down")}
		r, err := NewRoutes(f, cfg)
		if err != nil {
			t.Fatal(err)
		}
		links := rapid.SliceOfN(link, 1, 3).Draw(t, "links")
		got, err := r.Without(links...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := NewRoutes(f, RouteConfig{Seed: 7, Down: append(slices.Clone(cfg.Down), links...)})
		if err != nil {
			t.Fatal(err)
		}
		for from := range f.nodes {
			for to := range f.nodes {
				a, b := f.nodes[from].ID, f.nodes[to].IPv4
				if x, y := got.NextHops(a, b), want.NextHops(a, b); !slices.Equal(x, y) {
					t.Fatalf("%v down, then %v: next hops of %s to %s %v; want %v", cfg.Down, links, f.nodes[from].Name, f.nodes[to].Name, x, y)
				}
				x, okX := got.Distance(a, b)
				y, okY := want.Distance(a, b)
				if okX != okY || okX && x != y {
					t.Fatalf("%v down, then %v: distance of %s to %s %d, %v; want %d, %v", cfg.Down, links, f.nodes[from].Name, f.nodes[to].Name, x, okX, y, okY)
				}
			}
		}
	})
}

func TestWithoutRejectsUnknownLinks(t *testing.T) {
	f := must(FatTree(4, DefaultLinks()))
	if _, err := mustRoutes(t, f, RouteConfig{}).Without(len(f.links)); err == nil {
		t.Error("Without accepts a link that the fabric does not have")
	}
}
