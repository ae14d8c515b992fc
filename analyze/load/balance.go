package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/analyze/internal/routecache"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Cause says why equal-cost ports carry unequal loads.
type Cause uint8

// Causes.
const (
	Hash  Cause = iota // flows are spread less evenly than a random hash would
	Burst              // flows are spread as by a random hash, but some are much larger
)

var causeNames = [...]string{Hash: "hash", Burst: "burst"}

// String prints the cause's name.
func (c Cause) String() string { return causeNames[c] }

// Share is the traffic of one port of a group.
type Share struct {
	Port    model.PortID
	Flows   int
	Packets uint64
}

// Imbalance is a group of equal-cost ports with unequal loads.
type Imbalance struct {
	Switch model.NodeID
	Ports  []Share // of the group, by port
	Cause  Cause
	// Ratio is the busiest port's packets over the mean.
	Ratio float64
	// Heavy are the flows that overload the busiest port, the largest first:
	// without them it would carry no more than the mean. For Burst only.
	Heavy []model.FlowKey
}

// Describe returns the imbalance as a sentence with the fabric's names.
func (im *Imbalance) Describe(f *topo.Fabric) string {
	s := fmt.Sprintf("ECMP imbalance at %s: the busiest of %d equal-cost ports carries %.1f times the mean; ",
		f.Node(im.Switch).Name, len(im.Ports), im.Ratio)
	if im.Cause == Hash {
		return s + "hash polarization, flows per port " + fmt.Sprint(im.flowsPerPort())
	}
	return s + plural.Count(len(im.Heavy), "large flow")
}

func (im *Imbalance) flowsPerPort() (n []int) {
	for _, s := range im.Ports {
		n = append(n, s.Flows)
	}
	return n
}

// BalanceConfig configures a BalanceDetector.
type BalanceConfig struct {
	Intent *topo.Intent
	Ratio  float64 // busiest over mean at which ports are out of balance
	// Sigma is how unlikely the spread of flows must be, in standard
	// deviations of a normal distribution, before the cause is Hash.
	Sigma    float64
	MinFlows int // of a group; fewer are no evidence about a hash
	// MaxFlows bounds the flows of a window, at all switches; 0: no bound. Further
	// ones are not counted.
	MaxFlows int
}

// DefaultBalanceConfig reports groups whose busiest port carries half as much
// again as the mean; a fair hash is reported once in 30,000 such groups.
func DefaultBalanceConfig(in *topo.Intent) BalanceConfig {
	return BalanceConfig{Intent: in, Ratio: 1.5, Sigma: 4, MinFlows: 16}
}

// BalanceDetector gathers the loads of equal-cost ports over a window of slots.
type BalanceDetector struct {
	cfg      BalanceConfig
	own      routecache.Cache  // of CountFlow
	cache    *routecache.Cache // in use
	groups   []portGroup
	bySwitch [][]uint32 // indexes of groups, by node

	known knownGroups

	flows flowtable.Table
	heads []uint32  // by flow number: its first use plus one
	uses  []flowUse // of all flows and groups
}

// portGroup is the ports over which a switch spreads some flows: those of the first
// route that had this set, so that equal sets are one group.
type portGroup struct {
	sw    model.NodeID
	ports []model.PortID
	flows int
	share []Share // by port, as ports
	// spread are packets of flows on several paths: which ports they left by is not known,
	// and taken to be all alike.
	spread uint64
}

// flowUse is a flow's packets in one group.
type flowUse struct {
	packets uint64
	group   uint32
	port    uint16 // index among the group's ports: that of the flow's first packet in the window
	next    uint32 // the flow's next use plus one
}

// NewBalanceDetector returns a detector with an empty window.
func NewBalanceDetector(cfg BalanceConfig) (*BalanceDetector, error) {
	if cfg.Intent == nil {
		return nil, errors.New("load: no intended routes, want a topo.Intent")
	}
	if !(cfg.Ratio > 1) {
		return nil, fmt.Errorf("load: imbalance ratio %v, want more than 1", cfg.Ratio)
	}
	return &BalanceDetector{cfg: cfg, bySwitch: make([][]uint32, len(cfg.Intent.At(0).Fabric().Nodes()))}, nil
}

// Observe adds a slot to the window.
func (b *BalanceDetector) Observe(m *paths.Map) {
	end := UseEnd(math.MaxUint64)
	if b.cfg.MaxFlows > 0 {
		if room := max(b.cfg.MaxFlows-len(b.uses), 0); room < m.Flows()*maxUses {
			if places := b.NewUses(m); len(places) > room {
				end = places[room]
			}
		}
	}
	b.ObservePart(m, end)
}

