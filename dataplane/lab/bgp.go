package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// firstAS is the AS number of node 0, of those for private use (RFC 6996): every switch has one of
// its own (RFC 7938), so that the shortest AS paths are the shortest paths.
const firstAS = 4_200_000_000

// startRouters has switches learn the routes to hosts by BGP.
func (l *Lab) startRouters() error {
	if err := checkFRR(daemonDir); err != nil {
		return err
	}
	if len(l.cfg.Routes.Config().Overrides) > 0 {
		return errors.New("the topology has static routes, which BGP does not know: remove them, or have routing static")
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	errs := make([]error, len(l.fabric.Switches()))
	for i, id := range l.fabric.Switches() {
		all.Go(func() {
			r, err := startRouter(l.nodes[id], [...]string{l.zebraConfig(id), l.bgpConfig(id)})
			if errs[i] = err; err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			l.routers[id] = r
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// zebraConfig is the configuration of a switch's zebra. Its nexthop objects are off: the kernel removes those
// of a link that is down, and zebra 8.4, which does not follow, leaves out the link when it is up again.
func (l *Lab) zebraConfig(id model.NodeID) string {
	return "hostname " + l.fabric.Node(id).Name + "\nno zebra nexthop kernel enable\n"
}

// bgpConfig is the configuration of a switch's bgpd: eBGP over the link-local addresses of its ports
// to all neighbours (BGP unnumbered), the addresses of its hosts, all paths of equal length.
func (l *Lab) bgpConfig(id model.NodeID) string {
	n := l.fabric.Node(id)
	var b strings.Builder
	fmt.Fprintf(&b, "hostname %s\nrouter bgp %d\n", n.Name, firstAS+uint64(id))
	fmt.Fprintf(&b, " bgp router-id %v\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n", n.IPv4)
	b.WriteString(" bgp network import-check\n bgp bestpath as-path multipath-relax\n timers bgp 3 9\n")
	var ports []string
	for _, p := range n.Ports {
		if l.isSwitch(p.Peer.Node) {
			ports = append(ports, p.Name)
			fmt.Fprintf(&b, " neighbor %s interface remote-as %d\n neighbor %s timers connect 1\n", p.Name, firstAS+uint64(p.Peer.Node), p.Name)
		}
	}
	for family, name := range []string{"ipv4", "ipv6"} {
		fmt.Fprintf(&b, " address-family %s unicast\n  maximum-paths %d\n", name, maxPaths)
		for _, p := range ports {
			fmt.Fprintf(&b, "  neighbor %s activate\n", p)
		}
		for _, h := range l.fabric.Hosts() {
			if l.attached(id, h) {
				fmt.Fprintf(&b, "  network %v\n", single(addresses(l.fabric.Node(h))[family]))
			}
		}
		b.WriteString(" exit-address-family\n")
	}
	return b.String()
}

// maxPaths is the most next hops that Debian's FRR keeps of a route.
const maxPaths = 256

func (l *Lab) isSwitch(id model.NodeID) bool { return l.fabric.Node(id).Role.IsSwitch() }

// attached reports whether a host has a link to a node.
func (l *Lab) attached(at, host model.NodeID) bool {
	return slices.ContainsFunc(l.fabric.Node(at).Ports, func(p topo.Port) bool { return p.Peer.Node == host })
}

// learned reports whether a node learns its routes to a host by BGP.
func (l *Lab) learned(at, host model.NodeID) bool {
	return l.cfg.BGP && l.isSwitch(at) && !l.attached(at, host)
}

// addLocal gives a port between switches its link-local address, over which they speak BGP.
func (l *Lab) addLocal(ns *namespace, dev netlink.Link, port model.Port) error {
	n := l.fabric.Node(port.Node)
	if !l.cfg.BGP || !l.isSwitch(port.Node) || !l.isSwitch(n.Port(port.Port).Peer.Node) {
		return nil
	}
	a := &netlink.Addr{
		IPNet: &net.IPNet{IP: gateways(n, port.Port)[1].AsSlice(), Mask: net.CIDRMask(64, 128)},
		Scope: int(netlink.SCOPE_LINK), Flags: unix.IFA_F_NODAD,
	}
	if err := ns.AddrReplace(dev, a); err != nil {
		return fmt.Errorf("link-local address of %s: %w", l.fabric.PortName(port), err)
	}
	return nil
}

// Converge returns when the kernels of all switches have the intended next hops to all hosts. It is
// for labs with BGP; others have them from the start. The error names what is not as intended.
func (l *Lab) Converge(ctx context.Context) error {
	if !l.cfg.BGP {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, convergeTime)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(l.fabric.Switches()))
	for i, id := range l.fabric.Switches() {
		all.Go(func() { errs[i] = l.convergeSwitch(ctx, id) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab: routes did not converge: %w", err)
	}
	return nil
}

// convergeTime bounds Converge: four switches take some three seconds.
const convergeTime = time.Minute

// convergeSwitch looks at a switch's routes whenever its kernel says that one has changed.
func (l *Lab) convergeSwitch(ctx context.Context, id model.NodeID) (err error) {
	ns, name := l.nodes[id], l.fabric.Node(id).Name
	ended := context.Background() // of a lab that was opened, others watch over the routers
	if r := l.routers[id]; r != nil {
		ended = r.ended
	}
	changes, done := make(chan netlink.RouteUpdate, 1024), make(chan struct{})
	if err := netlink.RouteSubscribeWithOptions(changes, done, netlink.RouteSubscribeOptions{
		Namespace: &ns.handle, ReceiveBufferSize: 4 << 20, ReceiveBufferForceSize: true,
	}); err != nil {
		return fmt.Errorf("changes of routes of %s: %w", name, err)
	}
	defer func() {
		close(done)
		for range changes { // ends when the subscription has ended
		}
	}()
	for {
		wrong, err := l.notIntended(id)
		if err != nil || wrong == "" {
			return err
		}
		select {
		case _, more := <-changes:
			for more && len(changes) > 0 {
				_, more = <-changes
			}
			if !more {
				return fmt.Errorf("the kernel's messages of routes of %s have ended", name)
			}
		case <-ended.Done():
			return fmt.Errorf("%s: %w", name, context.Cause(ended))
		case <-ctx.Done():
			return errors.New(wrong)
		}
	}
}

// notIntended says which hosts a switch does not forward to as intended; empty: none.
func (l *Lab) notIntended(id model.NodeID) (string, error) {
	node, ns := l.fabric.Node(id), l.nodes[id]
	links, err := ns.LinkList()
	if err != nil {
		return "", err
	}
	routes, err := ns.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return "", err
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	actual := map[netip.Addr][]string{}
	for i := range routes {
		if to, ok := destination(&routes[i]); ok {
			actual[to] = portNames(&routes[i], names)
		}
	}
	var wrong []string
	for _, h := range l.fabric.Hosts() {
		for _, to := range addresses(l.fabric.Node(h)) {
			var want []string
			for _, p := range l.cfg.Routes.NextHops(id, to) {
				want = append(want, node.Port(p).Name)
			}
			slices.Sort(want)
			if has := actual[to.Netip()]; !slices.Equal(has, want) {
				wrong = append(wrong, fmt.Sprintf("%s (%v) by %v, intended %v", l.fabric.Node(h).Name, to, has, want))
			}
		}
	}
	if len(wrong) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s forwards to %d of %d addresses of hosts as not intended, such as %s", node.Name, len(wrong), 2*len(l.fabric.Hosts()), wrong[0]), nil
}

// destination is the address that a route leads to, if it is one.
func destination(r *netlink.Route) (netip.Addr, bool) {
	if r.Dst == nil {
		return netip.Addr{}, false
	}
	ones, bits := r.Dst.Mask.Size()
	a, ok := netip.AddrFromSlice(r.Dst.IP)
	return a.Unmap(), ok && ones == bits
}

// portNames are the interfaces that a route leads to, sorted.
func portNames(r *netlink.Route, names map[int]string) (list []string) {
	if len(r.MultiPath) == 0 {
		return []string{names[r.LinkIndex]}
	}
	for _, hop := range r.MultiPath {
		list = append(list, names[hop.LinkIndex])
	}
	slices.Sort(list)
	return list
}
