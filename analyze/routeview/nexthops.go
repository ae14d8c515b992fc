package routeview

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/topo"
)

// compareRoutes orders routes as BGP's decision does, the best first, as far as monitoring shows
// it: weights, MED and the cost to the next hop are not known. Routes that are equal are all
// used: fabrics have multipath.
func compareRoutes(a, b *bgproute.Route) int {
	internal := func(r *bgproute.Route) int {
		if r.Internal {
			return 1
		}
		return 0
	}
	return cmp.Or(
		-cmp.Compare(a.LocalPref, b.LocalPref), cmp.Compare(a.PathLen, b.PathLen), cmp.Compare(a.Origin, b.Origin), cmp.Compare(internal(a), internal(b)),
	)
}

// nextHops returns the neighbours that a switch forwards to by an entry, ascending, and whether
// there are others: next hops of no neighbour that is known.
func (v *View) nextHops(sw model.NodeID, t *table, e *entry) (list []model.NodeID, others bool) {
	best := &e.paths[0]
	for i := range e.paths {
		if compareRoutes(&e.paths[i].Route, &best.Route) < 0 {
			best = &e.paths[i]
		}
	}
	for i := range e.paths {
		p := &e.paths[i]
		if compareRoutes(&p.Route, &best.Route) != 0 {
			continue
		}
		if id, ok := v.neighbour(sw, t, p); ok {
			list = append(list, id)
		} else {
			others = true
		}
	}
	slices.Sort(list)
	return slices.Compact(list), others
}

// neighbour returns the node that a path leads to: by the address of its next hop, or by the
// BGP identifier of its peer, where the next hop is the peer itself.
func (v *View) neighbour(sw model.NodeID, t *table, p *path) (model.NodeID, bool) {
	if id, ok := v.nodeAt(sw, p.NextHop); ok {
		return id, true
	}
	if peer := t.peers[p.peer]; peer != nil && (p.NextHop == p.peer || p.NextHop.IsLinkLocalUnicast()) {
		return v.nodeAt(sw, peer.id)
	}
	return 0, false
}

// nodeAt returns the neighbour of a switch with an address.
func (v *View) nodeAt(sw model.NodeID, a netip.Addr) (model.NodeID, bool) {
	if !a.IsValid() {
		return 0, false
	}
	id, ok := v.fabric.ByAddr(model.AddrOf(a))
	if !ok {
		id, ok = v.owner[a]
	}
	return id, ok && isNeighbour(v.fabric.Node(sw), id)
}

func isNeighbour(n *topo.Node, id model.NodeID) bool {
	return slices.ContainsFunc(n.Ports, func(p topo.Port) bool { return p.Peer.Node == id })
}
