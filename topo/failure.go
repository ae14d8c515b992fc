package topo

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Failure is what fails at once: links, and switches with all their links.
type Failure struct {
	Links    []int          // as indexes in Fabric.Links, those of Switches too
	Switches []model.NodeID // empty: only links fail
}

// LinkFailure is the failure of one link.
func (f *Fabric) LinkFailure(link int) Failure { return Failure{Links: []int{link}} }

// SwitchFailure is the failure of a switch.
func (f *Fabric) SwitchFailure(id model.NodeID) Failure {
	out := Failure{Switches: []model.NodeID{id}}
	for i := range f.nodes[id].Ports {
		out.Links = append(out.Links, f.nodes[id].Ports[i].Link)
	}
	return out
}

// SingleFailures returns the failure of each link between two switches and of
// each switch. A link to a host is not among them: whom it cuts off is clear.
func (f *Fabric) SingleFailures() (list []Failure) {
	for i := range f.links {
		if f.nodes[f.links[i].A.Node].Role.IsSwitch() && f.nodes[f.links[i].B.Node].Role.IsSwitch() {
			list = append(list, f.LinkFailure(i))
		}
	}
	for _, id := range f.switches {
		list = append(list, f.SwitchFailure(id))
	}
	return list
}

// DoubleFailures draws n pairs of different single failures; fewer where the
// fabric does not have that many.
func (f *Fabric) DoubleFailures(n int, seed uint64) (list []Failure) {
	single := f.SingleFailures()
	all := len(single) * (len(single) - 1) / 2
	rng := rand.New(rand.NewPCG(seed, 0))
	drawn := make(map[[2]int]bool)
	for len(list) < min(n, all) {
		i, j := rng.IntN(len(single)), rng.IntN(len(single))
		if i == j || drawn[[2]int{min(i, j), max(i, j)}] {
			continue
		}
		drawn[[2]int{min(i, j), max(i, j)}] = true
		a, b := single[min(i, j)], single[max(i, j)]
		both := Failure{Links: slices.Concat(a.Links, b.Links), Switches: slices.Concat(a.Switches, b.Switches)}
		slices.Sort(both.Links)
		both.Links = slices.Compact(both.Links)
		list = append(list, both)
	}
	return list
}

// FailureName prints "spine0 and link tor0 Ethernet8 → leaf1".
func (f *Fabric) FailureName(x Failure) string {
	var names []string
	for _, id := range x.Switches {
		names = append(names, f.nodes[id].Name)
	}
	for _, l := range x.Links {
		a, b := f.links[l].A, f.links[l].B
		if !slices.Contains(x.Switches, a.Node) && !slices.Contains(x.Switches, b.Node) {
			names = append(names, "link "+f.PortName(a))
		}
	}
	return strings.Join(names, " and ")
}

// Outage is what a failure leads to, once routing has reacted to it.
type Outage struct {
	Failure Failure
	Routes  *Routes // after it

	// Cycles are cyclic buffer dependencies that need the failure, each as its
	// egress ports in order.
	Cycles [][]model.Port

	// LostPairs counts the ordered pairs of hosts that lose some or all routes,
	// without hosts that the failure itself cuts off. Src and Dst are one such
	// pair, and Stops is where its packets are dropped.
	LostPairs       int
	Src, Dst, Stops model.NodeID
}

// FailureCheck finds what failures lead to. It is immutable, so any number of
// goroutines may use it.
type FailureCheck struct {
	r       *Routes
	deps    *bufferDependencies // without a failure; nil: too large
	traffic []checkedTraffic
}

// checkedTraffic is a class of traffic and the pairs it loses without a failure.
type checkedTraffic struct {
	traffic
	lost int
}

// NewFailureCheck follows all traffic of the routes once.
func NewFailureCheck(r *Routes) *FailureCheck {
	c := newChecker(r)
	c.bufferDeps = newDependencies(r)
	fc := &FailureCheck{r: r, deps: c.bufferDeps}
	for _, t := range c.hostTraffic() {
		before := c.lostPairs()
		c.followTraffic(t)
		fc.traffic = append(fc.traffic, checkedTraffic{t, c.lostPairs() - before})
	}
	return fc
}

// hostTraffic returns the traffic classes that hosts receive. What only switches
// receive, such as probes, parts no hosts and is under no PFC.
func (c *checker) hostTraffic() []traffic {
	return slices.DeleteFunc(c.trafficClasses(), func(t traffic) bool {
		return len(t.hosts) == 0 && !(t.net && c.ownedByHost(t.dst))
	})
}

func (c *checker) lostPairs() int { return c.unroutedPairs.n + c.partlyRoutedPairs.n }

