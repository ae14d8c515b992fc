package file

import (
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// readRoutes reads static routes.
func readRoutes(f *topo.Fabric, v tree.Value) (all []topo.Override, err error) {
	list, err := items(v, "routes")
	if err != nil {
		return nil, err
	}
	seen := make(map[routeKey]bool)
	for _, v := range list {
		routes, err := readRoute(f, v)
		if err != nil {
			return nil, err
		}
		for _, o := range routes {
			if err := o.Check(f); err != nil {
				return nil, v.Errorf("%v", err)
			}
			if seen[routeKey{o.At, o.To}] {
				return nil, v.Errorf("route at %s to %v is defined twice, want one with all its next hops", f.Node(o.At).Name, o.To)
			}
			seen[routeKey{o.At, o.To}] = true
		}
		all = append(all, routes...)
	}
	return all, nil
}

type routeKey struct {
	at model.NodeID
	to netip.Prefix
}

func readRoute(f *topo.Fabric, v tree.Value) ([]topo.Override, error) {
	fields, err := v.Fields("a route", "at", "to", "via", "ports")
	if err != nil {
		return nil, err
	}
	atName, err := requiredText(v, fields, "a route", "at")
	if err != nil {
		return nil, err
	}
	at, ok := f.ByName(atName)
	if !ok {
		return nil, fields["at"].Errorf("route at unknown node %q, want the name of a switch", atName)
	}
	to, err := requiredText(v, fields, "a route", "to")
	if err != nil {
		return nil, err
	}
	ports, err := readNextHops(f, v, fields, at)
	if err != nil {
		return nil, err
	}
	if id, ok := f.ByName(to); ok {
		return f.RouteTo(at, id, ports...), nil
	}
	p, err := parsePrefix(to)
	if err != nil {
		return nil, fields["to"].Errorf("route to %q, want a node, an address or a prefix", to)
	}
	return []topo.Override{{At: at, To: p, Ports: ports}}, nil
}

// readNextHops reads via (neighbours) or ports (of the switch, by name).
func readNextHops(f *topo.Fabric, v tree.Value, fields map[string]tree.Value,
	at model.NodeID,
) (ports []model.PortID, err error) {
	via, hasVia := fields["via"]
	own, hasPorts := fields["ports"]
	if hasVia == hasPorts {
		return nil, v.Errorf("route needs next hops, want either via (neighbours) or ports")
	}
	key, hops := "via", via
	if hasPorts {
		key, hops = "ports", own
	}
	list, err := items(hops, key)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		name, err := item.Text("a next hop")
		if err != nil {
			return nil, err
		}
		found, err := nextHopPorts(f, item, at, name, hasVia)
		if err != nil {
			return nil, err
		}
		ports = append(ports, found...)
	}
	slices.Sort(ports)
	return ports, nil
}

func nextHopPorts(f *topo.Fabric, v tree.Value, at model.NodeID, name string, neighbour bool) ([]model.PortID, error) {
	n := f.Node(at)
	if !neighbour {
		p := n.PortByName(name)
		if p == nil {
			return nil, v.Errorf("%s has no port %q, want the name of one", n.Name, name)
		}
		return []model.PortID{p.ID}, nil
	}
	id, ok := f.ByName(name)
	if !ok {
		return nil, v.Errorf("next hop is unknown node %q, want a neighbour of %s", name, n.Name)
	}
	ports := n.PortsTo(id)
	if len(ports) == 0 {
		return nil, v.Errorf("next hop %s is not a neighbour of %s, want one that is", name, n.Name)
	}
	return ports, nil
}