// UseEnd orders uses of groups by flows of a slot: by the flow's place, then by the order
// in which its sightings were added.
type UseEnd uint64

// maxUses bounds the uses of groups by one flow in one slot.
const maxUses = 1 << 16

func useOf(place uint32, sighting int) UseEnd { return UseEnd(place)<<16 | UseEnd(sighting) }

// NewUses returns the uses of groups by flows of a map that the window does not have yet,
// ascending.
func (b *BalanceDetector) NewUses(m *paths.Map) (list []UseEnd) {
	b.cache = m.RouteCache(b.cfg.Intent.At(m.Start()))
	for i := range m.Flows() {
		if m.OnSeveralPaths(i) {
			continue
		}
		key := m.Key(i)
		for _, s := range m.Sightings(i) {
			g, _, ok := b.groupOf(key, s.Switch, s.Out)
			if !ok {
				continue
			}
			if n, known := b.flows.Find(key, m.Hash(i)); !known || b.find(n, g) == nil {
				list = append(list, useOf(m.Place(i), s.Added()))
			}
		}
	}
	slices.Sort(list)
	return list
}

// Tracked returns the number of uses of the window.
func (b *BalanceDetector) Tracked() int { return len(b.uses) }

// ObservePart is Observe of a part of the flows, of which new uses are added if they are
// before end.
func (b *BalanceDetector) ObservePart(m *paths.Map, end UseEnd) {
	b.cache = m.RouteCache(b.cfg.Intent.At(m.Start()))
	for i := range m.Flows() {
		key, hash := m.Key(i), m.Hash(i)
		if m.OnSeveralPaths(i) {
			b.spread(key, m.Sightings(i))
			continue
		}
		number, known := b.flows.FindHinted(key, hash, m.ID(i))
		if !known {
			number = noFlow
		}
		hops := m.Sightings(i)
		if k := b.known.of(b, m, i); k != nil {
			for _, u := range k.uses[:k.length] {
				s := &hops[u.hop]
				number = b.countIn(key, hash, number, u.group, int(u.port), s.Packets, useOf(m.Place(i), s.Added()) < end)
			}
			continue
		}
		for hop := range hops {
			if s := &hops[hop]; s.Out != 0 {
				number = b.count(key, hash, number, s.Switch, s.Out, s.Packets, useOf(m.Place(i), s.Added()) < end)
			}
		}
	}
}

// spread adds the packets of a flow on several paths to the groups that it used.
func (b *BalanceDetector) spread(key *model.FlowKey, hops []paths.Sighting) {
	for i := range hops {
		if group, _, ok := b.groupOf(key, hops[i].Switch, hops[i].Out); ok {
			b.groups[group].spread += hops[i].Packets
		}
	}
}

// CountFlow adds packets of a flow that left a switch through a port, under the
// routes of their time.
func (b *BalanceDetector) CountFlow(r *topo.Routes, key model.FlowKey, sw model.NodeID, out model.PortID,
	packets uint64,
) {
	b.own.Use(r)
	b.cache = &b.own
	hash := flowtable.Hash(&key)
	number, known := b.flows.Find(&key, hash)
	if !known {
		number = noFlow
	}
	b.count(&key, hash, number, sw, out, packets, b.cfg.MaxFlows <= 0 || len(b.uses) < b.cfg.MaxFlows)
}

const noFlow = ^uint32(0)

// count adds packets of a flow to the group that it used, and returns the flow's number:
// noFlow if it has none, before or after. A flow that is new in the group is counted if there is room.
func (b *BalanceDetector) count(key *model.FlowKey, hash uint64, number uint32, sw model.NodeID, out model.PortID, packets uint64, room bool) uint32 {
	group, port, ok := b.groupOf(key, sw, out)
	if !ok {
		return number
	}
	return b.countIn(key, hash, number, group, port, packets, room)
}

// countIn is count with the group, and which of its ports the flow left by.
func (b *BalanceDetector) countIn(key *model.FlowKey, hash uint64, number, group uint32, port int, packets uint64, room bool) uint32 {
	var u *flowUse
	if number != noFlow {
		u = b.find(number, group)
	}
	g := &b.groups[group]
	if u == nil {
		if !room {
			return number
		}
		if number == noFlow {
			number, _ = b.flows.FindOrAdd(key, hash) // numbers are given in turn
			b.heads = append(b.heads, 0)
		}
		b.uses = append(b.uses, flowUse{group: group, port: uint16(port), next: b.heads[number]})
		b.heads[number] = uint32(len(b.uses))
		u = &b.uses[len(b.uses)-1]
		g.flows++
		g.share[port].Flows++
	}
	u.packets += packets
	g.share[u.port].Packets += packets
	return number
}

