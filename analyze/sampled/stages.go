package sampled

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// route is what flows of one source and destination pass.
type route struct {
	src model.NodeID
	dst model.Addr
}

// maxRoutes and maxStages limit what is remembered of routes, and how long one may be.
const (
	maxRoutes = 1 << 16
	maxStages = 16
)

// stageTable remembers the stages of routes.
type stageTable struct {
	routes *topo.Routes
	known  map[route][][]model.NodeID
}

// of returns the stages of a flow's route, from its source on; nil: the source is no host of
// the fabric.
func (t *stageTable) of(r *topo.Routes, key *model.FlowKey) [][]model.NodeID {
	if t.routes != r || len(t.known) >= maxRoutes {
		t.routes, t.known = r, map[route][][]model.NodeID{}
	}
	src, known := r.Fabric().ByAddr(key.Src)
	if !known || r.Fabric().Node(src).Role.IsSwitch() {
		return nil
	}
	at := route{src, key.Dst}
	list, known := t.known[at]
	if !known {
		list = stages(r, src, key.Dst)
		t.known[at] = list
	}
	return list
}

// stages walks the routes from a host, all equal-cost ports at once. Of a route out of the
// fabric the switches of the host are known.
func stages(r *topo.Routes, src model.NodeID, dst model.Addr) (list [][]model.NodeID) {
	f := r.Fabric()
	here := []model.NodeID{src}
	if len(r.NextHops(src, dst)) == 0 {
		return [][]model.NodeID{attached(f, src)}
	}
	for len(list) < maxStages {
		var next []model.NodeID
		for _, n := range here {
			for _, p := range r.NextHops(n, dst) {
				peer := f.Port(model.Port{Node: n, Port: p}).Peer.Node
				if f.Node(peer).Role.IsSwitch() && !slices.Contains(next, peer) {
					next = append(next, peer)
				}
			}
		}
		if len(next) == 0 {
			return list
		}
		slices.Sort(next)
		list = append(list, next)
		here = next
	}
	return nil // a loop: no order of switches
}

// attached returns the switches that a host is connected to.
func attached(f *topo.Fabric, host model.NodeID) (list []model.NodeID) {
	for i := range f.Node(host).Ports {
		if peer := f.Node(host).Ports[i].Peer.Node; f.Node(peer).Role.IsSwitch() && !slices.Contains(list, peer) {
			list = append(list, peer)
		}
	}
	return list
}
