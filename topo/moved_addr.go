package topo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Moved addresses are at another host than the fabric says, such as those of
// migrated virtual machines. Packets to a moved address take the path of packets
// to the new host's own address, including static routes to it. Static routes to
// the moved address itself belong to its old location and no longer apply.

// resolveMoved returns the address by which a destination is looked up.
func (r *Routes) resolveMoved(a model.Addr) model.Addr {
	if len(r.cfg.Moved) == 0 {
		return a
	}
	return r.lookupMoved(a)
}

// lookupMoved is a separate function so that resolveMoved can be inlined.
func (r *Routes) lookupMoved(a model.Addr) model.Addr {
	id, moved := r.cfg.Moved[a]
	switch {
	case !moved:
		return a
	case a.Is4():
		return r.f.nodes[id].IPv4
	default:
		return r.f.nodes[id].IPv6
	}
}

// Owners is Fabric.Owners with moved addresses at their new hosts. It allocates
// nothing.
func (r *Routes) Owners(a model.Addr) []model.NodeID { return r.f.Owners(r.resolveMoved(a)) }

// Owns reports whether packets to a are for this node.
func (r *Routes) Owns(id model.NodeID, a model.Addr) bool { return r.f.Owns(id, r.resolveMoved(a)) }

func (b *routeBuilder) checkMoved() error {
	// Sorted, so that the same mistake is reported every time.
	for _, a := range slices.SortedFunc(maps.Keys(b.cfg.Moved), compareAddrs) {
		id := b.cfg.Moved[a]
		if !b.f.HasNode(id) || b.f.Node(id).Role.IsSwitch() {
			return fmt.Errorf("address %v moved to node %d, want a host", a, id)
		}
		if own, taken := b.f.ByAddr(a); taken {
			return fmt.Errorf("address %v moved, but it is the address of %s itself, want one of a net", a, b.f.Node(own).Name)
		}
	}
	return nil
}

func compareAddrs(a, b model.Addr) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}
