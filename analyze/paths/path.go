package paths

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Path is the path of a flow's packets through the switches that report.
type Path struct {
	// Hops are in path order. Where a switch between two of them does not
	// report, or did not report the port that the flow left through, they are
	// ordered by distance to the destination.
	Hops []Sighting
	// Loop are the switches among which the flow's packets loop, in order and
	// from their entry on; empty: none. It is based on the first packets of the
	// slot, and a route change can look the same: Detector decides.
	Loop []model.NodeID
}

// maxChain is the longest path that is ordered by ports alone. Longer ones are rare: a
// Clos of five stages has paths of five switches.
const maxChain = 16

// OrderPaths puts the sightings of every flow in path order, under the routes of the
// slot's time. It does so once.
func (m *Map) OrderPaths(ports *Ports, routes *topo.Routes) {
	if m.routes != nil {
		return
	}
	m.join()
	m.routes = routes
	n := m.Flows()
	m.shapes, m.numbers = resized(m.shapes, n), resized(m.numbers, n)
	for i := range n {
		list := m.seen[m.starts[i]:m.starts[i+1]]
		m.numbers[i] = m.work.paths.number(ports, list)
		if k := m.known(i); k != nil {
			k.put(list)
			m.shapes[i] = k.shape
			continue
		}
		m.shapes[i] = m.orderPath(i, ports, list)
		if end := &list[len(list)-1]; ports.Peer(end.Switch, end.Out).Kind == HostPeer {
			m.shapes[i] |= delivered
		}
	}
}

// orderPath orders the sightings of a flow whose path has no number, or ports that are no chain.
func (m *Map) orderPath(flow int, ports *Ports, list []Sighting) shape {
	var order [maxChain]int8
	if chainOrder(ports, list, &order) {
		var copied [maxChain]Sighting
		copy(copied[:], list)
		for i := range list {
			list[i] = copied[order[i]]
		}
		return chain
	}
	if loop := m.work.order.sort(ports, m.routes, list, m.Key(flow).Dst); loop != nil {
		m.loops = append(m.loops, flowLoop{uint32(flow), loop})
		return looped
	}
	if m.work.order.branches() {
		return several
	}
	return 0
}

// OnSeveralPaths reports whether the packets of a flow took several paths at once, as
// switches send them that spray or route adaptively, or before and after a change of
// routes: of the switches that saw it, two are as far from the destination, and the ports
// do not lead from one to the other. At a switch the record has one port of those that the
// flow left by. It is known once OrderPaths has been called.
func (m *Map) OnSeveralPaths(flow int) bool { return m.routes != nil && m.shapes[flow]&several != 0 }

// chainOrder sets the order of sightings each of whose ports leads to the next, but for the last
// one's. It reports whether they are such: then no other order is possible.
func chainOrder(ports *Ports, list []Sighting, order *[maxChain]int8) bool {
	n := len(list)
	if n > maxChain {
		return false
	}
	var next [maxChain]int8
	fed := uint32(0)
	for i := range list {
		next[i] = -1
		s := &list[i]
		p := ports.Peer(s.Switch, s.Out)
		if p.Kind == NoPeer {
			continue
		}
		for j := range list {
			if list[j].Switch == p.Node {
				if fed&(1<<j) != 0 || i == j {
					return false
				}
				fed |= 1 << j
				next[i] = int8(j)
				break
			}
		}
	}
	first := (uint32(1)<<n - 1) &^ fed
	if first == 0 || first&(first-1) != 0 {
		return false // not one start
	}
	// Each is fed by one at most and there is one start: what it leads to is a chain, and
	// others, if any, are a loop.
	count := 0
	at := int8(0)
	for first>>at != 1 {
		at++
	}
	for ; at >= 0; at = next[at] {
		order[count] = at
		count++
	}
	return count == n
}

