package topo

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// NodeSpec declares a node. Build assigns addresses that are not set.
type NodeSpec struct {
	Name       string
	Role       Role
	Pod        int // from 0, or NoPod
	IPv4, IPv6 netip.Addr
	Nets       []netip.Prefix
}

// End is a node as one end of a link, with the name of its port; Build assigns
// an empty name.
type End struct {
	Node model.NodeID
	Port string
}

// Builder collects nodes and links and checks each as it is added. The first
// error sticks: Err returns it at once, for callers that know which line it
// came from, and Build returns it again.
type Builder struct {
	f         *Fabric
	err       error
	addrs     map[model.Addr]model.NodeID // addresses of nodes
	vips      map[model.Addr]model.NodeID // Nets of one address; the first owner
	portNames map[portName]bool           // names given by the caller
}

type portName struct {
	node model.NodeID
	name string
}

// NewBuilder starts an empty fabric.
func NewBuilder(name string) *Builder {
	b := &Builder{
		f:         &Fabric{name: name, byName: make(map[string]model.NodeID)},
		addrs:     make(map[model.Addr]model.NodeID),
		vips:      make(map[model.Addr]model.NodeID),
		portNames: make(map[portName]bool),
	}
	if err := checkFabricName(name); err != nil {
		b.fail(err)
	}
	return b
}

// Err returns the first error so far.
func (b *Builder) Err() error { return b.err }

// ByName finds a node added before.
func (b *Builder) ByName(name string) (model.NodeID, bool) { return b.f.ByName(name) }

// AddNode adds a node. Ids count up from 0 in the order of calls.
func (b *Builder) AddNode(s NodeSpec) model.NodeID {
	id := model.NodeID(len(b.f.nodes))
	if err := b.checkNode(s); err != nil {
		b.fail(err)
		return id
	}
	n := Node{ID: id, Name: s.Name, Role: s.Role, Tier: roleTiers[s.Role], Pod: s.Pod}
	if s.IPv4.IsValid() {
		n.IPv4 = model.AddrOf(s.IPv4)
		b.addrs[n.IPv4] = id
	}
	if s.IPv6.IsValid() {
		n.IPv6 = model.AddrOf(s.IPv6)
		b.addrs[n.IPv6] = id
	}
	for _, p := range s.Nets {
		n.Nets = append(n.Nets, p.Masked())
		if _, known := b.vips[model.AddrOf(p.Addr())]; p.IsSingleIP() && !known {
			b.vips[model.AddrOf(p.Addr())] = id
		}
	}
	b.f.byName[s.Name] = id
	b.f.nodes = append(b.f.nodes, n)
	return id
}

// Connect links two nodes; the ports get default names.
func (b *Builder) Connect(a, z model.NodeID, s LinkSpec) { b.AddLink(End{Node: a}, End{Node: z}, s) }

// AddLink links two nodes by the next free port of each.
func (b *Builder) AddLink(a, z End, s LinkSpec) {
	if err := b.checkLink(a, z, s); err != nil {
		b.fail(err)
		return
	}
	link := len(b.f.links)
	pa, pz := b.addPort(a, link, s), b.addPort(z, link, s)
	b.f.Port(pa).Peer, b.f.Port(pz).Peer = pz, pa
	b.f.links = append(b.f.links, Link{A: pa, B: pz, LinkSpec: s})
}

func (b *Builder) addPort(e End, link int, s LinkSpec) model.Port {
	n := &b.f.nodes[e.Node]
	id := model.Port{Node: e.Node, Port: model.PortID(len(n.Ports) + 1)}
	n.Ports = append(n.Ports, Port{ID: id.Port, Name: e.Port, MAC: macOf(id), Link: link, LinkSpec: s})
	if e.Port != "" {
		b.portNames[portName{e.Node, e.Port}] = true
	}
	return id
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Build assigns missing addresses, port names and tiers and returns the fabric.
// The Builder must not be used afterwards.
func (b *Builder) Build() (*Fabric, error) {
	if b.err != nil {
		return nil, b.err
	}
	f := b.f
	if len(f.nodes) == 0 {
		return nil, errors.New("fabric has no node, want at least one")
	}
	f.self = make([]model.NodeID, len(f.nodes))
	for i := range f.nodes {
		n := &f.nodes[i]
		f.self[i] = n.ID
		if n.Role.IsSwitch() {
			f.switches = append(f.switches, n.ID)
		} else {
			f.hosts = append(f.hosts, n.ID)
		}
		b.namePorts(n)
	}
	b.chooseAddrs()
	f.byAddr = newAddrIndex(f.nodes)
	f.indexNets()
	f.setTiers()
	return f, nil
}

// namePorts names the ports that have no name, skipping names that the caller
// gave to other ports of the node.
func (b *Builder) namePorts(n *Node) {
	next := 1
	for i := range n.Ports {
		for n.Ports[i].Name == "" {
			name := n.Role.PortName(next)
			if b.portNames[portName{n.ID, name}] {
				next++
				continue
			}
			n.Ports[i].Name = name
		}
		next++
	}
}

func (b *Builder) chooseAddrs() {
	f := b.f
	taken := func(a model.Addr) bool {
		_, node := b.addrs[a]
		_, vip := b.vips[a]
		return node || vip
	}
	var spare spareAddrs
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.IPv4 == (model.Addr{}) {
			n.IPv4 = spare.nextFree(n.ID, taken)
			b.addrs[n.IPv4] = n.ID
		}
		if n.IPv6 != (model.Addr{}) {
			continue
		}
		// A derived address can only clash with one that the caller gave to
		// another node: then the next /64 is free, as IPv4 addresses differ.
		for n.IPv6 = IPv6For(n.IPv4); taken(n.IPv6); {
			n.IPv6.Hi++
		}
		b.addrs[n.IPv6] = n.ID
	}
}

// indexNets lists each prefix once with all its owners.
func (f *Fabric) indexNets() {
	for i := range f.nodes {
		for _, p := range f.nodes[i].Nets {
			at, ok := f.nets.Get(p)
			if !ok {
				at = len(f.owned)
				f.owned = append(f.owned, ownedNet{prefix: p})
				f.nets.Set(p, at)
			}
			f.owned[at].owners = append(f.owned[at].owners, model.NodeID(i))
		}
	}
}

// setTiers sets the tier of role Switch to the distance from the nearest host,
// or 1 where no host is connected.
func (f *Fabric) setTiers() {
	dist := make([]int, len(f.nodes))
	queue := slices.Clone(f.hosts)
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for i := range f.nodes[id].Ports {
			peer := &f.nodes[f.nodes[id].Ports[i].Peer.Node]
			if peer.Role.IsSwitch() && dist[peer.ID] == 0 {
				dist[peer.ID] = dist[id] + 1
				queue = append(queue, peer.ID)
			}
		}
	}
	for i := range f.nodes {
		if n := &f.nodes[i]; n.Role == Switch {
			n.Tier = cmp.Or(dist[i], 1)
		}
	}
}
