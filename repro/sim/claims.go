// Package sim measures the simulator against theory: a queue against Pollaczek and
// Khinchine and the distribution of M/D/1, a ring all-reduce against its ideal time, the
// rates of congested flows against max-min shares. It is not the claim of a paper: the
// figures are Weft's own. Manual: docs/simulator.md.
package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
)

// Claims lists them.
func Claims() []claim.Claim { return []claim.Claim{queue, collective, shares, peer} }

// newNetwork builds a simulation of a fabric.
func newNetwork(f *topo.Fabric, err error, cfg sim.Config) (*sim.Network, error) {
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: cfg.Seed})
	if err != nil {
		return nil, err
	}
	return sim.New(routes, cfg)
}

// linksOf returns links of one rate to hosts, and of another between switches.
func linksOf(host, fabric model.Rate) topo.Links {
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = host, fabric
	return links
}
