package topo

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// NodeSpec declares a node. Addresses left invalid are chosen at Build.
type NodeSpec struct {
	Name       string
	Role       Role
	Pod        int // from 0, or NoPod
	IPv4, IPv6 netip.Addr
	Nets       []netip.Prefix
}

// End is a node as one end of a link, with the name its port shall have; an
// empty name is chosen at Build.
type End struct {
	Node model.NodeID
	Port string
}

// Builder collects nodes and links and checks each as it comes. The first
// complaint sticks: Err returns it at once, for callers who know which line it
// came from, and Build returns it again.
type Builder struct {
	f         *Fabric
	err       error
	addrs     map[model.Addr]model.NodeID // nodes' own
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

func checkFabricName(name string) error {
	if name != "" && !validName(name, "-_. ") {
		return fmt.Errorf("fabric name %q, want at most 63 letters, digits, '-', '_', '.' or spaces, first a letter or digit", name)
	}
	return nil
}

// Err returns the first complaint so far.
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
	n := Node{ID: id, Name: s.Name, Role: s.Role, Tier: tiers[s.Role], Pod: s.Pod}
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

func (b *Builder) checkNode(s NodeSpec) error {
	if len(b.f.nodes) >= MaxNodes {
		return fmt.Errorf("node %q is one too many, want at most %d nodes", s.Name, MaxNodes)
	}
	if !validName(s.Name, "-_.") {
		return fmt.Errorf("node name %q, want 1 to 63 letters, digits, '-', '_' or '.', first a letter or digit", s.Name)
	}
	if _, taken := b.f.byName[s.Name]; taken {
		return fmt.Errorf("node name %q is taken, want a name of its own", s.Name)
	}
	if int(s.Role) >= len(tiers) {
		return fmt.Errorf("node %q: %v, want a known role", s.Name, s.Role)
	}
	if s.Pod < NoPod || s.Pod >= MaxNodes {
		return fmt.Errorf("node %q: pod %d, want 0 to %d", s.Name, s.Pod, MaxNodes-1)
	}
	if s.IPv4.IsValid() && !s.IPv4.Is4() {
		return fmt.Errorf("node %q: address %v, want an IPv4 address", s.Name, s.IPv4)
	}
	if a := s.IPv6; a.IsValid() && (!a.Is6() || a.Is4In6() || a.Zone() != "") {
		return fmt.Errorf("node %q: address %v, want an IPv6 address without a zone, not a mapped IPv4 address", s.Name, a)
	}
	for _, a := range []netip.Addr{s.IPv4, s.IPv6} {
		if !a.IsValid() {
			continue
		}
		if a.IsUnspecified() || a.IsMulticast() {
			return fmt.Errorf("node %q: address %v, want a unicast address", s.Name, a)
		}
		if owner, taken := b.addrs[model.AddrOf(a)]; taken {
			return fmt.Errorf("node %q: address %v is %s's, want an address of its own", s.Name, a, b.f.nodes[owner].Name)
		}
		if owner, taken := b.vips[model.AddrOf(a)]; taken {
			return fmt.Errorf("node %q: address %v is a net of %s, want an address of its own", s.Name, a, b.f.nodes[owner].Name)
		}
	}
	for i, p := range s.Nets {
		if !p.IsValid() || p.Addr().Is4In6() {
			return fmt.Errorf("node %q: net %v, want a prefix such as 192.0.2.0/24 or 2001:db8::/32", s.Name, p)
		}
		if slices.ContainsFunc(s.Nets[:i], func(q netip.Prefix) bool { return q.Masked() == p.Masked() }) {
			return fmt.Errorf("node %q: net %v is listed twice, want it once", s.Name, p)
		}
		owner, taken := b.addrs[model.AddrOf(p.Addr())]
		if p.IsSingleIP() && (taken || p.Addr() == s.IPv4 || p.Addr() == s.IPv6) {
			name := s.Name
			if taken {
				name = b.f.nodes[owner].Name
			}
			return fmt.Errorf("node %q: net %v is %s's own address, want an address no node has", s.Name, p, name)
		}
	}
	return nil
}

// Connect joins two nodes; the ports get the usual names.
func (b *Builder) Connect(a, z model.NodeID, s LinkSpec) { b.AddLink(End{Node: a}, End{Node: z}, s) }

// AddLink joins two nodes by the next free port of each.
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

func (b *Builder) checkLink(a, z End, s LinkSpec) error {
	for _, e := range []End{a, z} {
		if !b.f.Has(e.Node) {
			return fmt.Errorf("link names node %d, want a node added before (0 to %d)", e.Node, len(b.f.nodes)-1)
		}
	}
	na, nz := &b.f.nodes[a.Node], &b.f.nodes[z.Node]
	what := "link " + na.Name + " - " + nz.Name
	if len(b.f.links) >= MaxLinks {
		return fmt.Errorf("%s is one too many, want at most %d links", what, MaxLinks)
	}
	if a.Node == z.Node {
		return fmt.Errorf("%s joins a node to itself, want two nodes", what)
	}
	for _, n := range []*Node{na, nz} {
		if len(n.Ports) >= MaxPorts {
			return fmt.Errorf("%s: %s has %d ports, want at most %d", what, n.Name, len(n.Ports)+1, MaxPorts)
		}
	}
	for _, e := range []End{a, z} {
		if e.Port == "" {
			continue
		}
		if !validName(e.Port, "-_./") {
			return fmt.Errorf("%s: port name %q, want 1 to 63 letters, digits, '-', '_', '.' or '/', first a letter or digit", what, e.Port)
		}
		if b.portNames[portName{e.Node, e.Port}] {
			return fmt.Errorf("%s: port %s:%s is taken, want a port of its own", what, b.f.nodes[e.Node].Name, e.Port)
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s LinkSpec) check() error {
	if s.Rate <= 0 {
		return fmt.Errorf("rate %v, want above 0", s.Rate)
	}
	if s.Delay < 0 {
		return fmt.Errorf("delay %v, want at least 0", s.Delay)
	}
	if !(s.ErrorRate >= 0 && s.ErrorRate <= 1) { // so that NaN is refused
		return fmt.Errorf("error rate %v, want 0 to 1", s.ErrorRate)
	}
	return nil
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// validName takes ASCII only, so that names are safe in file names, interface
// names, DNS, dot and YAML.
func validName(s, others string) bool {
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte(others, c) < 0) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 63
}

// Build completes addresses, port names and tiers and returns the fabric. The
// Builder must not be used after.
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

// namePorts names the ports that have no name, passing over names that the
// caller gave to other ports of the node.
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
			n.IPv4 = spare.take(n.ID, taken)
			b.addrs[n.IPv4] = n.ID
		}
		if n.IPv6 != (model.Addr{}) {
			continue
		}
		// A derived address can only clash with one that the caller gave to
		// another node: then the next /64 has room, as IPv4 addresses differ.
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

// setTiers gives switches of no stated tier their distance from the nearest
// host, or 1 where no host is connected.
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
