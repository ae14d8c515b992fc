package lab

import (
	"errors"
	"fmt"
	"io"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Blackhole has a node discard packets to a host.
func (l *Lab) Blackhole(at, host model.NodeID) error {
	for _, to := range addresses(l.fabric.Node(host)) {
		if err := l.nodes[at].RouteReplace(&netlink.Route{Dst: single(to), Type: unicastBlackhole, Priority: l.faultMetric(at, host)}); err != nil {
			return fmt.Errorf("lab: black hole of %s, %v, at %s: %w", l.fabric.Node(host).Name, to, l.fabric.Node(at).Name, err)
		}
	}
	return nil
}

// unicastBlackhole is RTN_BLACKHOLE of linux/rtnetlink.h.
const unicastBlackhole = 6

// Misroute has a node forward packets to a host by other ports than intended. Where the
// next node sends them back, that is a loop.
func (l *Lab) Misroute(at, host model.NodeID, ports ...model.PortID) error {
	for _, to := range addresses(l.fabric.Node(host)) {
		if err := l.setRoute(at, to, ports, l.faultMetric(at, host)); err != nil {
			return err
		}
	}
	return nil
}

// faultMetric is the metric of a fault's route: that of the intended one, which it replaces, or a better
// one than that of a route that is learned, and stays.
func (l *Lab) faultMetric(at, host model.NodeID) int {
	if l.learned(at, host) {
		return betterMetric
	}
	return 0
}

// betterMetric is better than that of BGP's routes in the kernel, 20.
const betterMetric = 1

// RestoreRoute has a node forward packets to a host as intended, or as it has learned, again.
func (l *Lab) RestoreRoute(at, host model.NodeID) error {
	if !l.learned(at, host) {
		return l.setIntended(at, host)
	}
	for _, to := range addresses(l.fabric.Node(host)) {
		if err := l.nodes[at].RouteDel(&netlink.Route{Dst: single(to), Priority: betterMetric}); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("lab: remove the fault's route of %s to %v: %w", l.fabric.Node(at).Name, to, err)
		}
	}
	return nil
}

// DropSilently has a port drop a share of the packets that it sends, until the result is
// closed.
func (l *Lab) DropSilently(port model.Port, share float64) (io.Closer, error) {
	return l.atPort(port, func(ifindex int) (io.Closer, error) { return ebpf.DropSilently(ifindex, share) })
}

// Corrupt has a port of a switch damage the payload of a share of the packets that it sends,
// until the result is closed. Receivers drop what their checksums show to be damaged.
func (l *Lab) Corrupt(port model.Port, share float64) (io.Closer, error) {
	if n := l.fabric.Node(port.Node); n.Role == topo.Host {
		return nil, fmt.Errorf("lab: corrupt what %s sends: it is a host, whose checksums would be right; want a switch", n.Name)
	}
	return l.atPort(port, func(ifindex int) (io.Closer, error) { return ebpf.Corrupt(ifindex, share) })
}

// atPort attaches a program to the interface of a port.
func (l *Lab) atPort(port model.Port, attach func(ifindex int) (io.Closer, error)) (program io.Closer, err error) {
	ns := l.nodes[port.Node]
	dev, err := ns.LinkByName(l.fabric.Port(port).Name)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	err = ns.do(func() (err error) {
		program, err = attach(dev.Attrs().Index)
		return err
	})
	return program, err
}

// SetLink takes the link of a port down, or up again with the routes that went with it.
func (l *Lab) SetLink(port model.Port, up bool) error {
	ns := l.nodes[port.Node]
	dev, err := ns.LinkByName(l.fabric.Port(port).Name)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if !up {
		return ns.LinkSetDown(dev)
	}
	if err := ns.LinkSetUp(dev); err != nil {
		return err
	}
	if err := l.addNeighbour(ns, dev, l.fabric.Port(port).Peer); err != nil {
		return err
	}
	if err := l.addLocal(ns, dev, port); err != nil {
		return err
	}
	return l.addRoutes(l.fabric.Node(port.Node))
}
