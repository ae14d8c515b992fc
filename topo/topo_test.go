package topo

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// must is for fabrics that tests know to be right.
func must(f *Fabric, err error) *Fabric {
	if err != nil {
		panic(err)
	}
	return f
}

func mustRoutes(t testing.TB, f *Fabric, cfg RouteConfig) *Routes {
	t.Helper()
	r, err := NewRoutes(f, cfg)
	if err != nil {
		t.Fatalf("NewRoutes(%s) = %v; want no error", f.Name(), err)
	}
	return r
}
