package topo

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/lpm"
)

// Hash spreads flows over equal-cost ports: the node uses port hash mod n of n.
// The seed is the node's. A Hash must be a pure function of its arguments.
type Hash func(key model.FlowKey, node model.NodeID, seed uint64) uint64

// RouteConfig configures the computation of routes. The zero value is the
// default.
type RouteConfig struct {
	Seed      uint64     // of the fabric; every node's seed is derived from it
	Overrides []Override // static routes
	Down      []int      // links that routes avoid, as indexes in Fabric.Links
	Hash      Hash       // nil: model.FlowKey.Hash, with one more mixing step

	// Moved maps addresses to the hosts where they are now, instead of where the
	// fabric says.
	Moved map[model.Addr]model.NodeID
}

// Routes are the intended routes of a fabric: shortest paths by hop count with
// ECMP, no transit through hosts, static overrides on top. They are immutable,
// so any number of goroutines may read them.
//
// Destinations that attach to the same switches share their routes up to the
// last hop. A class is such a set of switches; a table of switches × classes
// holds, for each pair, a set of ports in one shared slab. A fat-tree of k=32
// has 8,192 hosts but 1,280 classes, and a few dozen different port sets.
type Routes struct {
	f     *Fabric
	cfg   RouteConfig
	seeds []uint64 // by node
	down  []bool   // by link; nil if none

	row      []int32 // by node: its row in table, -1 for hosts
	classes  int
	table    []uint32       // [row*classes+class]: where in slab the ports are, or noRoute or atLastHop
	dist     []uint16       // [row*classes+class]: hops to the class, or unreachable
	slab     []model.PortID // count, ports…, count, ports…
	dests    []dest         // by node, then by Fabric.owned
	local    []localPorts
	lastHops [][]model.NodeID // by class
	transit  bool             // some last hop also has routes over other switches

	overrides []*lpm.Table[uint32] // by row: overrides, as offsets in slab; nil if there are none
}

// dest is a node or a prefix as a destination.
type dest struct {
	class uint32
	extra uint16 // hops from the class's switches to the destination
	local uint32 // first of its last hops in Routes.local
	n     uint32 // and how many
}

// localPorts are the ports by which one last hop delivers to a destination.
type localPorts struct {
	row uint32
	set uint32 // offset in slab
}

// Offsets in slab with a fixed meaning.
const (
	noRoute   = 0 // an empty set
	atLastHop = 1 // in table only: the ports are the destination's, in local
	delivered = 2 // {0}: the packet has arrived
	slabStart = 4
)

const unreachable = ^uint16(0)

// ErrNoRoute is wrapped by errors about a packet that a node cannot forward,
// ErrLoop by those about a packet that returns to a node it has passed.
var (
	ErrNoRoute = errors.New("no route")
	ErrLoop    = errors.New("forwarding loop")
)

// Fabric returns the fabric the routes are for.
func (r *Routes) Fabric() *Fabric { return r.f }

// Config returns the configuration of the routes; callers must not modify its
// slices, nor Moved.
func (r *Routes) Config() RouteConfig { return r.cfg }

// NextHop returns the port by which a node forwards a flow's packets. Port 0
// with true means that they have arrived: the node owns the destination. A node
// that the fabric does not have forwards nothing. It allocates nothing.
func (r *Routes) NextHop(node model.NodeID, key model.FlowKey) (model.PortID, bool) {
	if !r.f.HasNode(node) {
		return 0, false
	}
	row := r.row[node]
	if row < 0 {
		return r.hostNextHop(node, key)
	}
	set := r.lookup(uint32(row), node, key.Dst)
	n := uint32(r.slab[set])
	if n == 0 {
		return 0, false
	}
	// A single port goes through the hash, too: on mixed traffic the branch
	// mispredictions would cost more than the hash.
	return r.slab[set+1+r.choose(node, key, n)], true
}

// NextHops returns all ports by which a node may forward packets to dst,
// ascending; port 0 alone means that they have arrived, none that there is no
// route, or no such node. For switches it allocates nothing.
func (r *Routes) NextHops(node model.NodeID, dst model.Addr) []model.PortID {
	if !r.f.HasNode(node) {
		return nil
	}
	row := r.row[node]
	if row < 0 {
		return r.hostNextHops(node, dst)
	}
	set := r.lookup(uint32(row), node, dst)
	return r.ports(set)
}

// Pick selects one of the ports for a flow with the node's ECMP hash, for tables
// that replace the intended ports by others. There must be at least one.
func (r *Routes) Pick(node model.NodeID, key model.FlowKey, ports []model.PortID) model.PortID {
	if len(ports) == 1 {
		return ports[0]
	}
	return ports[r.choose(node, key, uint32(len(ports)))]
}

// choose returns a number below n. The rule is modulo, not multiply-and-shift:
// it is what switches and simulators do, so a Hash can imitate one of them
// exactly; with 64 bits the bias is negligible.
func (r *Routes) choose(node model.NodeID, key model.FlowKey, n uint32) uint32 {
	var h uint64
	if r.cfg.Hash == nil {
		h = key.Hash(r.seeds[node])
	} else {
		h = r.cfg.Hash(key, node, r.seeds[node])
	}
	if n&(n-1) == 0 {
		return uint32(h) & (n - 1) // the same remainder without a division
	}
	return uint32(h % uint64(n))
}

