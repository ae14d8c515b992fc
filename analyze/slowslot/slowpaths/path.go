package slowpaths

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
	// Several is set if the packets took several paths at once.
	Several bool
}

// FlowPath returns the path of a flow in this slot under the routes of its time.
func (m *Map) FlowPath(key model.FlowKey, routes *topo.Routes) Path {
	list := slices.Clone(m.seen[key])
	// The far end of the path is near the destination: by this order alone the
	// path is right unless packets left the shortest paths.
	slices.SortFunc(list, func(a, b Sighting) int {
		return cmp.Or(cmp.Compare(distance(routes, b.Switch, key), distance(routes, a.Switch, key)),
			cmp.Compare(a.Switch, b.Switch))
	})
	f := routes.Fabric()
	next := make([]int, len(list)) // the sighting that the flow's packets went to, or -1
	fed := make([]bool, len(list)) // some other sighting leads here
	for i := range list {
		next[i] = successor(f, list, i)
	}
	for i, n := range next {
		if n >= 0 && n != i {
			fed[n] = true
		}
	}
	var t Path
	done := make([]bool, len(list))
	follow := func(i int) {
		for i >= 0 && !done[i] {
			done[i] = true
			t.Hops = append(t.Hops, list[i])
			i = next[i]
		}
		if i >= 0 && t.Loop == nil {
			t.Loop = loopFrom(list, next, i)
		}
	}
	for i := range list {
		if !fed[i] {
			follow(i)
		}
	}
	for i := range list { // a loop that nothing outside leads to
		follow(i)
	}
	for i := 1; i < len(list) && t.Loop == nil; i++ {
		d := distance(routes, list[i].Switch, key)
		begins := len(list)
		for _, fed := range fed {
			if fed {
				begins--
			}
		}
		if d < topo.MaxNodes && d == distance(routes, list[i-1].Switch, key) && begins > 1 {
			t.Several = true
		}
	}
	return t
}

// successor finds the sighting that list[i]'s packets went to: at the switch
// at the other end of the port they left by.
func successor(f *topo.Fabric, list []Sighting, i int) int {
	if list[i].Out == 0 {
		return -1
	}
	p := f.Port(model.Port{Node: list[i].Switch, Port: list[i].Out})
	if p == nil {
		return -1
	}
	return slices.IndexFunc(list, func(s Sighting) bool { return s.Switch == p.Peer.Node })
}

// loopFrom lists the loop that contains list[i]. A path that ran into one of its
// own hops gives i as the entry; one that ran into a hop of another path gives
// no loop.
func loopFrom(list []Sighting, next []int, i int) (loop []model.NodeID) {
	for at, n := i, 0; n < len(list); n++ {
		loop = append(loop, list[at].Switch)
		if at = next[at]; at < 0 {
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
func distance(routes *topo.Routes, sw model.NodeID, key model.FlowKey) int {
	if d, ok := routes.Distance(sw, key.Dst); ok {
		return d
	}
	return topo.MaxNodes
}
