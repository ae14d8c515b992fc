package preflight

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/roce"
)

// sampledFlows is how many flows are drawn for each switch: a switch of eight
// equal ports needs 185 to be judged, and gets what its tier shares.
const sampledFlows = 256

// enoughFlows returns how many flows make an unused port of n a matter of one in
// 10⁹ where the hash is even: n × (1-1/n)^m below that.
func enoughFlows(n int) int { return int(math.Ceil(float64(n) * (math.Log(float64(n)) + 21))) }

// actualRoutes returns the routes with the hash that switches use: a scenario may
// say that all use the same.
func (c *checker) actualRoutes() (*topo.Routes, bool, error) {
	for _, f := range c.s.Faults {
		if _, same := f.Fault.(sim.HashPolarization); same {
			r, err := sim.PolarizedRoutes(c.routes)
			return r, true, err
		}
	}
	return c.routes, false, nil
}

// checkECMP finds switches that leave ports of equal cost unused by flows between
// random hosts: hash polarization.
func (c *checker) checkECMP(context.Context) error {
	routes, same, err := c.actualRoutes()
	hosts := c.fabric.Hosts()
	if err != nil || len(hosts) < 2 {
		return err
	}
	type choice struct {
		node  model.NodeID
		ports string // of equal cost
	}
	type usage struct {
		ports []model.PortID
		flows int
		used  map[model.PortID]bool
	}
	seen := make(map[choice]*usage)
	rng := rand.New(rand.NewPCG(c.s.Seed, 0))
	var hops []topo.Hop
	for range max(4096, sampledFlows*len(c.fabric.Switches())) {
		src, dst := hosts[rng.IntN(len(hosts))], hosts[rng.IntN(len(hosts))]
		if src == dst {
			continue
		}
		key := c.flowKey(src, dst, uint16(firstPort+rng.IntN(1<<14)))
		if hops, err = routes.AppendPath(hops[:0], key, src); err != nil {
			continue // a finding of topo.Check
		}
		for _, h := range hops[1 : len(hops)-1] {
			ports := routes.NextHops(h.Node, key.Dst)
			if len(ports) < 2 {
				continue
			}
			at := choice{h.Node, fmt.Sprint(ports)}
			u := seen[at]
			if u == nil {
				u = &usage{ports: ports, used: make(map[model.PortID]bool)}
				seen[at] = u
			}
			u.flows++
			u.used[h.Out] = true
		}
	}
	var unused []model.Port
	switches := make(map[model.NodeID]bool)
	total := 0
	for at, u := range seen {
		if u.flows < enoughFlows(len(u.ports)) {
			continue
		}
		for _, p := range u.ports {
			total++
			if !u.used[p] {
				unused = append(unused, model.Port{Node: at.node, Port: p})
				switches[at.node] = true
			}
		}
	}
	if len(unused) == 0 {
		return nil
	}
	slices.SortFunc(unused, comparePorts)
	unused = slices.Compact(unused)
	c.add(Finding{
		Rule: "polarization", Severity: Warning, Places: c.portRefs(unused),
		Text: fmt.Sprintf("ECMP uses none of %s on %s for flows between any hosts, for example %s: switches of several tiers use the same hash",
			plural.Count(len(unused), "equal-cost port"), plural.Count(len(switches), "switch"), c.fabric.PortName(unused[0])),
		Mend:  "give each switch, or each tier, another ECMP hash seed or offset",
		prove: func() (*trial, error) { return c.polarizationTrial(routes, same) },
	})
	return nil
}

func comparePorts(a, b model.Port) int {
	return slices.Compare([]int{int(a.Node), int(a.Port)}, []int{int(b.Node), int(b.Port)})
}

// firstPort is the first source port of RoCEv2 NICs.
const firstPort = 49152

// flowKey returns the 5-tuple of a RoCEv2 flow between two hosts.
func (c *checker) flowKey(src, dst model.NodeID, port uint16) model.FlowKey {
	return model.FlowKey{
		Src: c.fabric.Node(src).IPv4, Dst: c.fabric.Node(dst).IPv4, SrcPort: port, DstPort: roce.Port, Proto: model.UDP,
	}
}
