package api

import (
	"fmt"
	"strconv"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// PortRef identifies a port of a node. Responses have both number and interface
// name; a request may have either.
type PortRef struct {
	Node      string       `json:"node"`
	Port      model.PortID `json:"port" required:"false" doc:"Port number, from 1; in a request, alternative to interface"`
	Interface string       `json:"interface,omitempty" doc:"Interface name, e.g. Ethernet8"`
	Peer      string       `json:"peer,omitempty" doc:"Node at the other end"`
}

// String returns the port as people read it: "tor6 Ethernet8 → leaf6".
func (p PortRef) String() string {
	name := p.Interface
	if name == "" && p.Port != 0 {
		name = strconv.Itoa(int(p.Port))
	}
	text := p.Node
	if name != "" {
		text += " " + name
	}
	if p.Peer != "" {
		text += " → " + p.Peer
	}
	return text
}

// newPortRef describes a port of the fabric.
func newPortRef(f *topo.Fabric, p model.Port) PortRef {
	port := f.Port(p)
	return PortRef{Node: f.Node(p.Node).Name, Port: p.Port, Interface: port.Name, Peer: f.Node(port.Peer.Node).Name}
}

// resolvePort returns the port that a request names by number, by interface name,
// or by both.
func (p PortRef) resolvePort(f *topo.Fabric) (model.Port, error) {
	name := p.Interface
	if name == "" {
		name = strconv.Itoa(int(p.Port))
	}
	at, err := findPort(f, p.Node, name)
	if err == nil && p.Port != 0 && p.Port != at.Port {
		err = fmt.Errorf("interface %s of %s is port %d, not %d", p.Interface, p.Node, at.Port, p.Port)
	}
	return at, err
}

// findPort finds a port of a node by interface name or by number.
func findPort(f *topo.Fabric, node, text string) (model.Port, error) {
	id, ok := f.ByName(node)
	if !ok {
		return model.Port{}, fmt.Errorf("node %q is not in the fabric", node)
	}
	n := f.Node(id)
	if port := n.PortByName(text); port != nil {
		return model.Port{Node: id, Port: port.ID}, nil
	}
	if number, err := strconv.ParseUint(text, 10, 16); err == nil {
		at := model.Port{Node: id, Port: model.PortID(number)}
		if uint64(at.Port) == number && f.Port(at) != nil {
			return at, nil
		}
	}
	want := fmt.Sprintf("a number from 1 to %d", len(n.Ports))
	if len(n.Ports) > 0 {
		want += " or an interface name such as " + n.Ports[0].Name
	}
	return model.Port{}, fmt.Errorf("port %q of %s, want %s", text, node, want)
}
