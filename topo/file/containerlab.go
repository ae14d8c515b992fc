package file

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weft-telemetry/weft/topo"
)

// parseContainerlab reads a containerlab lab. It is a foreign format with many
// keys that say nothing about the fabric: those are passed over.
//
// Nodes of kind linux are hosts, all others switches; the label weft.role says
// otherwise, weft.pod gives a pod. Labels may also stand with the node's group,
// its kind, or the defaults, as in containerlab itself.
func parseContainerlab(name string, data []byte) (*Document, error) {
	root, err := parseTree(name, data)
	if err != nil {
		return nil, err
	}
	root.anchors = anchorsBelow(root.node)
	top, err := root.lookup("the file")
	if err != nil {
		return nil, err
	}
	topology, ok := top["topology"]
	if !ok {
		return nil, root.errorf("file has no topology, want a containerlab lab")
	}
	lab, err := topology.lookup("topology")
	if err != nil {
		return nil, err
	}
	b := topo.NewBuilder(labName(top))
	nodes, ok := lab["nodes"]
	if !ok {
		return nil, topology.errorf("topology has no nodes, want at least one")
	}
	list, err := nodes.entries("nodes")
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		spec, err := readLabNode(lab, e)
		if err != nil {
			return nil, err
		}
		b.AddNode(spec)
		if err := b.Err(); err != nil {
			return nil, e.errorf("%v", err)
		}
	}
	if links, ok := lab["links"]; ok {
		if err := readLabLinks(b, links); err != nil {
			return nil, err
		}
	}
	f, err := b.Build()
	if err != nil {
		return nil, nodes.errorf("%v", err)
	}
	return &Document{Fabric: f}, nil
}

// labName returns the lab's name where ours may be the same; containerlab also
// allows variables in it.
func labName(top map[string]value) string {
	name, err := optionalText(top, "name")
	if err != nil || topo.NewBuilder(name).Err() != nil {
		return ""
	}
	return name
}

// lookup returns a mapping by key, whatever the keys are.
func (v value) lookup(what string) (map[string]value, error) {
	if _, empty := v.node.(*ast.NullNode); empty {
		return nil, nil
	}
	list, err := v.entries(what)
	if err != nil {
		return nil, err
	}
	out := make(map[string]value, len(list))
	for _, e := range list {
		out[e.key] = e.value
	}
	return out, nil
}

