package topo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Hop is a node on a path and the ports a packet uses there; port 0 is the
// node itself, where the path starts or ends.
type Hop struct {
	Node    model.NodeID
	In, Out model.PortID
}

// Path returns the path of a flow's packets from a node to the destination,
// both included. If there is none, it returns the hops up to where the packet
// is dropped, or up to the first node passed twice, and an error that wraps
// ErrNoRoute or ErrLoop.
func (r *Routes) Path(key model.FlowKey, from model.NodeID) ([]Hop, error) {
	return r.AppendPath(nil, key, from)
}

// AppendPath appends the hops of Path to the caller's slice.
func (r *Routes) AppendPath(hops []Hop, key model.FlowKey, from model.NodeID) ([]Hop, error) {
	start := len(hops)
	at := Hop{Node: from}
	for {
		out, ok := r.NextHop(at.Node, key)
		at.Out = out
		hops = append(hops, at)
		if out == 0 && ok {
			return hops, nil
		}
		n := &r.f.nodes[at.Node]
		if !n.Role.IsSwitch() && len(hops) > start+1 {
			return hops, fmt.Errorf("flow %v ends at %s, not at its destination: %w", key, n.Name, ErrNoRoute)
		}
		if !ok {
			return hops, fmt.Errorf("flow %v at %s: %w", key, n.Name, ErrNoRoute)
		}
		seen := slices.IndexFunc(hops[start:len(hops)-1], func(h Hop) bool { return h.Node == at.Node })
		if seen >= 0 {
			return hops, fmt.Errorf("flow %v: %w %s", key, ErrLoop, r.f.names(hops[start+seen:]))
		}
		peer := n.Ports[out-1].Peer
		at = Hop{Node: peer.Node, In: peer.Port}
	}
}

// names prints "s0 > s1 > s0".
func (f *Fabric) names(hops []Hop) string {
	names := make([]string, len(hops))
	for i := range hops {
		names[i] = f.nodes[hops[i].Node].Name
	}
	return strings.Join(names, " > ")
}

// Paths returns the paths that a flow may take from a node to dst, at most limit
// of them, and whether those are all. The order is by port numbers. Paths that
// end without a route or in a loop are omitted; Check finds them.
func (r *Routes) Paths(from model.NodeID, dst model.Addr, limit int) (paths [][]Hop, all bool) {
	var walk func(path []Hop, at Hop) bool
	walk = func(path []Hop, at Hop) bool {
		n := &r.f.nodes[at.Node]
		if slices.ContainsFunc(path, func(h Hop) bool { return h.Node == at.Node }) {
			return true
		}
		for _, out := range r.NextHops(at.Node, dst) {
			at.Out = out
			if out == 0 {
				if len(paths) == limit {
					return false
				}
				paths = append(paths, append(slices.Clone(path), at))
				return true
			}
			if !n.Role.IsSwitch() && len(path) > 0 {
				return true // a host does not forward
			}
			peer := n.Ports[out-1].Peer
			if !walk(append(path, at), Hop{Node: peer.Node, In: peer.Port}) {
				return false
			}
		}
		return true
	}
	all = walk(nil, Hop{Node: from})
	return paths, all
}
