package file

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// parseYAML parses Weft's format.
func parseYAML(name string, data []byte) (*Document, error) {
	root, err := tree.Parse(name, data, "a topology")
	if err != nil {
		return nil, err
	}
	top, err := root.Fields("the file", "name", "seed", "defaults", "generate", "nodes", "links", "routes")
	if err != nil {
		return nil, err
	}
	d := &Document{}
	if v, ok := top["seed"]; ok {
		if d.Seed, err = readUint(v, "seed"); err != nil {
			return nil, err
		}
	}
	fabricName, err := optionalText(top, "name")
	if err != nil {
		return nil, err
	}
	if gen, ok := top["generate"]; ok {
		for _, key := range []string{"nodes", "links", "defaults"} {
			if v, both := top[key]; both {
				return nil, v.KeyPosition().Errorf("%s together with generate, want one or the other", key)
			}
		}
		if err := readGenerate(d, gen, fabricName, top["name"]); err != nil {
			return nil, err
		}
	} else if err := readNodesAndLinks(d, root, top, fabricName); err != nil {
		return nil, err
	}
	if v, ok := top["routes"]; ok {
		if d.Overrides, err = readRoutes(d.Fabric, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// items returns the items of a list; an empty value is an empty list.
func items(v tree.Value, what string) ([]tree.Value, error) {
	if v.IsEmpty() {
		return nil, nil
	}
	return v.List(what)
}

func optionalText(fields map[string]tree.Value, key string) (string, error) {
	v, ok := fields[key]
	if !ok {
		return "", nil
	}
	return v.Text(key)
}

func readUint(v tree.Value, what string) (uint64, error) {
	s, err := v.Text(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, v.Errorf("%s %q, want a whole number from 0", what, s)
	}
	return n, nil
}

// readGenerate makes the fabric with topo.Generate, so that a file and a command
// line mean the same.
func readGenerate(d *Document, v tree.Value, name string, nameAt tree.Value) error {
	list, err := v.Entries("generate")
	if err != nil {
		return err
	}
	spec := topo.Spec{Name: name, Params: make(map[string]string)}
	lines := map[string]tree.Value{"name": nameAt}
	for _, e := range list {
		text, err := e.Text(e.Key)
		if err != nil {
			return err
		}
		if e.Key == "kind" {
			spec.Kind = text
		} else {
			spec.Params[e.Key] = text
		}
		if e.Key != "name" {
			lines[e.Key] = e.Value
		}
	}
	if d.Fabric, err = topo.Generate(spec); err != nil {
		at := v
		if pe := (*topo.ParamError)(nil); errors.As(err, &pe) {
			if line, ok := lines[pe.Param]; ok && line.Line > 0 {
				at = line
			}
		}
		return at.Errorf("%v", err)
	}
	d.Generate = &spec
	return nil
}

func readNodesAndLinks(d *Document, root tree.Value, top map[string]tree.Value, name string) error {
	base := topo.DefaultLinks().Fabric
	if v, ok := top["defaults"]; ok {
		fields, err := v.Fields("defaults", linkKeys...)
		if err != nil {
			return err
		}
		if base, err = readLinkSpec(fields, base); err != nil {
			return err
		}
	}
	nodes, ok := top["nodes"]
	if !ok {
		return root.Errorf("file has neither nodes nor generate, want one of them")
	}
	b := topo.NewBuilder(name)
	if err := b.Err(); err != nil {
		return top["name"].Errorf("%v", err)
	}
	list, err := items(nodes, "nodes")
	if err != nil {
		return err
	}
	for _, v := range list {
		spec, err := readNode(v)
		if err != nil {
			return err
		}
		b.AddNode(spec)
		if err := b.Err(); err != nil {
			return v.Errorf("%v", err)
		}
	}
	if links, ok := top["links"]; ok {
		if err := readLinks(b, links, base); err != nil {
			return err
		}
	}
	if d.Fabric, err = b.Build(); err != nil {
		return nodes.Errorf("%v", err)
	}
	return nil
}

func readNode(v tree.Value) (spec topo.NodeSpec, err error) {
	fields, err := v.Fields("a node", "name", "role", "pod", "ipv4", "ipv6", "nets")
	if err != nil {
		return spec, err
	}
	if spec.Name, err = requiredText(v, fields, "a node", "name"); err != nil {
		return spec, err
	}
	role, err := requiredText(v, fields, "node "+spec.Name, "role")
	if err != nil {
		return spec, err
	}
	if spec.Role, err = topo.ParseRole(role); err != nil {
		return spec, fields["role"].Errorf("%v", err)
	}
	spec.Pod = topo.NoPod
	if p, ok := fields["pod"]; ok {
		n, err := readUint(p, "pod")
		if err != nil {
			return spec, err
		}
		spec.Pod = int(min(n, topo.MaxNodes)) // too large remains an error
	}
	if spec.IPv4, err = optionalAddr(fields, "ipv4"); err != nil {
		return spec, err
	}
	if spec.IPv6, err = optionalAddr(fields, "ipv6"); err != nil {
		return spec, err
	}
	if nets, ok := fields["nets"]; ok {
		spec.Nets, err = readNets(nets)
	}
	return spec, err
}

func requiredText(v tree.Value, fields map[string]tree.Value, what, key string) (string, error) {
	f, ok := fields[key]
	if !ok {
		return "", v.Errorf("%s has no %s, want one", what, key)
	}
	return f.Text(key)
}

func optionalAddr(fields map[string]tree.Value, key string) (netip.Addr, error) {
	v, ok := fields[key]
	if !ok {
		return netip.Addr{}, nil
	}
	s, err := v.Text(key)
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, v.Errorf("%s %q, want an address", key, s)
	}
	return a, nil
}

func readNets(v tree.Value) (nets []netip.Prefix, err error) {
	list, err := items(v, "nets")
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		s, err := item.Text("a net")
		if err != nil {
			return nil, err
		}
		p, err := parsePrefix(s)
		if err != nil {
			return nil, item.Errorf("net %q, want a prefix such as 192.0.2.0/24", s)
		}
		nets = append(nets, p)
	}
	return nets, nil
}

// parsePrefix parses a prefix, or an address as a prefix of full length.
func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, errors.New("not an address")
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

var linkKeys = []string{"rate", "delay", "error-rate"}

// readLinkSpec returns base with the values that the fields set.
func readLinkSpec(fields map[string]tree.Value, base topo.LinkSpec) (topo.LinkSpec, error) {
	for _, key := range linkKeys {
		v, ok := fields[key]
		if !ok {
			continue
		}
		s, err := v.Text(key)
		if err != nil {
			return base, err
		}
		switch key {
		case "rate":
			base.Rate, err = model.ParseRate(s)
			if err == nil && base.Rate <= 0 {
				return base, v.Errorf("rate %s, want above 0", s)
			}
		case "delay":
			base.Delay, err = topo.ParseDelay(s)
		case "error-rate":
			base.ErrorRate, err = topo.ParseErrorRate(s)
		}
		if err != nil {
			return base, v.Errorf("%v", err)
		}
	}
	return base, nil
}

func readLinks(b *topo.Builder, v tree.Value, base topo.LinkSpec) error {
	list, err := items(v, "links")
	if err != nil {
		return err
	}
	for _, v := range list {
		fields, err := v.Fields("a link", append([]string{"ends"}, linkKeys...)...)
		if err != nil {
			return err
		}
		endsAt, ok := fields["ends"]
		if !ok {
			return v.Errorf("a link has no ends, want two, such as [h0, tor0]")
		}
		two, err := items(endsAt, "ends")
		if err != nil {
			return err
		}
		if len(two) != 2 {
			return endsAt.Errorf("a link has %d ends, want two, such as [h0, tor0]", len(two))
		}
		var ends [2]topo.End
		for i, item := range two {
			if ends[i], err = readEnd(b, item); err != nil {
				return err
			}
		}
		spec, err := readLinkSpec(fields, base)
		if err != nil {
			return err
		}
		b.AddLink(ends[0], ends[1], spec)
		if err := b.Err(); err != nil {
			return v.Errorf("%v", err)
		}
	}
	return nil
}

// readEnd reads "node" or "node:port".
func readEnd(b *topo.Builder, v tree.Value) (topo.End, error) {
	s, err := v.ColonText("an end of a link", "node:port")
	if err != nil {
		return topo.End{}, err
	}
	node, port, named := strings.Cut(s, ":")
	id, ok := b.ByName(node)
	if !ok {
		return topo.End{}, v.Errorf("link names unknown node %q, want one of the nodes above", node)
	}
	if named && port == "" {
		return topo.End{}, v.Errorf("end %q, want node or node:port", s)
	}
	return topo.End{Node: id, Port: port}, nil
}