func readLabNode(lab map[string]value, e entry) (topo.NodeSpec, error) {
	spec := topo.NodeSpec{Name: e.key, Role: topo.Switch, Pod: topo.NoPod}
	places, err := labPlaces(lab, e)
	if err != nil {
		return spec, err
	}
	if kind, err := optionalText(places.kind, "kind"); err != nil {
		return spec, err
	} else if kind == "linux" {
		spec.Role = topo.Host
	}
	for _, place := range places.labels {
		if err := readLabLabels(&spec, place); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// labSettings is where a node's settings come from.
type labSettings struct {
	kind   map[string]value   // the place that says the kind
	labels []map[string]value // labels; later ones win
}

// labPlaces follows containerlab's order: the defaults, then the kind, then the
// group, then the node itself.
func labPlaces(lab map[string]value, e entry) (s labSettings, err error) {
	node, err := e.lookup("node " + e.key)
	if err != nil {
		return s, err
	}
	defaults, err := lookupIn(lab, "defaults")
	if err != nil {
		return s, err
	}
	group, err := lookupNamed(lab, "groups", node, "group")
	if err != nil {
		return s, err
	}
	for _, place := range []map[string]value{node, group, defaults} {
		if _, ok := place["kind"]; ok && s.kind == nil {
			s.kind = place
		}
	}
	if s.kind == nil {
		return s, e.errorf("node %s has no kind, want one there, in its group or in the defaults", e.key)
	}
	kind, err := lookupNamed(lab, "kinds", s.kind, "kind")
	if err != nil {
		return s, err
	}
	for _, place := range []map[string]value{defaults, kind, group, node} {
		labels, err := lookupIn(place, "labels")
		if err != nil {
			return s, err
		}
		s.labels = append(s.labels, labels)
	}
	return s, nil
}

// lookupIn returns the mapping under a key; what is not there is empty.
func lookupIn(in map[string]value, key string) (map[string]value, error) {
	v, ok := in[key]
	if !ok {
		return nil, nil
	}
	return v.lookup(key)
}

// lookupNamed returns the mapping of lab[list] that the text at from[key] names.
func lookupNamed(lab map[string]value, list string, from map[string]value, key string) (map[string]value, error) {
	name, err := optionalText(from, key)
	if err != nil {
		return nil, err
	}
	all, err := lookupIn(lab, list)
	if err != nil {
		return nil, err
	}
	return lookupIn(all, name)
}

func readLabLabels(spec *topo.NodeSpec, labels map[string]value) error {
	if v, ok := labels["weft.role"]; ok {
		s, err := v.text("label weft.role")
		if err != nil {
			return err
		}
		if spec.Role, err = topo.ParseRole(s); err != nil {
			return v.errorf("label weft.role: %v", err)
		}
	}
	if v, ok := labels["weft.pod"]; ok {
		n, err := v.uint("label weft.pod")
		if err != nil {
			return err
		}
		spec.Pod = int(min(n, topo.MaxNodes)) // too large stays too large
	}
	return nil
}

// outsideEnds are the names containerlab gives to what is not a node of the
// lab.
var outsideEnds = []string{"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}

func readLabLinks(b *topo.Builder, v value) error {
	list, err := v.list("links")
	if err != nil {
		return err
	}
	for _, v := range list {
		link, err := v.lookup("a link")
		if err != nil {
			return err
		}
		ends, ok := link["endpoints"]
		if !ok {
			if _, one := link["endpoint"]; one {
				continue // from a node to something outside the lab
			}
			return v.errorf("a link has no endpoints, want two such as [\"tor0:eth1\", \"h0:eth1\"]")
		}
		items, err := ends.list("endpoints")
		if err != nil {
			return err
		}
		if len(items) != 2 {
			return ends.errorf("a link has %d endpoints, want two", len(items))
		}
		var joined [2]topo.End
		outside := false
		for i, item := range items {
			out, err := readLabEnd(b, item, &joined[i])
			if err != nil {
				return err
			}
			outside = outside || out
		}
		if outside {
			continue
		}
		b.AddLink(joined[0], joined[1], topo.DefaultLinks().Fabric)
		if err := b.Err(); err != nil {
			return v.errorf("%v", err)
		}
	}
	return nil
}

// readLabEnd reads "node:interface" or {node: …, interface: …} and tells
// whether it lies outside the lab.
func readLabEnd(b *topo.Builder, v value, end *topo.End) (outside bool, err error) {
	node, port, err := labEnd(v)
	if err != nil {
		return false, err
	}
	id, ok := b.ByName(node)
	if !ok {
		if slices.Contains(outsideEnds, node) {
			return true, nil
		}
		return false, v.errorf("link names unknown node %q, want one of the nodes", node)
	}
	*end = topo.End{Node: id, Port: port}
	return false, nil
}

func labEnd(v value) (node, port string, err error) {
	if _, isMap := v.node.(ast.MapNode); isMap {
		m, err := v.lookup("an endpoint")
		if err != nil {
			return "", "", err
		}
		if _, extended := m["node"]; extended {
			if node, err = requiredText(v, m, "an endpoint", "node"); err != nil {
				return "", "", err
			}
			port, err = requiredText(v, m, "an endpoint", "interface")
			return node, port, err
		}
	}
	s, err := v.endText("an endpoint")
	if err != nil {
		return "", "", err
	}
	node, port, ok := strings.Cut(s, ":")
	if !ok || port == "" {
		return "", "", v.errorf("endpoint %q, want node:interface", s)
	}
	return node, port, nil
}
