package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// findPort finds a port of the target's topology by its interface
// (leaf0:Ethernet8), its number (leaf0:3), its peer (leaf0>spine1) or its name
// (leaf0 Ethernet8 → spine1).
func (t *target) findPort(ctx context.Context, text string) (api.PortRef, error) {
	topology, err := t.Topology(ctx)
	if err != nil {
		return api.PortRef{}, t.explain(err)
	}
	f, err := fabricOf(&topology)
	if err != nil {
		return api.PortRef{}, fmt.Errorf("topology of the controller: %w", err)
	}
	p, err := f.FindPort(text)
	if err != nil {
		return api.PortRef{}, usageError{err}
	}
	port := f.Port(p)
	if port == nil { // of the switch itself
		return api.PortRef{}, usagef("port %q has no link, want a port such as leaf0:Ethernet8", text)
	}
	return api.PortRef{Node: f.Node(p.Node).Name, Port: p.Port, Interface: port.Name, Peer: f.Node(port.Peer.Node).Name}, nil
}

// fabricOf makes a fabric of the API's topology. Ports get their numbers by the order of
// links, as they did in the controller.
func fabricOf(t *api.Topology) (*topo.Fabric, error) {
	b := topo.NewBuilder(t.Name)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		role, err := topo.ParseRole(n.Role)
		if err != nil {
			return nil, err
		}
		pod := topo.NoPod
		if n.Pod != nil {
			pod = *n.Pod
		}
		b.AddNode(topo.NodeSpec{Name: n.Name, Role: role, Pod: pod})
	}
	end := func(p api.PortRef) (topo.End, error) {
		id, known := b.ByName(p.Node)
		if !known {
			return topo.End{}, fmt.Errorf("link of %s, which is no node", p)
		}
		return topo.End{Node: id, Port: p.Interface}, nil
	}
	for i := range t.Links {
		l := &t.Links[i]
		a, err := end(l.A)
		if err != nil {
			return nil, err
		}
		z, err := end(l.B)
		if err != nil {
			return nil, err
		}
		b.AddLink(a, z, topo.LinkSpec{Rate: model.Rate(l.RateBps), Delay: time.Duration(l.DelayNs)})
	}
	return b.Build()
}
