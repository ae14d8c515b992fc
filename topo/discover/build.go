package discover

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config is what nodes do not say.
type Config struct {
	Name string
	Link topo.LinkSpec // delay of links, and rate of those whose ends do not say it
}

// end is a port of a node by their names.
type end struct{ node, port string }

func (e end) String() string { return e.node + " " + e.port }

func (e end) compare(o end) int {
	return cmp.Or(strings.Compare(e.node, o.node), strings.Compare(e.port, o.port))
}

// said is a link as one or both of its ends describe it.
type said struct {
	a, z  end // a is the lesser
	by    [2]bool
	rates [2]model.Rate
}

// discovery is the work of one Build.
type discovery struct {
	nodes    map[string]*Node
	forwards map[string]bool
	addrs    map[string]netip.Addr
	links    map[[2]end]*said
	findings []string
}

// Build returns the fabric that nodes describe, and what does not fit together: links that
// one end alone reports, ends that contradict each other, different rates. Nodes that were not asked are part
// of it by what their neighbours say. The result does not depend on the order of nodes.
func Build(cfg Config, nodes []Node) (*topo.Fabric, []string, error) {
	d := discovery{nodes: map[string]*Node{}, forwards: map[string]bool{}, addrs: map[string]netip.Addr{}, links: map[[2]end]*said{}}
	for i := range nodes {
		n := &nodes[i]
		if d.nodes[n.Name] != nil {
			return nil, nil, fmt.Errorf("two nodes have the name %q, want one of each", n.Name)
		}
		d.nodes[n.Name] = n
		d.forwards[n.Name] = n.Switch
		d.addAddr(n.Name, n.Addr)
	}
	names := slices.Sorted(maps.Keys(d.nodes))
	for _, name := range names {
		d.addNode(d.nodes[name])
	}
	if len(d.links) == 0 {
		return nil, d.findings, errors.New("no node has a neighbour, want at least one link")
	}
	f, err := d.fabric(cfg, d.consistent())
	slices.Sort(d.findings)
	return f, slices.Compact(d.findings), err
}

func (d *discovery) finding(format string, args ...any) {
	d.findings = append(d.findings, fmt.Sprintf(format, args...))
}

// addAddr notes the management address of a node, if others can reach it there: the first is
// the one that the node was asked by, which may be a tunnel's end on this machine.
func (d *discovery) addAddr(node string, a netip.Addr) {
	if !d.addrs[node].IsValid() && a.Is4() && !a.IsLinkLocalUnicast() && !a.IsLoopback() {
		d.addrs[node] = a
	}
}

// addNode adds the links that a node reports.
func (d *discovery) addNode(n *Node) {
	for i := range n.Ports {
		p := &n.Ports[i]
		here := end{n.Name, p.Name}
		if len(p.Neighbors) > 1 {
			d.finding("%v has %s, want one: a bridge that passes LLDP on?", here, plural.Count(len(p.Neighbors), "neighbour"))
			continue
		}
		for _, peer := range p.Neighbors {
			d.forwards[peer.Node] = d.forwards[peer.Node] || peer.Forwards
			d.addAddr(peer.Node, peer.Addr)
			far, ok := d.farEnd(here, &peer)
			if !ok {
				d.finding("%v has the neighbour %s %s, which does not have that port", here, peer.Node, strings.Join(peer.Ports, " or "))
				continue
			}
			d.addLink(here, far, p.Rate)
		}
	}
}

// farEnd returns the port of a neighbour: by one of the names that it sent, or else the one
// that has this port as its neighbour.
func (d *discovery) farEnd(here end, peer *Neighbor) (end, bool) {
	n := d.nodes[peer.Node]
	if n == nil {
		if len(peer.Ports) == 0 {
			return end{}, false
		}
		return end{peer.Node, peer.Ports[0]}, true
	}
	for _, name := range peer.Ports {
		if p := n.port(name); p != nil {
			return end{n.Name, p.Name}, true
		}
	}
	for i := range n.Ports {
		for _, back := range n.Ports[i].Neighbors {
			if back.Node == here.node && slices.Contains(back.Ports, here.port) {
				return end{n.Name, n.Ports[i].Name}, true
			}
		}
	}
	return end{}, false
}