// ports returns the set at an offset in slab.
func (r *Routes) ports(set uint32) []model.PortID {
	end := set + 1 + uint32(r.slab[set])
	return r.slab[set+1 : end : end]
}

// lookup returns the offset in slab of a switch's next hops.
func (r *Routes) lookup(row uint32, node model.NodeID, dst model.Addr) uint32 {
	dst = r.resolveMoved(dst)
	if r.overrides != nil && r.overrides[row] != nil {
		if set, ok := r.overrides[row].Lookup(dst); ok && !r.isNodeAddr(node, dst) {
			return set
		}
	}
	d := r.dest(dst)
	if d == nil {
		return noRoute
	}
	return r.computed(row, d)
}

// computed is lookup without overrides.
func (r *Routes) computed(row uint32, d *dest) uint32 {
	set := r.table[int(row)*r.classes+int(d.class)]
	if set != atLastHop {
		return set
	}
	for _, l := range r.local[d.local : d.local+d.n] {
		if l.row == row {
			return l.set
		}
	}
	return noRoute
}

func (r *Routes) isNodeAddr(node model.NodeID, a model.Addr) bool {
	return a == r.f.nodes[node].IPv4 || a == r.f.nodes[node].IPv6
}

// dest finds the destination record of an address, or nil.
func (r *Routes) dest(a model.Addr) *dest {
	a = r.resolveMoved(a)
	if id, ok := r.f.byAddr.lookup(a); ok {
		return &r.dests[id]
	}
	if i, ok := r.f.nets.Lookup(a); ok {
		return &r.dests[len(r.f.nodes)+i]
	}
	return nil
}

// hostCost is the number of hops through one port of a host, or unreachable.
// Hosts do not forward: the peer is a switch, or owns the destination.
func (r *Routes) hostCost(p *Port, d *dest, dst model.Addr) int {
	if r.down != nil && r.down[p.Link] {
		return int(unreachable)
	}
	row := r.row[p.Peer.Node]
	if row < 0 {
		if r.Owns(p.Peer.Node, dst) {
			return 1
		}
		return int(unreachable)
	}
	h := r.dist[int(row)*r.classes+int(d.class)]
	if h == unreachable {
		return int(unreachable)
	}
	return int(h) + int(d.extra) + 1
}

// hostCosts returns a host's least cost to a destination and how many of its
// ports have it.
func (r *Routes) hostCosts(node model.NodeID, d *dest, dst model.Addr) (least, n int) {
	least = int(unreachable)
	ports := r.f.nodes[node].Ports
	for i := range ports {
		switch c := r.hostCost(&ports[i], d, dst); {
		case c < least:
			least, n = c, 1
		case c == least && c != int(unreachable):
			n++
		}
	}
	return least, n
}

func (r *Routes) hostNextHop(node model.NodeID, key model.FlowKey) (model.PortID, bool) {
	d := r.dest(key.Dst)
	if d == nil {
		return 0, false
	}
	if r.Owns(node, key.Dst) {
		return 0, true
	}
	least, n := r.hostCosts(node, d, key.Dst)
	if n == 0 {
		return 0, false
	}
	skip := uint32(0)
	if n > 1 {
		skip = r.choose(node, key, uint32(n))
	}
	ports := r.f.nodes[node].Ports
	for i := range ports {
		if r.hostCost(&ports[i], d, key.Dst) != least {
			continue
		}
		if skip == 0 {
			return ports[i].ID, true
		}
		skip--
	}
	panic("topo: a host has fewer equal-cost ports than it counted")
}

func (r *Routes) hostNextHops(node model.NodeID, dst model.Addr) (ports []model.PortID) {
	d := r.dest(dst)
	if d == nil {
		return nil
	}
	if r.Owns(node, dst) {
		return r.ports(delivered)
	}
	least, n := r.hostCosts(node, d, dst)
	for i := range r.f.nodes[node].Ports {
		if p := &r.f.nodes[node].Ports[i]; n > 0 && r.hostCost(p, d, dst) == least {
			ports = append(ports, p.ID)
		}
	}
	return ports
}

// Distance returns the number of links on a shortest path from a node to the
// nearest owner of dst; false if there is no route, or no such node. Overrides do
// not count.
func (r *Routes) Distance(node model.NodeID, dst model.Addr) (hops int, ok bool) {
	d := r.dest(dst)
	if d == nil || !r.f.HasNode(node) {
		return 0, false
	}
	if r.Owns(node, dst) {
		return 0, true
	}
	if row := r.row[node]; row >= 0 {
		h := r.dist[int(row)*r.classes+int(d.class)]
		return int(h) + int(d.extra), h != unreachable
	}
	least, n := r.hostCosts(node, d, dst)
	return least, n > 0
}

// ExpectedLastHops returns the switches that are valid last hops to dst,
// ascending: those attached to an owner, or an owner itself. A trace that ends
// elsewhere lost its packet; so did one that ends at the old location of a moved
// address, where no host answers any more. It allocates nothing.
func (r *Routes) ExpectedLastHops(dst model.Addr) []model.NodeID {
	d := r.dest(dst)
	if d == nil {
		return nil
	}
	return r.lastHops[d.class]
}
