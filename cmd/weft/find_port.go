package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/control/api"
)

// findPort finds a port of the target's topology by its interface
// (leaf0:Ethernet8), its number (leaf0:3), its peer (leaf0>spine1) or its name
// (leaf0 Ethernet8 → spine1).
func (t *target) findPort(ctx context.Context, text string) (api.PortRef, error) {
	topology, err := t.Topology(ctx)
	if err != nil {
		return api.PortRef{}, t.explain(err)
	}
	return findPort(&topology, text)
}

func findPort(topology *api.Topology, text string) (api.PortRef, error) {
	from, peer, hasPeer := strings.Cut(strings.NewReplacer("→", ">", "->", ">").Replace(text), ">")
	from, peer = strings.TrimSpace(from), strings.TrimSpace(peer)
	node, port, hasPort := strings.Cut(strings.Replace(from, " ", ":", 1), ":")
	if !hasPeer && !hasPort {
		return api.PortRef{}, usagef("port %q, want a form such as leaf0:Ethernet8, leaf0:3 or leaf0>spine1", text)
	}
	var found []api.PortRef
	known := false
	for i := range topology.Nodes {
		n := &topology.Nodes[i]
		if n.Name != node {
			continue
		}
		known = true
		for _, p := range n.Ports {
			if (!hasPeer || p.Peer == peer) && (!hasPort || p.Interface == port || fmt.Sprint(p.Port) == port) {
				found = append(found, api.PortRef{Node: node, Port: p.Port, Interface: p.Interface, Peer: p.Peer})
			}
		}
	}
	switch {
	case !known:
		return api.PortRef{}, usagef("port %q: no node %q in the topology", text, node)
	case len(found) == 0 && hasPort:
		return api.PortRef{}, usagef("port %q: %s has no such port", text, node)
	case len(found) == 0:
		return api.PortRef{}, usagef("port %q: %s has no link to %s", text, node, peer)
	case len(found) > 1:
		return api.PortRef{}, usagef("port %q: %d links, want one port such as %s:%s", text, len(found), node,
			found[0].Interface)
	}
	return found[0], nil
}
