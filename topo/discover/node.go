package discover

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
)

// Node is what one node says.
type Node struct {
	Name   string
	Addr   netip.Addr // of management; the zero value: unknown
	Switch bool       // known to forward packets of others
	Ports  []Port
}

// Port is one of its ports.
type Port struct {
	Name, Alias string
	Rate        model.Rate // 0: unknown
	Neighbors   []Neighbor
}

// Neighbor is what a port heard from the other end.
type Neighbor struct {
	Node string
	Addr netip.Addr // of management; the zero value: unknown
	// Ports are the names that its port may have, the best first: switches send their
	// interface's name as port id or as port description, and another name in the other.
	Ports    []string
	Forwards bool // it is a bridge or a router
}

// port returns a port by name, or else by alias.
func (n *Node) port(name string) *Port {
	for i := range n.Ports {
		if n.Ports[i].Name == name {
			return &n.Ports[i]
		}
	}
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Alias != "" && p.Alias == name {
			return p
		}
	}
	return nil
}
