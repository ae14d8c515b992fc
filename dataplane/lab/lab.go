package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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
	Rate  model.Rate                    // of every port; 0: not limited
	// BGP has switches learn the routes to hosts from one another, by FRR's zebra and bgpd. Otherwise
	// the intended ones are installed.
	BGP bool
}

// Lab is a fabric of network namespaces.
type Lab struct {
	cfg    Config
	claim  *claim
	fabric *topo.Fabric
	nodes  map[model.NodeID]*namespace
	agents map[model.NodeID]*agent.Agent
	wires  []io.Closer // programs that make veth pairs behave as wires

	routers map[model.NodeID]*router // with Config.BGP, of switches
}

// Up builds a fabric. What a lab before has left behind is removed first; while another is up, that is an
// error. Agents count
// from Run on. With BGP, Converge waits for the routes.
func Up(cfg Config) (_ *Lab, err error) {
	l := &Lab{
		cfg: cfg, fabric: cfg.Routes.Fabric(), nodes: map[model.NodeID]*namespace{},
		agents: map[model.NodeID]*agent.Agent{}, routers: map[model.NodeID]*router{},
	}
	if err := checkNames(l.fabric); err != nil {
		return nil, err
	}
	if l.claim, err = newClaim(); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if _, err := removeNamespaces(); err != nil {
		l.claim.end()
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
	if cfg.Rate > 0 {
		for _, link := range l.fabric.Links() {
			for _, port := range []model.Port{link.A, link.B} {
				if _, err := l.LimitRate(port, cfg.Rate); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, node := range l.fabric.Nodes() {
		if err := l.addRoutes(&node); err != nil {
			return nil, err
		}
	}
	if cfg.BGP {
		if err := l.startRouters(); err != nil {
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
		{"ipv6/fib_multipath_hash_policy", "1"},
		{"ipv6/conf/all/forwarding", "1"},
		// Only the lab's traffic is sent: no link-local addresses, no advertisements.
		{"ipv6/conf/default/addr_gen_mode", "1"},
		{"ipv6/conf/default/accept_ra", "0"},
		{"ipv6/conf/all/accept_dad", "0"},
		{"ipv6/conf/default/accept_dad", "0"},
		{"ipv6/conf/default/router_solicitations", "0"},
	} {
		if err := ns.setting(one[0], one[1]); err != nil {
			return fmt.Errorf("%s of %s: %w", one[0], n.Name, err)
		}
	}
	lo, err := ns.LinkByName("lo")
	if err != nil {
		return err
	}
	for _, a := range addresses(n) {
		if err := ns.AddrAdd(lo, &netlink.Addr{IPNet: single(a)}); err != nil {
			return fmt.Errorf("address %v of %s: %w", a, n.Name, err)
		}
	}
	return ns.LinkSetUp(lo)
}

// addresses are those of a node, of IPv4 and IPv6.
func addresses(n *topo.Node) [2]model.Addr { return [2]model.Addr{n.IPv4, n.IPv6} }

// single is the prefix of one address.
func single(a model.Addr) *net.IPNet {
	ip := a.Netip()
	return &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}
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
		ns    *namespace
		own   *topo.Port
		local model.Port
		peer  model.Port
	}{{nsA, a, link.A, link.B}, {nsB, b, link.B, link.A}} {
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
		if err := l.addLocal(end.ns, dev, end.local); err != nil {
			return err
		}
		if err := end.ns.do(func() error {
			if err := withoutOffload(end.own.Name); err != nil {
				return err
			}
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
	other := l.fabric.Node(peer.Node)
	mac := other.Port(peer.Port).MAC
	for _, a := range gateways(other, peer.Port) {
		if err := ns.NeighSet(&netlink.Neigh{
			LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: mac[:],
		}); err != nil {
			return fmt.Errorf("neighbour %s, %v, of %s: %w", other.Name, a, ns.name, err)
		}
	}
	return nil
}

// gateways are the addresses by which routes name a node at a port, of IPv4 and IPv6. That of
// IPv6 is the port's link-local one: the kernel refuses an address that a route leads elsewhere.
func gateways(n *topo.Node, port model.PortID) [2]netip.Addr {
	m := n.Port(port).MAC
	local := [16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	return [2]netip.Addr{n.IPv4.Netip(), netip.AddrFrom16(local)}
}

// addRoutes installs the intended routes of a node to all hosts, but for those that it learns.
func (l *Lab) addRoutes(n *topo.Node) error {
	for _, id := range l.fabric.Hosts() {
		if id == n.ID || l.learned(n.ID, id) {
			continue
		}
		if err := l.setIntended(n.ID, id); err != nil {
			return err
		}
	}
	return nil
}

// setIntended has a node forward packets to a host as intended.
func (l *Lab) setIntended(at, host model.NodeID) error {
	for _, to := range addresses(l.fabric.Node(host)) {
		if ports := l.cfg.Routes.NextHops(at, to); len(ports) > 0 {
			if err := l.setRoute(at, to, ports, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// setRoute replaces the route of a node to a host that has the metric.
func (l *Lab) setRoute(at model.NodeID, to model.Addr, ports []model.PortID, metric int) error {
	node, ns := l.fabric.Node(at), l.nodes[at]
	family := 0
	if !to.Netip().Is4() {
		family = 1
	}
	r := netlink.Route{Dst: single(to), Src: addresses(node)[family].Netip().AsSlice(), Priority: metric}
	for _, id := range ports {
		p := node.Port(id)
		dev, err := ns.LinkByName(p.Name)
		if err != nil {
			return err
		}
		hop := &netlink.NexthopInfo{LinkIndex: dev.Attrs().Index, Gw: gateways(l.fabric.Node(p.Peer.Node), p.Peer.Port)[family].AsSlice()}
		if family == 0 {
			hop.Flags = int(netlink.FLAG_ONLINK)
		}
		r.MultiPath = append(r.MultiPath, hop)
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
	for _, r := range l.routers {
		err = errors.Join(err, r.close())
	}
	for _, w := range l.wires {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
	}
	for _, ns := range l.nodes {
		ns.close()
	}
	if l.claim.holds() {
		_, removeErr := Remove()
		err = errors.Join(err, removeErr)
	}
	l.claim.end()
	return err
}

// Open opens a fabric that another process has built, to inject faults.
func Open(r *topo.Routes) (_ *Lab, err error) {
	l := &Lab{cfg: Config{Routes: r}, fabric: r.Fabric(), nodes: map[model.NodeID]*namespace{}}
	for _, n := range l.fabric.Nodes() {
		if l.nodes[n.ID], err = openNamespace(n.Name); err != nil {
			l.Leave()
			return nil, fmt.Errorf("lab: %w", err)
		}
		if _, err := os.Stat(filepath.Join(routerDir, l.nodes[n.ID].name)); err == nil {
			l.cfg.BGP = true
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
