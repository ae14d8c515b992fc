package served

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// Fabric returns the fabric of a controller, with default settings of switches.
func Fabric(t *api.Topology) (*scenario.Scenario, error) {
	b := topo.NewBuilder(t.Name)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		role, err := topo.ParseRole(n.Role)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		spec := topo.NodeSpec{Name: n.Name, Role: role, Pod: topo.NoPod}
		if n.Pod != nil {
			spec.Pod = *n.Pod
		}
		// An address that cannot be read is assigned anew.
		spec.IPv4, _ = netip.ParseAddr(n.IPv4)
		spec.IPv6, _ = netip.ParseAddr(n.IPv6)
		b.AddNode(spec)
	}
	for i := range t.Links {
		l := &t.Links[i]
		ends := [2]topo.End{}
		for j, r := range [2]api.PortRef{l.A, l.B} {
			id, ok := b.ByName(r.Node)
			if !ok {
				return nil, fmt.Errorf("link %d: no node %q", i, r.Node)
			}
			ends[j] = topo.End{Node: id, Port: r.Interface}
		}
		b.AddLink(ends[0], ends[1], topo.LinkSpec{Rate: model.Rate(l.RateBps), Delay: time.Duration(l.DelayNs)})
	}
	f, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("the controller's topology: %w", err)
	}
	return scenario.FromTopology("served", &file.Document{Fabric: f, Seed: 1}), nil
}

// Configure gives a fabric the settings of a scenario file. If it is of the same fabric,
// it also has the static routes, which the API does not have, and Configure reports true.
func Configure(fabric, file *scenario.Scenario) bool {
	fabric.Sim = file.Sim
	if !sameFabric(fabric.Topology.Fabric, file.Topology.Fabric) {
		return false
	}
	doc := *file.Topology
	doc.Seed = max(doc.Seed, 1) // a rebuilt scenario must not choose another
	fabric.Topology = &doc
	return true
}

func sameFabric(a, b *topo.Fabric) bool {
	return slices.EqualFunc(a.Nodes(), b.Nodes(), func(m, n topo.Node) bool { return m.Name == n.Name && m.IPv4 == n.IPv4 }) &&
		slices.EqualFunc(a.Links(), b.Links(), func(k, l topo.Link) bool { return k.A == l.A && k.B == l.B })
}
