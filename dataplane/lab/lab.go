package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/weft-telemetry/weft/dataplane/agent"
	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Config is a lab.
type Config struct {
	Routes *topo.Routes
	// Agent is the configuration of all agents, but for their node, list and interfaces.
	Agent agent.Config
	List  func(model.NodeID) dta.ListID // of a switch's flowsets
	Key   func(model.NodeID) *dta.MAC   // nil: reports are not authenticated
}

// Lab is a fabric of network namespaces.
type Lab struct {
	cfg    Config
	fabric *topo.Fabric
	nodes  map[model.NodeID]*namespace
	agents map[model.NodeID]*agent.Agent
	wires  []io.Closer // programs that make veth pairs behave as wires
}

// Up builds a fabric. What a lab before has left behind is removed first. Agents count
// from Run on.
func Up(cfg Config) (_ *Lab, err error) {
	l := &Lab{
		cfg: cfg, fabric: cfg.Routes.Fabric(), nodes: map[model.NodeID]*namespace{},
		agents: map[model.NodeID]*agent.Agent{},
	}
	if err := checkNames(l.fabric); err != nil {
		return nil, err
	}
	if _, err := Remove(); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("lab: %w", err), l.Close())
		}
	}()
	for _, node := range l.fabric.Nodes() {
		if err := l.addNode(&node); err != nil {
			return nil, err
		}
	}
	for _, link := range l.fabric.Links() {
		if err := l.addLink(link); err != nil {
			return nil, err
		}
	}
	for _, node := range l.fabric.Nodes() {
		if err := l.addRoutes(&node); err != nil {
			return nil, err
		}
	}
	for _, id := range l.fabric.Switches() {
		if err := l.addAgent(l.fabric.Node(id)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// checkNames returns an error if a name cannot be that of a namespace or interface.
func checkNames(f *topo.Fabric) error {
	for _, n := range f.Nodes() {
		if strings.ContainsAny(n.Name, "/ ") {
			return fmt.Errorf("lab: node %q, want a name without / and spaces", n.Name)
		}
		for _, p := range n.Ports {
			if len(p.Name) >= syscall.IFNAMSIZ || strings.ContainsAny(p.Name, "/: ") {
				return fmt.Errorf("lab: port %q of %s, want at most %d characters, and no /, colon or space", p.Name, n.Name, syscall.IFNAMSIZ-1)
			}
		}
	}
	return nil
}

// addNode makes the namespace of a node, with its address on the loopback interface.
func (l *Lab) addNode(n *topo.Node) error {
	ns, err := newNamespace(n.Name)
	if err != nil {
		return err
	}
	l.nodes[n.ID] = ns
	for _, one := range [][2]string{
		{"ipv4/conf/all/forwarding", "1"},
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		{"ipv4/fib_multipath_hash_policy", "1"}, // by the 5-tuple
		{"ipv6/conf/all/disable_ipv6", "1"},
		{"ipv6/conf/default/disable_ipv6", "1"},
	} {
		if err := ns.setting(one[0], one[1]); err != nil {
			return fmt.Errorf("%s of %s: %w", one[0], n.Name, err)
		}
	}
	lo, err := ns.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := ns.AddrAdd(lo, &netlink.Addr{IPNet: single(n.IPv4)}); err != nil {
		return fmt.Errorf("address %v of %s: %w", n.IPv4, n.Name, err)
	}
	return ns.LinkSetUp(lo)
}

// single is the prefix of one address.
func single(a model.Addr) *net.IPNet {
	return &net.IPNet{IP: a.Netip().AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// addLink makes the veth pair of a link. Either end knows the other's MAC address, so
// that no ARP is in the fabric.
func (l *Lab) addLink(link topo.Link) error {
	a, b := l.fabric.Port(link.A), l.fabric.Port(link.B)
	nsA, nsB := l.nodes[link.A.Node], l.nodes[link.B.Node]
	if err := nsA.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: a.Name, HardwareAddr: a.MAC[:]},
		PeerName:  b.Name, PeerHardwareAddr: b.MAC[:], PeerNamespace: netlink.NsFd(nsB.handle),
	}); err != nil {
		return fmt.Errorf("link %s: %w", l.fabric.LinkName(link.A), err)
	}
	for _, end := range []struct {
		ns   *namespace
		own  *topo.Port
		peer model.Port
	}{{nsA, a, link.B}, {nsB, b, link.A}} {
		dev, err := end.ns.LinkByName(end.own.Name)
		if err != nil {
			return err
		}
		if err := end.ns.LinkSetUp(dev); err != nil {
			return err
		}
		if err := l.addNeighbour(end.ns, dev, end.peer); err != nil {
			return err
		}
		if err := end.ns.do(func() error {
			wire, err := ebpf.ForgetHash(dev.Attrs().Index)
			l.wires = append(l.wires, wire)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// addNeighbour gives a node the MAC address at the other end of a link.
func (l *Lab) addNeighbour(ns *namespace, dev netlink.Link, peer model.Port) error {
	mac := l.fabric.Port(peer).MAC
	if err := ns.NeighSet(&netlink.Neigh{
		LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT,
		IP: l.fabric.Node(peer.Node).IPv4.Netip().AsSlice(), HardwareAddr: mac[:],
	}); err != nil {
		return fmt.Errorf("neighbour %s of %s: %w", l.fabric.Node(peer.Node).Name, ns.name, err)
	}
	return nil
}

// addRoutes installs the intended routes of a node to all hosts.
func (l *Lab) addRoutes(n *topo.Node) error {
	for _, id := range l.fabric.Hosts() {
		if id == n.ID {
			continue
		}
		to := l.fabric.Node(id)
		ports := l.cfg.Routes.NextHops(n.ID, to.IPv4)
		if len(ports) == 0 {
			continue
		}
		if err := l.setRoute(n.ID, to.IPv4, ports); err != nil {
			return err
		}
	}
	return nil
}

// setRoute replaces the route of a node to a host.
func (l *Lab) setRoute(at model.NodeID, to model.Addr, ports []model.PortID) error {
	node, ns := l.fabric.Node(at), l.nodes[at]
	r := netlink.Route{Dst: single(to), Src: node.IPv4.Netip().AsSlice()}
	for _, id := range ports {
		p := node.Port(id)
		dev, err := ns.LinkByName(p.Name)
		if err != nil {
			return err
		}
		r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{
			LinkIndex: dev.Attrs().Index, Gw: l.fabric.Node(p.Peer.Node).IPv4.Netip().AsSlice(), Flags: int(netlink.FLAG_ONLINK),
		})
	}
	if err := ns.RouteReplace(&r); err != nil {
		return fmt.Errorf("route of %s to %v by ports %v: %w", node.Name, to, ports, err)
	}
	return nil
}

// addAgent attaches an agent to all ports of a switch.
func (l *Lab) addAgent(n *topo.Node) error {
	cfg := l.cfg.Agent
	cfg.Node, cfg.Flowset.List = n.ID, l.cfg.List(n.ID)
	if l.cfg.Key != nil {
		cfg.Key = l.cfg.Key(n.ID)
	}
	cfg.Interfaces = nil
	for _, p := range n.Ports {
		cfg.Interfaces = append(cfg.Interfaces, agent.Interface{Name: p.Name, Port: p.ID, Hook: ebpf.TC})
	}
	return l.nodes[n.ID].do(func() (err error) {
		l.agents[n.ID], err = agent.New(cfg)
		return err
	})
}

// Run runs the agents until ctx is done.
func (l *Lab) Run(ctx context.Context) error {
	errs := make(chan error, len(l.agents))
	var wg sync.WaitGroup
	for _, a := range l.agents {
		wg.Go(func() { errs <- a.Run(ctx) })
	}
	wg.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// Agent returns the agent of a switch.
func (l *Lab) Agent(sw model.NodeID) *agent.Agent { return l.agents[sw] }

// Fabric returns the fabric that was built.
func (l *Lab) Fabric() *topo.Fabric { return l.fabric }

// Addr returns the address of a node.
func (l *Lab) Addr(id model.NodeID) netip.Addr { return l.fabric.Node(id).IPv4.Netip() }

// Close removes the fabric. It must not be called while Run runs.
func (l *Lab) Close() (err error) {
	for _, a := range l.agents {
		if a != nil {
			err = errors.Join(err, a.Close())
		}
	}
	for _, w := range l.wires {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
	}
	for _, ns := range l.nodes {
		ns.close()
	}
	_, removeErr := Remove()
	return errors.Join(err, removeErr)
}

// Open opens a fabric that another process has built, to inject faults.
func Open(r *topo.Routes) (_ *Lab, err error) {
	l := &Lab{cfg: Config{Routes: r}, fabric: r.Fabric(), nodes: map[model.NodeID]*namespace{}}
	for _, n := range l.fabric.Nodes() {
		if l.nodes[n.ID], err = openNamespace(n.Name); err != nil {
			l.Leave()
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	return l, nil
}

// Leave closes what Open has opened. The fabric stays.
func (l *Lab) Leave() {
	for _, ns := range l.nodes {
		if ns != nil {
			ns.close()
		}
	}
}
