package scenario

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// names resolves the names of nodes, ports and addresses in files.
type names struct{ fabric *topo.Fabric }

func (n names) node(r ref) (model.NodeID, error) {
	id, ok := n.fabric.ByName(r.text)
	if !ok {
		return 0, r.Errorf("there is no node %q, want one of the topology", r.text)
	}
	return id, nil
}

func (n names) host(r ref) (model.NodeID, error) {
	id, err := n.node(r)
	if err == nil && n.fabric.Node(id).Role.IsSwitch() {
		return 0, r.Errorf("%s is a switch, want a host", r.text)
	}
	return id, err
}

func (n names) switchNamed(r ref) (model.NodeID, error) {
	id, err := n.node(r)
	if err == nil && !n.fabric.Node(id).Role.IsSwitch() {
		return 0, r.Errorf("%s is a host, want a switch", r.text)
	}
	return id, err
}

// hosts reads a list of hosts; "h0..h7" is all eight.
func (n names) hosts(list []ref) (ids []model.NodeID, err error) {
	for _, r := range list {
		for _, one := range n.expand(r) {
			id, err := n.host(one)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// nodes is hosts for nodes of any role.
func (n names) nodes(list []ref) (ids []model.NodeID, err error) {
	for _, r := range list {
		for _, one := range n.expand(r) {
			id, err := n.node(one)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// expand expands a range. Other names stay as they are: a node's name may have
// dots too.
func (n names) expand(r ref) []ref {
	if _, taken := n.fabric.ByName(r.text); taken {
		return []ref{r}
	}
	first, last, ok := strings.Cut(r.text, "..")
	stem, from, ok1 := numbered(first)
	stem2, to, ok2 := numbered(last)
	if !ok || !ok1 || !ok2 || stem != stem2 || from > to || to-from >= len(n.fabric.Nodes()) {
		return []ref{r}
	}
	all := make([]ref, 0, to-from+1)
	for i := from; i <= to; i++ {
		all = append(all, ref{r.Position, stem + strconv.Itoa(i)})
	}
	return all
}

// numbered splits "tor12".
func numbered(s string) (stem string, number int, ok bool) {
	stem = strings.TrimRight(s, "0123456789")
	number, err := strconv.Atoi(s[len(stem):])
	return stem, number, err == nil
}

// port reads "tor0:Ethernet4", "tor0>leaf1" where one link leads there, or
// "h0" where the node has a single port.
func (n names) port(r ref) (model.Port, error) {
	if name, peer, ok := strings.Cut(r.text, ">"); ok {
		return n.portTo(r, strings.TrimSpace(name), strings.TrimSpace(peer))
	}
	name, port, named := strings.Cut(r.text, ":")
	id, err := n.node(ref{r.Position, name})
	if err != nil {
		return model.Port{}, err
	}
	node := n.fabric.Node(id)
	if named {
		if p := node.PortByName(port); p != nil {
			return model.Port{Node: id, Port: p.ID}, nil
		}
		return model.Port{}, r.Errorf("%s has no port %q, want one such as %s", name, port, n.anyPort(node))
	}
	if len(node.Ports) != 1 {
		return model.Port{}, r.Errorf("%s has %d ports, want one of them, such as %s", name, len(node.Ports), n.anyPort(node))
	}
	return model.Port{Node: id, Port: 1}, nil
}

func (n names) portTo(r ref, name, peer string) (model.Port, error) {
	from, err := n.node(ref{r.Position, name})
	if err != nil {
		return model.Port{}, err
	}
	to, err := n.node(ref{r.Position, peer})
	if err != nil {
		return model.Port{}, err
	}
	switch ports := n.fabric.Node(from).PortsTo(to); len(ports) {
	case 1:
		return model.Port{Node: from, Port: ports[0]}, nil
	case 0:
		return model.Port{}, r.Errorf("%s has no link to %s, want a neighbour", name, peer)
	default:
		return model.Port{}, r.Errorf("%s has %d links to %s, want the port's name, such as %s",
			name, len(ports), peer, n.fabric.PortRef(model.Port{Node: from, Port: ports[0]}))
	}
}

// anyPort returns an example for errors.
func (n names) anyPort(node *topo.Node) string {
	if len(node.Ports) == 0 {
		return "one of a node with links"
	}
	return node.Name + ":" + node.Ports[0].Name
}

// prefixes reads a node, which has an address of each family, an address, or a
// prefix.
func (n names) prefixes(r ref) ([]netip.Prefix, error) {
	if id, ok := n.fabric.ByName(r.text); ok {
		node := n.fabric.Node(id)
		v4, v6 := node.IPv4.Netip(), node.IPv6.Netip()
		return []netip.Prefix{netip.PrefixFrom(v4, v4.BitLen()), netip.PrefixFrom(v6, v6.BitLen())}, nil
	}
	p, err := netip.ParsePrefix(r.text)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(r.text); err == nil && a.Zone() == "" {
			p = netip.PrefixFrom(a, a.BitLen())
		}
	}
	if err != nil || !p.IsValid() || p.Addr().Is4In6() {
		return nil, r.Errorf("destination %q, want a node, an address or a prefix", r.text)
	}
	return []netip.Prefix{p.Masked()}, nil
}

// Port finds a port of the scenario's fabric by its name in files.
func (s *Scenario) Port(name string) (model.Port, error) {
	p, err := names{s.Topology.Fabric}.port(ref{text: name})
	if e := (*file.Error)(nil); errors.As(err, &e) {
		return p, errors.New(e.Msg)
	}
	return p, err
}
