package topo

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/lpm"
)

// Override is a static route of one switch. It takes precedence over every
// computed route of that switch, including routes to a directly attached host;
// among overrides the longest matching prefix wins. Only packets to the switch's
// own address are still delivered to the switch.
type Override struct {
	At    model.NodeID
	To    netip.Prefix
	Ports []model.PortID // next hops; flows are spread over them
}

// RouteTo returns the overrides that make a switch forward packets to a node's
// own addresses through the given ports.
func (f *Fabric) RouteTo(at, to model.NodeID, ports ...model.PortID) []Override {
	n := f.Node(to)
	return []Override{
		{At: at, To: netip.PrefixFrom(n.IPv4.Netip(), 32), Ports: ports},
		{At: at, To: netip.PrefixFrom(n.IPv6.Netip(), 128), Ports: ports},
	}
}

// compileOverrides compiles the static routes.
func (b *routeBuilder) compileOverrides() error {
	if len(b.cfg.Overrides) == 0 {
		return nil
	}
	b.overrides = make([]*lpm.Table[uint32], len(b.f.switches))
	for _, o := range b.cfg.Overrides {
		ports, err := b.f.checkOverride(o)
		if err != nil {
			return err
		}
		row := b.row[o.At]
		if b.overrides[row] == nil {
			b.overrides[row] = new(lpm.Table[uint32])
		}
		if _, twice := b.overrides[row].Get(o.To); twice {
			return fmt.Errorf("route at %s to %v is defined twice, want one with all its next hops", b.f.nodes[o.At].Name, o.To)
		}
		b.overrides[row].Set(o.To, b.internPorts(ports))
	}
	return nil
}

// Check returns an error if the override is not valid in the fabric.
func (o Override) Check(f *Fabric) error {
	_, err := f.checkOverride(o)
	return err
}

// checkOverride returns the override's ports, ascending.
func (f *Fabric) checkOverride(o Override) ([]model.PortID, error) {
	if !f.HasNode(o.At) {
		return nil, fmt.Errorf("route at node %d, want a node from 0 to %d", o.At, len(f.nodes)-1)
	}
	n := f.Node(o.At)
	if !n.Role.IsSwitch() {
		return nil, fmt.Errorf("route at %s, which is a %v, want a switch", n.Name, n.Role)
	}
	if !o.To.IsValid() || o.To.Addr().Is4In6() {
		return nil, fmt.Errorf("route at %s to %v, want a prefix such as 10.0.0.2/32", n.Name, o.To)
	}
	if len(o.Ports) == 0 {
		return nil, fmt.Errorf("route at %s to %v has no next hop, want at least one", n.Name, o.To)
	}
	ports := slices.Clone(o.Ports)
	slices.Sort(ports)
	for i, p := range ports {
		if n.Port(p) == nil {
			return nil, fmt.Errorf("route at %s to %v through port %d, want a port from 1 to %d", n.Name, o.To, p, len(n.Ports))
		}
		if i > 0 && p == ports[i-1] {
			return nil, fmt.Errorf("route at %s to %v names port %d twice, want it once", n.Name, o.To, p)
		}
	}
	return ports, nil
}
