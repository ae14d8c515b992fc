package file

import (
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// parseContainerlab parses a containerlab lab. It is a foreign format with many
// keys that do not describe the fabric: those are ignored.
//
// Nodes of kind linux are hosts, all others switches; the label weft.role
// overrides that, weft.pod sets the pod. Labels may also be set on the node's
// group, its kind, or the defaults, as in containerlab itself.
func parseContainerlab(name string, data []byte) (*Document, error) {
	root, err := tree.Parse(name, data, "a topology")
	if err != nil {
		return nil, err
	}
	top, err := lookup(root.FollowAliases(), "the file")
	if err != nil {
		return nil, err
	}
	topology, ok := top["topology"]
	if !ok {
		return nil, root.Errorf("file has no topology, want a containerlab lab")
	}
	lab, err := lookup(topology, "topology")
	if err != nil {
		return nil, err
	}
	b := topo.NewBuilder(labName(top))
	nodes, ok := lab["nodes"]
	if !ok {
		return nil, topology.Errorf("topology has no nodes, want at least one")
	}
	list, err := nodes.Entries("nodes")
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
			return nil, e.Errorf("%v", err)
		}
	}
	if links, ok := lab["links"]; ok {
		if err := readLabLinks(b, links); err != nil {
			return nil, err
		}
	}
	f, err := b.Build()
	if err != nil {
		return nil, nodes.Errorf("%v", err)
	}
	return &Document{Fabric: f}, nil
}

// labName returns the lab's name if it is a valid fabric name; containerlab also
// allows variables in it.
func labName(top map[string]tree.Value) string {
	name, err := optionalText(top, "name")
	if err != nil || topo.NewBuilder(name).Err() != nil {
		return ""
	}
	return name
}

// lookup returns a mapping by key and accepts any key.
func lookup(v tree.Value, what string) (map[string]tree.Value, error) {
	if v.IsEmpty() {
		return nil, nil
	}
	list, err := v.Entries(what)
	if err != nil {
		return nil, err
	}
	out := make(map[string]tree.Value, len(list))
	for _, e := range list {
		out[e.Key] = e.Value
	}
	return out, nil
}

func readLabNode(lab map[string]tree.Value, e tree.Entry) (topo.NodeSpec, error) {
	spec := topo.NodeSpec{Name: e.Key, Role: topo.Switch, Pod: topo.NoPod}
	settings, err := labSettingsOf(lab, e)
	if err != nil {
		return spec, err
	}
	if kind, err := optionalText(settings.kind, "kind"); err != nil {
		return spec, err
	} else if kind == "linux" {
		spec.Role = topo.Host
	}
	for _, labels := range settings.labels {
		if err := readLabLabels(&spec, labels); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// labSettings is where a node's settings come from.
type labSettings struct {
	kind   map[string]tree.Value   // the mapping that sets the kind
	labels []map[string]tree.Value // labels; later ones win
}

// labSettingsOf follows containerlab's order: the defaults, then the kind, then the
// group, then the node itself.
func labSettingsOf(lab map[string]tree.Value, e tree.Entry) (s labSettings, err error) {
	node, err := lookup(e.Value, "node "+e.Key)
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
	for _, settings := range []map[string]tree.Value{node, group, defaults} {
		if _, ok := settings["kind"]; ok && s.kind == nil {
			s.kind = settings
		}
	}
	if s.kind == nil {
		return s, e.Errorf("node %s has no kind, want one there, in its group or in the defaults", e.Key)
	}
	kind, err := lookupNamed(lab, "kinds", s.kind, "kind")
	if err != nil {
		return s, err
	}
	for _, settings := range []map[string]tree.Value{defaults, kind, group, node} {
		labels, err := lookupIn(settings, "labels")
		if err != nil {
			return s, err
		}
		s.labels = append(s.labels, labels)
	}
	return s, nil
}

// lookupIn returns the mapping under a key; a missing one is empty.
func lookupIn(in map[string]tree.Value, key string) (map[string]tree.Value, error) {
	v, ok := in[key]
	if !ok {
		return nil, nil
	}
	return lookup(v, key)
}

// lookupNamed returns the mapping of lab[list] that the text at from[key] names.
func lookupNamed(lab map[string]tree.Value, list string, from map[string]tree.Value,
	key string,
) (map[string]tree.Value, error) {
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

func readLabLabels(spec *topo.NodeSpec, labels map[string]tree.Value) error {
	if v, ok := labels["weft.role"]; ok {
		s, err := v.Text("label weft.role")
		if err != nil {
			return err
		}
		if spec.Role, err = topo.ParseRole(s); err != nil {
			return v.Errorf("label weft.role: %v", err)
		}
	}
	if v, ok := labels["weft.pod"]; ok {
		n, err := readUint(v, "label weft.pod")
		if err != nil {
			return err
		}
		spec.Pod = int(min(n, topo.MaxNodes)) // too large stays too large
	}
	return nil
}

// outsideEnds are containerlab's names for endpoints that are not nodes of the
// lab.
var outsideEnds = []string{"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}

func readLabLinks(b *topo.Builder, v tree.Value) error {
	list, err := items(v, "links")
	if err != nil {
		return err
	}
	for _, v := range list {
		link, err := lookup(v, "a link")
		if err != nil {
			return err
		}
		ends, ok := link["endpoints"]
		if !ok {
			if _, one := link["endpoint"]; one {
				continue // from a node to something outside the lab
			}
			return v.Errorf("a link has no endpoints, want two such as [\"tor0:eth1\", \"h0:eth1\"]")
		}
		two, err := items(ends, "endpoints")
		if err != nil {
			return err
		}
		if len(two) != 2 {
			return ends.Errorf("a link has %d endpoints, want two", len(two))
		}
		var joined [2]topo.End
		outside := false
		for i, item := range two {
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
			return v.Errorf("%v", err)
		}
	}
	return nil
}

// readLabEnd reads "node:interface" or {node: …, interface: …} and reports
// whether it is outside the lab.
func readLabEnd(b *topo.Builder, v tree.Value, end *topo.End) (outside bool, err error) {
	node, port, err := labEnd(v)
	if err != nil {
		return false, err
	}
	id, ok := b.ByName(node)
	if !ok {
		if slices.Contains(outsideEnds, node) {
			return true, nil
		}
		return false, v.Errorf("link names unknown node %q, want one of the nodes", node)
	}
	*end = topo.End{Node: id, Port: port}
	return false, nil
}

func labEnd(v tree.Value) (node, port string, err error) {
	if v.IsMap() {
		m, err := lookup(v, "an endpoint")
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
	s, err := v.ColonText("an endpoint", "node:port")
	if err != nil {
		return "", "", err
	}
	node, port, ok := strings.Cut(s, ":")
	if !ok || port == "" {
		return "", "", v.Errorf("endpoint %q, want node:interface", s)
	}
	return node, port, nil
}
