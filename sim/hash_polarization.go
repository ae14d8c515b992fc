package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Polarise makes every switch hash alike, so that later tiers use only some of
// their links.
type Polarise struct{}

func (Polarise) String() string { return "all switches hash alike" }

func (Polarise) check(*Network) error { return nil }

func (Polarise) begin(n *Network) func() {
	set := func(step int) {
		n.alike.faults += step
		for _, sw := range n.switches {
			sw.follow(sw.intended)
		}
	}
	set(1)
	return func() { set(-1) }
}

// alike is whether all switches have one hash, whatever routes they follow.
type alike struct {
	faults         int
	routes, hashed *topo.Routes // the last ones asked for, and those with one hash
}

// of returns routes in which all switches hash alike.
func (a *alike) of(routes *topo.Routes) *topo.Routes {
	if a.routes == routes {
		return a.hashed
	}
	cfg := routes.Config()
	before := cfg.Hash
	if before == nil {
		before = func(key model.FlowKey, _ model.NodeID, seed uint64) uint64 { return key.Hash(seed) }
	}
	cfg.Hash = func(key model.FlowKey, _ model.NodeID, _ uint64) uint64 { return before(key, 0, cfg.Seed) }
	hashed, err := topo.NewRoutes(routes.Fabric(), cfg)
	if err != nil {
		panic(err) // the same routes were computed before
	}
	a.routes, a.hashed = routes, hashed
	return hashed
}

// follow has the switch's table go by intended routes.
func (sw *Switch) follow(routes *topo.Routes) {
	sw.intended = routes
	if a := &sw.net.alike; a.faults > 0 {
		routes = a.of(routes)
	}
	sw.table.SetRoutes(routes)
	sw.Rerouted()
}
