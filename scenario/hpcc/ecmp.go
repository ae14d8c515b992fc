package hpcc

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// murmur3 is MurmurHash3_x86_32 of whole words, each little-endian in memory.
func murmur3(seed uint32, words ...uint32) uint32 {
	h := seed
	for _, k := range words {
		k = bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	h ^= uint32(len(words)) * 4
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// hostSeed is the seed of ns-3's hash; hosts with several ports choose by it.
const hostSeed = 0x8badf00d

// ecmp reproduces the original's ECMP: a hash of addresses and ports, seeded
// with the switch's id, modulo the next hops in the order in which it found
// them.
//
// It finds them by a breadth-first search from each destination host, and
// visits the neighbours of a node by their addresses in memory. Only those of
// switches matter. A switch there is an object of 2 MB, which glibc's malloc
// takes from the kernel one by one, from high addresses down; so a later switch
// comes first. Here that order is explicit: descending id.
type ecmp struct {
	fabric *topo.Fabric
	routes *topo.Routes
	// visited is, by node, when the search from hosts with the same links
	// visited each node; nil for nodes that are not hosts.
	visited [][]uint32
}

// newECMP prepares the order for a fabric without some of its links. The routes
// are set once they are computed with its hash.
func newECMP(f *topo.Fabric, down []int) *ecmp {
	s := &ecmp{fabric: f, visited: make([][]uint32, len(f.Nodes()))}
	next := neighbours(f, down)
	known := make(map[string][]uint32) // hosts on the same switches share a search
	for _, h := range f.Hosts() {
		key := string(appendIDs(nil, next[h]))
		if known[key] == nil {
			known[key] = search(next, h)
		}
		s.visited[h] = known[key]
	}
	return s
}

// neighbours lists the switches next to each node, in the order the original
// visits them.
func neighbours(f *topo.Fabric, down []int) [][]model.NodeID {
	gone := make([]bool, len(f.Links()))
	for _, l := range down {
		gone[l] = true
	}
	next := make([][]model.NodeID, len(f.Nodes()))
	for i := range f.Nodes() {
		for _, p := range f.Node(model.NodeID(i)).Ports {
			if f.Node(p.Peer.Node).Role.IsSwitch() && !gone[p.Link] {
				next[i] = append(next[i], p.Peer.Node)
			}
		}
		slices.SortFunc(next[i], func(a, b model.NodeID) int { return cmp.Compare(b, a) })
	}
	return next
}

// search numbers the switches in the order of a breadth-first search from a
// host, from 1; 0 is not visited.
func search(next [][]model.NodeID, from model.NodeID) []uint32 {
	seen := make([]uint32, len(next))
	queue := []model.NodeID{from}
	for i := 0; i < len(queue); i++ {
		for _, n := range next[queue[i]] {
			if seen[n] == 0 {
				queue = append(queue, n)
				seen[n] = uint32(len(queue) - 1)
			}
		}
	}
	return seen
}

func appendIDs(b []byte, ids []model.NodeID) []byte {
	for _, id := range ids {
		b = append(b, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	}
	return b
}

// hash is a topo.Hash. Routes use hash mod n of the ports in ascending order;
// the result makes that the port that the original uses.
func (s *ecmp) hash(key model.FlowKey, node model.NodeID, seed uint64) uint64 {
	if !key.Src.Is4() || !key.Dst.Is4() {
		return key.Hash(seed) // the original does not know it
	}
	ports := s.routes.NextHops(node, key.Dst)
	if len(ports) < 2 {
		return 0
	}
	start := uint32(node)
	if !s.fabric.Node(node).Role.IsSwitch() {
		start = hostSeed
	}
	h := uint64(murmur3(start, key.Src.V4(), key.Dst.V4(), uint32(key.SrcPort)|uint32(key.DstPort)<<16))
	n := uint64(len(ports))
	pick := h % n
	dst, ok := s.fabric.ByAddr(key.Dst)
	if !ok || s.visited[dst] == nil {
		return h
	}
	// The rest of h is kept, for tables with more or fewer ports than intended.
	return h - pick + uint64(s.rank(node, ports, s.visited[dst], int(pick)))
}

// rank returns the index, among ascending ports, of the next hop number pick in
// the order of visits. Ports to the same neighbour keep their order.
func (s *ecmp) rank(node model.NodeID, ports []model.PortID, visited []uint32, pick int) int {
	at := s.fabric.Node(node)
	var few [32]uint32
	when := few[:0]
	up, down := true, true
	for i, p := range ports {
		when = append(when, visited[at.Ports[p-1].Peer.Node])
		if i > 0 {
			up = up && when[i-1] < when[i]
			down = down && when[i-1] > when[i]
		}
	}
	// Files usually list links in the order of the switches, so it is nearly
	// always one of these.
	if up {
		return pick
	}
	if down {
		return len(ports) - 1 - pick
	}
	for i, t := range when {
		before := 0
		for j, u := range when {
			if u < t || u == t && j < i {
				before++
			}
		}
		if before == pick {
			return i
		}
	}
	panic("hpcc: ports without an order")
}

// routesOf computes the fabric's routes as the original does. It uses only the
// last of parallel links.
func routesOf(f *topo.Fabric, overrides []topo.Override, without ...int) (*topo.Routes, error) {
	down := append(hiddenPorts(f), without...)
	s := newECMP(f, down)
	r, err := topo.NewRoutes(f, topo.RouteConfig{Overrides: overrides, Down: down, Hash: s.hash})
	s.routes = r
	return r, err
}

// hiddenPorts lists the links that a later link between the same nodes hides.
func hiddenPorts(f *topo.Fabric) (links []int) {
	type ends struct{ a, b model.NodeID }
	last := make(map[ends]int)
	for i, l := range f.Links() {
		e := ends{min(l.A.Node, l.B.Node), max(l.A.Node, l.B.Node)}
		if before, twice := last[e]; twice {
			links = append(links, before)
		}
		last[e] = i
	}
	return links
}
