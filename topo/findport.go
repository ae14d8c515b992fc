package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
)

// FindPort finds the port that a person or a file names: by interface name
// ("tor6:Ethernet8", "tor6 Ethernet8"), by number ("tor6:3"), by link
// ("tor6>leaf6", where one link joins the two), or in the form of PortName
// ("tor6 Ethernet8 → leaf6"). Port "cpu" is the node's control plane, port 0.
// Arrows may be written →, -> or >.
func (f *Fabric) FindPort(text string) (model.Port, error) {
	fail := func(format string, args ...any) (model.Port, error) {
		return model.Port{}, fmt.Errorf("port %q: %s", text, fmt.Sprintf(format, args...))
	}
	from, to, hasPeer := f.cutArrow(text)
	name, port, hasPort := cutPort(from)
	id, ok := f.ByName(name)
	if !ok {
		return fail("unknown node %q%s", name, nearest(name, f.nodeNames()))
	}
	n := f.Node(id)
	var peer model.NodeID
	if hasPeer {
		if peer, ok = f.ByName(to); !ok {
			return fail("unknown node %q%s", to, nearest(to, f.nodeNames()))
		}
	}
	switch {
	case !hasPort && !hasPeer:
		return fail("no port, want a form such as %s", f.exampleRef(n))
	case !hasPort:
		switch links := n.PortsTo(peer); len(links) {
		case 0:
			return fail("no link from %s to %s", name, to)
		case 1:
			return model.Port{Node: id, Port: links[0]}, nil
		default:
			refs := make([]string, len(links))
			for i, p := range links {
				refs[i] = f.PortRef(model.Port{Node: id, Port: p})
			}
			return fail("%d links from %s to %s, want one of %s", len(links), name, to, strings.Join(refs, ", "))
		}
	}
	found, ok := n.findPort(port)
	if !ok {
		return fail("%s has no port %q%s", name, port, nearest(port, n.portNames()))
	}
	if p := n.Port(found); hasPeer && (p == nil || p.Peer.Port == 0 || p.Peer.Node != peer) {
		return fail("the port is %s", f.PortName(model.Port{Node: id, Port: found}))
	}
	return model.Port{Node: id, Port: found}, nil
}

// findPort finds a port by name or number; a name that is a number wins.
func (n *Node) findPort(text string) (model.PortID, bool) {
	if p := n.PortByName(text); p != nil {
		return p.ID, true
	}
	if text == "cpu" {
		return 0, true
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n.Port(model.PortID(number)) == nil {
		return 0, false
	}
	return model.PortID(number), true
}

// cutArrow splits "a → b". A node's name may end in "-": then "a->b" is that
// node and ">".
func (f *Fabric) cutArrow(text string) (from, to string, found bool) {
	for _, arrow := range []string{"→", ">"} {
		if from, to, found = strings.Cut(text, arrow); found {
			break
		}
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if shaft, ok := strings.CutSuffix(from, "-"); found && ok {
		if _, known := f.ByName(from); !known {
			from = strings.TrimSpace(shaft)
		}
	}
	return from, to, found
}

// cutPort splits "tor6:Ethernet8" or "tor6 Ethernet8".
func cutPort(text string) (node, port string, found bool) {
	i := strings.IndexAny(text, ": ")
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimSpace(text[i+1:]), true
}

func (f *Fabric) nodeNames() []string {
	names := make([]string, len(f.nodes))
	for i := range f.nodes {
		names[i] = f.nodes[i].Name
	}
	return names
}

func (n *Node) portNames() []string {
	names := make([]string, len(n.Ports))
	for i := range n.Ports {
		names[i] = n.Ports[i].Name
	}
	return names
}

// exampleRef is a port of the node in the form that FindPort takes.
func (f *Fabric) exampleRef(n *Node) string {
	if len(n.Ports) == 0 {
		return n.Name + ":cpu"
	}
	return f.PortRef(model.Port{Node: n.ID, Port: 1})
}

// nearest is the end of an error about an unknown name: the known name that
// differs in the fewest letters. Far too long names are not compared.
func nearest(name string, known []string) string {
	if len(known) == 0 || len(name) > 64 {
		return ""
	}
	return "; did you mean " + slices.MinFunc(known, func(a, b string) int {
		return fileerror.EditDistance(name, a) - fileerror.EditDistance(name, b)
	}) + "?"
}