// addLink notes what one end says.
func (d *discovery) addLink(here, far end, rate model.Rate) {
	if here == far {
		d.finding("%v is its own neighbour", here)
		return
	}
	key, side := [2]end{here, far}, 0
	if here.compare(far) > 0 {
		key, side = [2]end{far, here}, 1
	}
	l := d.links[key]
	if l == nil {
		l = &said{a: key[0], z: key[1]}
		d.links[key] = l
	}
	l.by[side], l.rates[side] = true, rate
}

// consistent returns the links in order: those that both ends report, and of the others
// those whose ends are in no other link.
func (d *discovery) consistent() (list []*said) {
	var sure, single []*said
	for _, l := range d.links {
		if l.by[0] && l.by[1] {
			sure = append(sure, l)
		} else {
			single = append(single, l)
		}
	}
	order := func(x, y *said) int { return cmp.Or(x.a.compare(y.a), x.z.compare(y.z)) }
	slices.SortFunc(sure, order)
	slices.SortFunc(single, order)
	linked := map[end]end{}
	for _, l := range append(sure, single...) {
		from, to := l.a, l.z
		if !l.by[0] {
			from, to = l.z, l.a
		}
		for _, e := range []end{l.a, l.z} {
			if other, taken := linked[e]; taken {
				d.finding("%v says that it is linked to %v, but %v is linked to %v", from, to, e, other)
				from.node = ""
				break
			}
		}
		if from.node == "" {
			continue
		}
		if l.by[0] != l.by[1] && d.nodes[to.node] != nil {
			d.finding("%v has the neighbour %v, which does not report it", from, to)
		}
		linked[l.a], linked[l.z] = l.z, l.a
		list = append(list, l)
	}
	slices.SortFunc(list, order)
	return list
}

// fabric builds the topology of links.
func (d *discovery) fabric(cfg Config, list []*said) (*topo.Fabric, error) {
	b := topo.NewBuilder(cfg.Name)
	ids := map[string]model.NodeID{}
	owner := map[netip.Addr]string{}
	var names []string
	for _, l := range list {
		names = append(names, l.a.node, l.z.node)
	}
	slices.SortFunc(names, compareNatural)
	for _, name := range slices.Compact(names) {
		s := topo.NodeSpec{Name: name, Role: topo.Host, Pod: topo.NoPod}
		if d.forwards[name] {
			s.Role = topo.Switch
		}
		if a := d.addrs[name]; a.IsValid() {
			if other, taken := owner[a]; taken {
				d.finding("%s and %s have the management address %v", other, name, a)
			} else {
				owner[a], s.IPv4 = name, a
			}
		}
		ids[name] = b.AddNode(s)
	}
	for _, l := range list {
		spec := cfg.Link
		switch {
		case l.rates[0] != 0 && l.rates[1] != 0 && l.rates[0] != l.rates[1]:
			d.finding("%v has %s, %v has %s: the ends of a link must agree", l.a, model.FormatRate(l.rates[0]), l.z, model.FormatRate(l.rates[1]))
			spec.Rate = min(l.rates[0], l.rates[1])
		case l.rates[0]+l.rates[1] != 0:
			spec.Rate = max(l.rates[0], l.rates[1])
		}
		b.AddLink(topo.End{Node: ids[l.a.node], Port: l.a.port}, topo.End{Node: ids[l.z.node], Port: l.z.port}, spec)
	}
	return b.Build()
}

// compareNatural orders names with numbers as people do: tor2 before tor10.
func compareNatural(x, y string) int {
	xs, xn := splitNumber(x)
	ys, yn := splitNumber(y)
	return cmp.Or(strings.Compare(xs, ys), cmp.Compare(len(xn), len(yn)), strings.Compare(xn, yn), strings.Compare(x, y))
}

// splitNumber splits the digits at the end of a name from the rest, without leading zeros.
func splitNumber(s string) (text, digits string) {
	text = strings.TrimRight(s, "0123456789")
	return text, strings.TrimLeft(s[len(text):], "0")
}
