package serve

import (
	"net/netip"

	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// portNames returns the names of a switch's interfaces.
func portNames(n *topo.Node) func(p model.PortID) string {
	return func(p model.PortID) string {
		if p < 1 || int(p) > len(n.Ports) {
			return ""
		}
		return n.Ports[p-1].Name
	}
}

// portRates returns the rates of a switch's links.
func portRates(n *topo.Node) func(p model.PortID) model.Rate {
	return func(p model.PortID) model.Rate {
		if p < 1 || int(p) > len(n.Ports) {
			return 0
		}
		return n.Ports[p-1].Rate
	}
}

// identities makes the table of what switches are called. The addresses of a switch are
// its own in the topology, and those of its address in the configuration that no other
// switch has.
func (f *fabric) identities() (*identity.Table, error) {
	owners := map[netip.Addr]int{}
	for i := range f.source.Switches {
		for _, p := range f.source.Switches[i].Prefixes {
			if p.IsSingleIP() {
				owners[p.Addr()]++
			}
		}
	}
	var list []identity.Switch
	for i := range f.source.Switches {
		s := &f.source.Switches[i]
		node := f.doc.Fabric.Node(s.ID)
		one := identity.Switch{ID: s.ID, Name: s.Name, Ports: s.Ports, Port: s.Port}
		for _, a := range [...]model.Addr{node.IPv4, node.IPv6} {
			if a != (model.Addr{}) {
				one.Addrs = append(one.Addrs, a.Netip())
			}
		}
		for _, p := range s.Prefixes {
			if p.IsSingleIP() && owners[p.Addr()] == 1 {
				one.Addrs = append(one.Addrs, p.Addr())
			}
		}
		var err error
		if one.Indexes, err = identity.ParseIndexes(s.Values[source.IfIndexKey.Key], s.Ports, s.PortName, s.Port); err != nil {
			return nil, bad("switches", "ifindex of %s: %v", s.Name, err)
		}
		list = append(list, one)
	}
	return identity.New(list)
}
