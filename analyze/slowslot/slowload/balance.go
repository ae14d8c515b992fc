package slowload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	paths "github.com/weft-telemetry/weft/analyze/slowslot/slowpaths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// BalanceDetector gathers the loads of equal-cost ports over a window of slots.
type BalanceDetector struct {
	cfg    BalanceConfig
	groups map[group]*groupFlows
	name   []byte // of the current group
	flows  int    // of all groups
}

// group is the ports over which a switch spreads some flows: those of the first
// route that had this set, so that equal sets are one group.
type group struct {
	sw    model.NodeID
	ports string
}

type groupFlows struct {
	ports  []model.PortID
	flows  map[model.FlowKey]*flowUse
	spread uint64 // packets of flows on several paths
}

type flowUse struct {
	port    model.PortID
	packets uint64
}

// NewBalanceDetector returns a detector with an empty window.
func NewBalanceDetector(cfg BalanceConfig) (*BalanceDetector, error) {
	if cfg.Intent == nil {
		return nil, errors.New("load: no intended routes, want a topo.Intent")
	}
	if !(cfg.Ratio > 1) {
		return nil, fmt.Errorf("load: imbalance ratio %v, want more than 1", cfg.Ratio)
	}
	return &BalanceDetector{cfg: cfg, groups: map[group]*groupFlows{}}, nil
}

// Observe adds a slot to the window.
func (b *BalanceDetector) Observe(m *paths.Map) {
	routes := b.cfg.Intent.At(m.Start())
	for key, sightings := range m.All() {
		several := m.FlowPath(key, routes).Several
		for _, s := range sightings {
			if g := b.groupOf(routes, key, s.Switch, s.Out); g != nil && several {
				g.spread += s.Packets
			} else if !several {
				b.CountFlow(routes, key, s.Switch, s.Out, s.Packets)
			}
		}
	}
}

// CountFlow adds packets of a flow that left a switch through a port, under the
// routes of their time.
func (b *BalanceDetector) CountFlow(r *topo.Routes, key model.FlowKey, sw model.NodeID, out model.PortID,
	packets uint64,
) {
	g := b.groupOf(r, key, sw, out)
	if g == nil {
		return
	}
	u := g.flows[key]
	if u == nil {
		if b.cfg.MaxFlows > 0 && b.flows >= b.cfg.MaxFlows {
			return
		}
		b.flows++
		u = &flowUse{port: out}
		g.flows[key] = u
	}
	u.packets += packets
}

// groupOf returns the group that a flow used at a switch, nil if its port is in none.
func (b *BalanceDetector) groupOf(r *topo.Routes, key model.FlowKey, sw model.NodeID, out model.PortID) *groupFlows {
	ports := r.NextHops(sw, key.Dst)
	if len(ports) < 2 || !slices.Contains(ports, out) {
		return nil
	}
	b.name = b.name[:0]
	for _, p := range ports {
		b.name = append(b.name, byte(p>>8), byte(p))
	}
	g := b.groups[group{sw, string(b.name)}]
	if g == nil {
		g = &groupFlows{ports: ports, flows: map[model.FlowKey]*flowUse{}}
		b.groups[group{sw, string(b.name)}] = g
	}
	return g
}

// TakeImbalances evaluates the window, the worst group first, and starts a new one.
func (b *BalanceDetector) TakeImbalances() (list []Imbalance) {
	for id, g := range b.groups {
		if im, ok := b.evaluate(id.sw, g); ok {
			list = append(list, im)
		}
	}
	clear(b.groups)
	b.flows = 0
	slices.SortFunc(list, func(x, y Imbalance) int {
		return cmp.Or(cmp.Compare(y.Ratio, x.Ratio), cmp.Compare(x.Switch, y.Switch),
			slices.CompareFunc(x.Ports, y.Ports, func(a, b Share) int { return cmp.Compare(a.Port, b.Port) }))
	})
	return list
}

func (b *BalanceDetector) evaluate(sw model.NodeID, g *groupFlows) (Imbalance, bool) {
	if len(g.flows) < b.cfg.MinFlows {
		return Imbalance{}, false
	}
	im := Imbalance{Switch: sw}
	for _, p := range g.ports {
		im.Ports = append(im.Ports, Share{Port: p})
	}
	var total uint64
	for i := range im.Ports {
		im.Ports[i].Packets = g.spread / uint64(len(g.ports))
		total += im.Ports[i].Packets
	}
	for _, u := range g.flows {
		s := &im.Ports[slices.Index(g.ports, u.port)]
		s.Flows++
		s.Packets += u.packets
		total += u.packets
	}
	mean := float64(total) / float64(len(g.ports))
	busiest := slices.MaxFunc(im.Ports, func(x, y Share) int { return cmp.Compare(x.Packets, y.Packets) })
	im.Ratio = float64(busiest.Packets) / mean
	if !(im.Ratio >= b.cfg.Ratio) {
		return Imbalance{}, false
	}
	if im.Cause = Burst; imbalanceSigma(flowsPerPort(&im)) > b.cfg.Sigma {
		im.Cause = Hash
		return im, true
	}
	im.Heavy = heaviestFlows(g, busiest, mean)
	return im, true
}

// heaviestFlows returns the largest flows of the busiest port, until the rest is
// no more than the mean.
func heaviestFlows(g *groupFlows, busiest Share, mean float64) (keys []model.FlowKey) {
	for key, u := range g.flows {
		if u.port == busiest.Port {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b model.FlowKey) int {
		return cmp.Or(cmp.Compare(g.flows[b].packets, g.flows[a].packets), a.Compare(b))
	})
	rest := float64(busiest.Packets)
	for i, key := range keys {
		if rest <= mean {
			return keys[:i]
		}
		rest -= float64(g.flows[key].packets)
	}
	return keys
}

// imbalanceSigma returns how far counts are from even, in standard deviations:
// Pearson's chi-square, transformed to a normal variable by Wilson and
// Hilferty's cube root.
func imbalanceSigma(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	mean := float64(total) / float64(len(counts))
	chi := 0.0
	for _, n := range counts {
		chi += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	df := float64(len(counts) - 1)
	return (math.Cbrt(chi/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
}

func flowsPerPort(im *Imbalance) (n []int) {
	for _, s := range im.Ports {
		n = append(n, s.Flows)
	}
	return n
}
