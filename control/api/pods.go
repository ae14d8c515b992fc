package api

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/topo"
)

// PodsQuery selects a part of the fabric.
type PodsQuery struct {
	Pods []int `query:"pods" maxItems:"64" minimum:"-1" doc:"Comma-separated pods; -1: the nodes in no pod. Default: the whole fabric"`
}

// podSet is the part of a fabric that a client selects; nil is all of it.
type podSet struct {
	fabric *fabric
	pods   map[int]bool
}

// selectPods returns nil without pods. A pod that does not exist is an error.
func (s *Server) selectPods(pods []int) (*podSet, error) {
	if len(pods) == 0 {
		return nil, nil
	}
	set := &podSet{fabric: s.currentFabric(), pods: map[int]bool{}}
	for _, p := range pods {
		if p != noPod && !set.fabric.groups.has(p) {
			return nil, fmt.Errorf("pod %d: %w", p, ErrNotFound)
		}
		set.pods[p] = true
	}
	return set, nil
}

// noPod is the number of nodes in no pod, in requests.
const noPod = -1

func podOf(n *topo.Node) int {
	if n.Pod == topo.NoPod {
		return noPod
	}
	return n.Pod
}

// hasNode reports whether a node is in the set. A node that the topology does not
// have is in none.
func (s *podSet) hasNode(name string) bool {
	id, ok := s.fabric.ByName(name)
	return ok && s.pods[podOf(s.fabric.Node(id))]
}

// keepState removes what is not in the set. It leaves the lists themselves alone,
// which other answers share.
func (s *podSet) keepState(st *State) {
	if s == nil {
		return
	}
	nodes, ports := []NodeState{}, []PortState{}
	for i := range st.Nodes {
		if s.hasNode(st.Nodes[i].Name) {
			nodes = append(nodes, st.Nodes[i])
		}
	}
	name, in := "", false
	for i := range st.Ports {
		if p := &st.Ports[i]; p.Node != name { // ports are by node
			name, in = p.Node, s.hasNode(p.Node)
		}
		if in {
			ports = append(ports, st.Ports[i])
		}
	}
	st.Nodes, st.Ports = nodes, ports
}

// topology returns the nodes of the set and the links with an end in it.
func (s *podSet) topology() *Topology {
	t := newTopology(s.fabric.Fabric)
	t.Nodes = slices.DeleteFunc(t.Nodes, func(n Node) bool { return !s.hasNode(n.Name) })
	t.Links = slices.DeleteFunc(t.Links, func(l Link) bool { return !s.hasNode(l.A.Node) && !s.hasNode(l.B.Node) })
	return t
}
