package topo

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/lpm"
)

// Limits of a fabric. They keep a small file from claiming all of a machine's
// memory; a fat-tree of k=64 (70,656 nodes, 196,608 links) fits.
const (
	MaxNodes = 1 << 17
	MaxLinks = 1 << 20
	MaxPorts = 1<<16 - 1 // of one node: model.PortID has 16 bits
)

// NoPod is the Pod of a node that is in no pod.
const NoPod = -1

// Fabric is a set of nodes and the links between them. A Builder makes it;
// after that it is immutable, so any number of goroutines may read it. Its
// methods return shared slices: callers must not modify them.
type Fabric struct {
	name     string
	nodes    []Node
	links    []Link
	hosts    []model.NodeID
	switches []model.NodeID

	byName map[string]model.NodeID
	byAddr addrIndex
	nets   lpm.Table[int] // index into owned
	owned  []ownedNet
	self   []model.NodeID // self[i] = i, so that one owner is a slice without allocation
}

// ownedNet is a prefix and the nodes that own it, ascending.
type ownedNet struct {
	prefix netip.Prefix
	owners []model.NodeID
}

// Node is a host or a switch.
type Node struct {
	ID   model.NodeID // index in Fabric.Nodes
	Name string
	Role Role
	Tier int // height in a drawing: hosts 0
	Pod  int // from 0, or NoPod

	// A host's address, or a switch's loopback; unique in the fabric.
	IPv4, IPv6 model.Addr

	// Nets are prefixes reachable through the node: 0.0.0.0/0 on a host that
	// represents the outside, a virtual address on a mux. Several nodes may own
	// the same one (anycast).
	Nets []netip.Prefix

	Ports []Port // Ports[0] is port 1
}

// Port is one end of a link.
type Port struct {
	ID   model.PortID // from 1, in the order the node's links were declared
	Name string       // unique within the node
	MAC  model.MAC
	Peer model.Port
	Link int // index in Fabric.Links
	LinkSpec
}

// LinkSpec holds the properties of a link, the same in both directions.
type LinkSpec struct {
	Rate      model.Rate    // above 0
	Delay     time.Duration // propagation, at least 0
	ErrorRate float64       // probability that a packet is lost on the wire, 0 to 1
}

// Link joins two ports.
type Link struct {
	A, B model.Port
	LinkSpec
}

// Name returns the fabric's name, which may be empty.
func (f *Fabric) Name() string { return f.name }

// Nodes returns all nodes, by id.
func (f *Fabric) Nodes() []Node { return f.nodes }

// Links returns all links, in the order they were declared.
func (f *Fabric) Links() []Link { return f.links }

// Hosts returns the nodes that carry no transit traffic, ascending.
func (f *Fabric) Hosts() []model.NodeID { return f.hosts }

// Switches returns the nodes that forward, ascending.
func (f *Fabric) Switches() []model.NodeID { return f.switches }

// Node returns a node by id. It panics if there is none.
func (f *Fabric) Node(id model.NodeID) *Node { return &f.nodes[id] }

// HasNode reports whether the fabric has a node with this id.
func (f *Fabric) HasNode(id model.NodeID) bool { return int64(id) < int64(len(f.nodes)) }

// Port returns a port, or nil if there is none.
func (f *Fabric) Port(p model.Port) *Port {
	if !f.HasNode(p.Node) {
		return nil
	}
	return f.nodes[p.Node].Port(p.Port)
}

// Port returns the node's port by number, or nil if there is none.
func (n *Node) Port(id model.PortID) *Port {
	if id == 0 || int(id) > len(n.Ports) {
		return nil
	}
	return &n.Ports[id-1]
}

// PortByName returns the node's port of that name, or nil if there is none.
func (n *Node) PortByName(name string) *Port {
	for i := range n.Ports {
		if n.Ports[i].Name == name {
			return &n.Ports[i]
		}
	}
	return nil
}

// PortsTo returns the numbers of the node's ports that are linked to peer:
// one, none, or several where links are parallel.
func (n *Node) PortsTo(peer model.NodeID) (ports []model.PortID) {
	for i := range n.Ports {
		if n.Ports[i].Peer.Node == peer {
			ports = append(ports, n.Ports[i].ID)
		}
	}
	return ports
}

// ByName finds a node by name.
func (f *Fabric) ByName(name string) (model.NodeID, bool) {
	id, ok := f.byName[name]
	return id, ok
}

// ByAddr finds the node that has exactly this address. It allocates nothing.
func (f *Fabric) ByAddr(a model.Addr) (model.NodeID, bool) {
	id, ok := f.byAddr.lookup(a)
	return id, ok
}

// Owners returns the nodes that packets to a are delivered to: the node with
// that address, or else the owners of the longest matching prefix, ascending. It
// allocates nothing.
func (f *Fabric) Owners(a model.Addr) []model.NodeID {
	if id, ok := f.byAddr.lookup(a); ok {
		return f.self[id : id+1 : id+1]
	}
	if i, ok := f.nets.Lookup(a); ok {
		return f.owned[i].owners
	}
	return nil
}

// Owns reports whether packets to a are delivered to this node.
func (f *Fabric) Owns(id model.NodeID, a model.Addr) bool {
	return slices.Contains(f.Owners(a), id)
}

// ByMAC finds the port with this MAC address. It allocates nothing.
func (f *Fabric) ByMAC(m model.MAC) (model.Port, bool) {
	p, ok := portOf(m)
	if !ok || f.Port(p) == nil {
		return model.Port{}, false
	}
	return p, true
}

// PortRef returns the form of a port that files, flags and queries take:
// "tor0:Ethernet4". Port 0 is the node's CPU.
func (f *Fabric) PortRef(p model.Port) string {
	if !f.HasNode(p.Node) {
		return p.String()
	}
	n := f.Node(p.Node)
	if p.Port == 0 {
		return n.Name + ":cpu"
	}
	if port := n.Port(p.Port); port != nil {
		return n.Name + ":" + port.Name
	}
	return n.Name + ":" + p.String()
}

// PortName returns a port as people read it, the interface first and then its
// neighbour: "tor0 Ethernet4 → leaf1". A port without a link is "tor0 Ethernet4".
func (f *Fabric) PortName(p model.Port) string {
	name := strings.Replace(f.PortRef(p), ":", " ", 1)
	if port := f.Port(p); port != nil && port.Peer.Port != 0 {
		name += " → " + f.Node(port.Peer.Node).Name
	}
	return name
}

// LinkName prints a port by where it leads, "tor0>leaf1": people know
// neighbours, not numbers. A port that leads nowhere has PortRef's form.
func (f *Fabric) LinkName(p model.Port) string {
	if port := f.Port(p); port != nil && port.Peer.Port != 0 {
		return f.Node(p.Node).Name + ">" + f.Node(port.Peer.Node).Name
	}
	return f.PortRef(p)
}