// groupOf returns the group that a flow used at a switch, and which of its ports.
func (b *BalanceDetector) groupOf(key *model.FlowKey, sw model.NodeID, out model.PortID) (group uint32, port int, ok bool) {
	ports := b.cache.NextHops(sw, key.Dst)
	if len(ports) < 2 {
		return 0, 0, false
	}
	if port = slices.Index(ports, out); port < 0 {
		return 0, 0, false
	}
	for _, i := range b.bySwitch[sw] {
		if have := b.groups[i].ports; len(have) == len(ports) && (&have[0] == &ports[0] || slices.Equal(have, ports)) {
			return i, port, true
		}
	}
	g := portGroup{sw: sw, ports: ports}
	for _, p := range ports {
		g.share = append(g.share, Share{Port: p})
	}
	group = uint32(len(b.groups))
	b.groups, b.bySwitch[sw] = append(b.groups, g), append(b.bySwitch[sw], group)
	return group, port, true
}

// find returns a flow's use of a group, nil if it has none.
func (b *BalanceDetector) find(number, group uint32) *flowUse {
	for i := b.heads[number]; i != 0; i = b.uses[i-1].next {
		if u := &b.uses[i-1]; u.group == group {
			return u
		}
	}
	return nil
}

// TakeImbalances evaluates the window, the worst group first, and starts a new one.
func (b *BalanceDetector) TakeImbalances() []Imbalance { return TakeImbalances(b) }

// TakeImbalances evaluates the windows of several detectors, each of which saw a part of
// the flows, as one that saw all of them would.
func TakeImbalances(parts ...*BalanceDetector) (list []Imbalance) {
	for _, g := range sumGroups(parts) {
		if im, ok := g.evaluate(&parts[0].cfg); ok {
			if im.Cause == Burst {
				im.Heavy = g.heaviestFlows(parts, &im)
			}
			list = append(list, im)
		}
	}
	for _, b := range parts {
		b.reset()
	}
	return sortImbalances(list)
}

// sortImbalances sorts by ratio, the worst first.
func sortImbalances(list []Imbalance) []Imbalance {
	slices.SortFunc(list, func(x, y Imbalance) int {
		return cmp.Or(cmp.Compare(y.Ratio, x.Ratio), cmp.Compare(x.Switch, y.Switch),
			slices.CompareFunc(x.Ports, y.Ports, func(a, b Share) int { return cmp.Compare(a.Port, b.Port) }))
	})
	return list
}

// reset starts a new window.
func (b *BalanceDetector) reset() {
	for i := range b.groups {
		b.bySwitch[b.groups[i].sw] = nil
	}
	b.groups, b.uses, b.heads = b.groups[:0], b.uses[:0], b.heads[:0]
	b.known.clear()
	b.flows.Clear()
}

// sumGroups adds up equal groups of all parts.
func sumGroups(parts []*BalanceDetector) (list []portGroup) {
	bySwitch := map[model.NodeID][]int{}
	for _, b := range parts {
		for _, g := range b.groups {
			at := -1
			for _, i := range bySwitch[g.sw] {
				if slices.Equal(list[i].ports, g.ports) {
					at = i
				}
			}
			if at < 0 {
				bySwitch[g.sw] = append(bySwitch[g.sw], len(list))
				list = append(list, g)
				continue
			}
			sum := &list[at]
			sum.flows += g.flows
			sum.spread += g.spread
			for i := range g.share {
				sum.share[i].Flows += g.share[i].Flows
				sum.share[i].Packets += g.share[i].Packets
			}
		}
	}
	return list
}

func (g *portGroup) evaluate(cfg *BalanceConfig) (Imbalance, bool) {
	if g.flows == 0 || g.flows < cfg.MinFlows {
		return Imbalance{}, false
	}
	im := Imbalance{Switch: g.sw, Ports: g.share}
	for i := range im.Ports {
		im.Ports[i].Packets += g.spread / uint64(len(im.Ports))
	}
	busiest := im.busiest()
	im.Ratio = float64(busiest.Packets) / im.mean()
	if !(im.Ratio >= cfg.Ratio) {
		return Imbalance{}, false
	}
	if im.Cause = Burst; imbalanceSigma(im.flowsPerPort()) > cfg.Sigma {
		im.Cause = Hash
	}
	return im, true
}

func (im *Imbalance) busiest() Share {
	return slices.MaxFunc(im.Ports, func(x, y Share) int { return cmp.Compare(x.Packets, y.Packets) })
}

// mean returns the packets of a port if all had as many.
func (im *Imbalance) mean() float64 {
	total := uint64(0)
	for _, s := range im.Ports {
		total += s.Packets
	}
	return float64(total) / float64(len(im.Ports))
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
