package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// HashPolarization makes every switch use the same ECMP hash, so that later
// tiers use only some of their links.
type HashPolarization struct{}

func (HashPolarization) String() string { return "all switches use the same ECMP hash" }

func (HashPolarization) check(*Network) error { return nil }

func (HashPolarization) apply(n *Network) func() {
	set := func(step int) {
		n.polarization.faults += step
		for _, sw := range n.switches {
			sw.applyRoutes(sw.intended)
		}
	}
	set(1)
	return func() { set(-1) }
}

// hashPolarization tracks whether all switches use the same hash, whatever
// routes they follow.
type hashPolarization struct {
	faults            int
	routes, polarized *topo.Routes // the last ones requested, and those with one hash
}

// polarizedRoutes returns routes with the same hash at all switches.
func (a *hashPolarization) polarizedRoutes(routes *topo.Routes) *topo.Routes {
	if a.routes == routes {
		return a.polarized
	}
	hashed, err := PolarizedRoutes(routes)
	if err != nil {
		panic(err) // the same routes were computed before
	}
	a.routes, a.polarized = routes, hashed
	return hashed
}

// PolarizedRoutes returns routes with the same hash at all switches.
func PolarizedRoutes(routes *topo.Routes) (*topo.Routes, error) {
	cfg := routes.Config()
	before := cfg.Hash
	if before == nil {
		before = func(key model.FlowKey, _ model.NodeID, seed uint64) uint64 { return key.Hash(seed) }
	}
	cfg.Hash = func(key model.FlowKey, _ model.NodeID, _ uint64) uint64 { return before(key, 0, cfg.Seed) }
	return topo.NewRoutes(routes.Fabric(), cfg)
}

// applyRoutes makes the switch's table follow intended routes.
func (sw *Switch) applyRoutes(routes *topo.Routes) {
	sw.intended = routes
	if a := &sw.net.polarization; a.faults > 0 {
		routes = a.polarizedRoutes(routes)
	}
	sw.table.SetRoutes(routes)
	sw.TableChanged()
}
