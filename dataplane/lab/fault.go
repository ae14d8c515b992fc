package lab

import (
	"fmt"
	"io"

	"github.com/vishvananda/netlink"

	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/model"
)

// Blackhole has a node discard packets to a host.
func (l *Lab) Blackhole(at, host model.NodeID) error {
	to := l.fabric.Node(host).IPv4
	if err := l.nodes[at].RouteReplace(&netlink.Route{Dst: single(to), Type: unicastBlackhole}); err != nil {
		return fmt.Errorf("lab: black hole of %s at %s: %w", l.fabric.Node(host).Name, l.fabric.Node(at).Name, err)
	}
	return nil
}

// unicastBlackhole is RTN_BLACKHOLE of linux/rtnetlink.h.
const unicastBlackhole = 6

// Misroute has a node forward packets to a host by other ports than intended. Where the
// next node sends them back, that is a loop.
func (l *Lab) Misroute(at, host model.NodeID, ports ...model.PortID) error {
	return l.setRoute(at, l.fabric.Node(host).IPv4, ports)
}

// RestoreRoute has a node forward packets to a host as intended again.
func (l *Lab) RestoreRoute(at, host model.NodeID) error {
	to := l.fabric.Node(host).IPv4
	return l.setRoute(at, to, l.cfg.Routes.NextHops(at, to))
}

// DropSilently has a port drop a share of the packets that it sends, until the result is
// closed.
func (l *Lab) DropSilently(port model.Port, share float64) (drop io.Closer, err error) {
	ns := l.nodes[port.Node]
	dev, err := ns.LinkByName(l.fabric.Port(port).Name)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	err = ns.do(func() (err error) {
		drop, err = ebpf.DropSilently(dev.Attrs().Index, share)
		return err
	})
	return drop, err
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
	peer := l.fabric.Port(port).Peer
	return l.addNeighbour(ns, dev, peer)
}
