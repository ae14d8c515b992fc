package flows

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Guide says in which other flowsets to look for a flow that was found in one
// of them. A flowset that it omits is not searched; a flowset that it names in
// vain costs a filter lookup. Neither makes a result wrong.
type Guide struct {
	// adjacent lists, for each flowset, those its flows are passed on to. Each
	// of them passes them on in turn.
	adjacent [][]int
	// path, where it is not nil, appends all flowsets that a flow may be in,
	// so that the flow need be passed on only once.
	path func(key model.FlowKey, dst []int) []int
}

// NeighbourGuide is for fabrics whose routes are not known: flows are searched
// in all switches that share a link with the one they were found in.
func NeighbourGuide(f *topo.Fabric, sets []*Flowset) Guide {
	of := bySwitch(sets)
	adjacent := make([][]int, len(sets))
	for i, fs := range sets {
		if !f.HasNode(fs.Switch) {
			continue
		}
		seen := map[model.NodeID]bool{fs.Switch: true}
		for _, p := range f.Node(fs.Switch).Ports {
			if !seen[p.Peer.Node] {
				seen[p.Peer.Node] = true
				adjacent[i] = append(adjacent[i], of[p.Peer.Node]...)
			}
		}
		for _, j := range of[fs.Switch] { // watched port by port
			if j != i {
				adjacent[i] = append(adjacent[i], j)
			}
		}
	}
	return Guide{adjacent: adjacent}
}

// RouteGuide is for known routes: flows are searched on the path that their
// packets should take. Misrouted packets are not found by it; a NeighbourGuide
// after it finds them.
func RouteGuide(r *topo.Routes, sets []*Flowset) Guide {
	of := bySwitch(sets)
	path := func(key model.FlowKey, dst []int) []int {
		var buffer [16]topo.Hop
		for _, from := range r.Fabric().Owners(key.Src) {
			// A path that ends early is still a path up to there.
			hops, _ := r.AppendPath(buffer[:0], key, from)
			for _, h := range hops {
				dst = append(dst, of[h.Node]...)
			}
		}
		return dst
	}
	return Guide{path: path}
}

func bySwitch(sets []*Flowset) map[model.NodeID][]int {
	of := map[model.NodeID][]int{}
	for i, fs := range sets {
		of[fs.Switch] = append(of[fs.Switch], i)
	}
	return of
}