// Path returns the path of a flow by number, under routes of the slot's time. Its memory
// belongs to the map, or to the workspace until its next use.
func (m *Map) Path(flow int, ports *Ports, routes *topo.Routes) Path {
	m.OrderPaths(ports, routes)
	list := m.Sightings(flow)
	switch {
	case m.shapes[flow]&chain != 0:
		return Path{Hops: list}
	case routes == m.routes:
		if m.shapes[flow]&looped == 0 {
			return Path{Hops: list}
		}
		i, _ := slices.BinarySearchFunc(m.loops, uint32(flow), func(l flowLoop, n uint32) int { return cmp.Compare(l.flow, n) })
		return Path{Hops: list, Loop: m.loops[i].switches}
	}
	o := &m.work.order
	o.copied = append(o.copied[:0], list...)
	loop := o.sort(ports, routes, o.copied, m.Key(flow).Dst)
	return Path{Hops: o.copied, Loop: loop}
}

// pathOrder orders the sightings of one flow that are not a chain.
type pathOrder struct {
	copied    []Sighting
	byNear    []placed // the farthest from the destination first
	next      []int    // the sighting that the flow's packets went to, or -1
	fed, done []bool   // some other sighting leads here; it is in the result
}

type placed struct {
	Sighting
	distance int
}

// sort puts sightings in path order, and returns the loop that they show.
func (o *pathOrder) sort(ports *Ports, routes *topo.Routes, list []Sighting, dst model.Addr) (loop []model.NodeID) {
	// The far end of the path is near the destination: by this order alone the
	// path is right unless packets left the shortest paths.
	o.byNear = o.byNear[:0]
	for i := range list {
		o.byNear = append(o.byNear, placed{list[i], distance(routes, list[i].Switch, dst)})
	}
	slices.SortFunc(o.byNear, func(a, b placed) int {
		if a.distance != b.distance {
			return b.distance - a.distance
		}
		if a.Switch < b.Switch {
			return -1
		}
		return 1
	})
	n := len(list)
	o.next, o.fed, o.done = resized(o.next, n), resized(o.fed, n), resized(o.done, n)
	clear(o.fed)
	clear(o.done)
	for i := range o.byNear {
		o.next[i] = o.successor(ports, i)
		if next := o.next[i]; next >= 0 && next != i {
			o.fed[next] = true
		}
	}
	end := 0
	follow := func(i int) {
		for i >= 0 && !o.done[i] {
			o.done[i] = true
			list[end] = o.byNear[i].Sighting
			end++
			i = o.next[i]
		}
		if i >= 0 && loop == nil {
			loop = o.loopFrom(i)
		}
	}
	for i := range n {
		if !o.fed[i] {
			follow(i)
		}
	}
	for i := range n { // a loop that nothing outside leads to
		follow(i)
	}
	return loop
}

// branches reports whether the sightings that were sorted are of several paths: they have
// several beginnings, and two are as far from the destination.
func (o *pathOrder) branches() bool {
	begins := 0
	for _, fed := range o.fed {
		if !fed {
			begins++
		}
	}
	if begins < 2 {
		return false
	}
	for i := 1; i < len(o.byNear); i++ {
		if d := o.byNear[i].distance; d < topo.MaxNodes && d == o.byNear[i-1].distance {
			return true
		}
	}
	return false
}

// successor finds the sighting that another one's packets went to: at the switch
// at the other end of the port they left by.
func (o *pathOrder) successor(ports *Ports, i int) int {
	s := &o.byNear[i]
	p := ports.Peer(s.Switch, s.Out)
	if p.Kind == NoPeer {
		return -1
	}
	return slices.IndexFunc(o.byNear, func(s placed) bool { return s.Switch == p.Node })
}

// loopFrom lists the loop that contains a sighting. A path that ran into one of its
// own hops gives that one as the entry; one that ran into a hop of another path gives
// no loop.
func (o *pathOrder) loopFrom(i int) (loop []model.NodeID) {
	for at := i; len(loop) < len(o.next); {
		loop = append(loop, o.byNear[at].Switch)
		if at = o.next[at]; at < 0 {
			return nil
		}
		if at == i {
			return loop
		}
	}
	return nil
}

// distance returns the number of links from a switch to the destination;
// topo.MaxNodes when there is no route.
func distance(routes *topo.Routes, sw model.NodeID, dst model.Addr) int {
	if d, ok := routes.Distance(sw, dst); ok {
		return d
	}
	return topo.MaxNodes
}