// After finds what a failure leads to. It follows only traffic whose routes
// change by more than the loss of some of several equal paths: any other still
// arrives, over a part of the links it used before, and adds no dependency.
func (fc *FailureCheck) After(x Failure) (Outage, error) {
	next, changed, err := fc.r.without(x.Links)
	if err != nil {
		return Outage{}, err
	}
	out := Outage{Failure: x, Routes: next}
	c := newFailureChecker(next, fc.deps)
	before := 0
	if changed.all {
		// Classes were made anew. Hosts that were cut off lose no pairs, so what the
		// others had lost before is an upper bound.
		for _, t := range fc.traffic {
			before += t.lost
		}
		c.followAttached(c.hostTraffic())
	} else {
		var list []traffic
		for _, t := range fc.traffic {
			if fc.isAffected(t.dst, changed, x.Links) {
				list, before = append(list, t.traffic), before+t.lost
			}
		}
		c.followAttached(list)
	}
	if out.LostPairs = max(0, c.lostPairs()-before); out.LostPairs > 0 {
		example := c.unroutedPairs
		if example.n == 0 {
			example = c.partlyRoutedPairs
		}
		out.Src, out.Dst, out.Stops = example.src, example.dst, example.stops
	}
	if fc.deps != nil && c.bufferDeps.hasMoreThan(fc.deps) {
		out.Cycles = fc.newCycles(next, c.bufferDeps)
	}
	return out, nil
}

// newFailureChecker is newChecker for traffic between hosts that still have a
// link, with dependencies numbered as deps.
func newFailureChecker(r *Routes, deps *bufferDependencies) *checker {
	c := newChecker(r)
	if deps != nil {
		c.bufferDeps = deps.withoutTraffic()
	}
	for i := range c.entering {
		c.entering[i] = slices.DeleteFunc(c.entering[i], c.isDetached)
	}
	return c
}

// isDetached reports whether all links of a host are down.
func (c *checker) isDetached(id model.NodeID) bool {
	return !slices.ContainsFunc(c.f.nodes[id].Ports, func(p Port) bool { return !c.isDown(p.Link) })
}

// followAttached follows traffic to hosts that still have a link.
func (c *checker) followAttached(list []traffic) {
	for _, t := range list {
		if len(t.hosts) > 0 {
			if t.hosts = slices.DeleteFunc(slices.Clone(t.hosts), c.isDetached); len(t.hosts) == 0 {
				continue
			}
			// The address that stands for the class may be one of those cut off.
			if id, ok := c.f.byAddr.lookup(t.dst); ok && c.isDetached(id) {
				t.dst = c.f.nodes[t.hosts[0]].IPv4
			}
		}
		c.followTraffic(t)
	}
}

// isAffected reports whether a failure may change where packets to dst go,
// beyond the loss of some of several equal paths.
func (fc *FailureCheck) isAffected(dst model.Addr, changed changedRoutes, links []int) bool {
	d := fc.r.dest(dst)
	if d == nil || changed.classes[d.class] {
		return true
	}
	// A static route does not react to a failure.
	for _, l := range links {
		for _, end := range []model.Port{fc.r.f.links[l].A, fc.r.f.links[l].B} {
			row := fc.r.row[end.Node]
			if fc.r.overrides == nil || fc.r.overrides[row] == nil {
				continue
			}
			if set, ok := fc.r.overrides[row].Lookup(dst); ok && slices.Contains(fc.r.ports(set), end.Port) {
				return true
			}
		}
	}
	return false
}

// hasMoreThan reports whether d has a dependency that base does not have.
func (d *bufferDependencies) hasMoreThan(base *bufferDependencies) bool {
	for link := range d.dependsOn {
		for i, word := range d.dependsOn[link] {
			if word&^base.dependsOn[link][i] != 0 {
				return true
			}
		}
	}
	return false
}

// newCycles returns one cycle for each set of links that depend on each other
// after a failure, if one of their dependencies did not exist before. more holds
// the dependencies of the traffic that the failure changes.
func (fc *FailureCheck) newCycles(next *Routes, more *bufferDependencies) (cycles [][]model.Port) {
	// Whatever exists after the failure existed before or is in more. Where those
	// together have no such cycle, there is none.
	both := fc.deps.withoutTraffic()
	for link := range both.dependsOn {
		for i := range both.dependsOn[link] {
			both.dependsOn[link][i] = fc.deps.dependsOn[link][i] | more.dependsOn[link][i]
		}
	}
	if len(both.cyclesBeyond(fc.deps)) == 0 {
		return nil
	}
	c := newFailureChecker(next, fc.deps)
	c.followAttached(c.hostTraffic())
	for _, cycle := range c.bufferDeps.cyclesBeyond(fc.deps) {
		ports := make([]model.Port, len(cycle))
		for i, link := range cycle {
			ports[i] = c.bufferDeps.links[link].from
		}
		cycles = append(cycles, ports)
	}
	return cycles
}

// cyclesBeyond returns one cycle through a dependency that base does not have,
// for each set of links that depend on each other and have one.
func (d *bufferDependencies) cyclesBeyond(base *bufferDependencies) (out [][]int32) {
	for _, part := range d.components() {
		if len(part) < 2 {
			continue
		}
		for _, link := range part {
			isNew := false
			d.visitDependencies(link, func(n int32) {
				_, inside := slices.BinarySearch(part, n)
				isNew = isNew || inside && !base.has(link, n)
			})
			if isNew {
				out = append(out, d.shortestCycle(part, link))
				break
			}
		}
	}
	return out
}

// has reports whether a link depends on another.
func (d *bufferDependencies) has(link, on int32) bool {
	i := on - d.start[d.links[link].to]
	return d.dependsOn[link][i/64]>>(i%64)&1 != 0
}
