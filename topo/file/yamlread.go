package file

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// parseYAML reads Weft's own format.
func parseYAML(name string, data []byte) (*Document, error) {
	root, err := parseTree(name, data)
	if err != nil {
		return nil, err
	}
	top, err := root.fields("the file", "name", "seed", "defaults", "generate", "nodes", "links", "routes")
	if err != nil {
		return nil, err
	}
	d := &Document{}
	if v, ok := top["seed"]; ok {
		if d.Seed, err = v.uint("seed"); err != nil {
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
				return nil, v.keyErrorf("%s beside generate, want one or the other", key)
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

func optionalText(fields map[string]value, key string) (string, error) {
	v, ok := fields[key]
	if !ok {
		return "", nil
	}
	return v.text(key)
}

func (v value) uint(what string) (uint64, error) {
	s, err := v.text(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, v.errorf("%s %q, want a whole number from 0", what, s)
	}
	return n, nil
}

// readGenerate has the registry of topo make the fabric, so that a file and a
// command line mean the same.
func readGenerate(d *Document, v value, name string, nameAt value) error {
	list, err := v.entries("generate")
	if err != nil {
		return err
	}
	spec := topo.Spec{Name: name, Params: make(map[string]string)}
	lines := map[string]value{"name": nameAt}
	for _, e := range list {
		text, err := e.text(e.key)
		if err != nil {
			return err
		}
		if _, twice := lines[e.key]; twice && e.key != "name" {
			return e.keyErrorf("key %q is in generate twice, want it once", e.key)
		}
		if e.key == "kind" {
			spec.Kind = text
		} else {
			spec.Params[e.key] = text
		}
		if e.key != "name" {
			lines[e.key] = e.value
		}
	}
	if d.Fabric, err = topo.Generate(spec); err != nil {
		at := v
		if pe := (*topo.ParamError)(nil); errors.As(err, &pe) {
			if line, ok := lines[pe.Param]; ok && line.line > 0 {
				at = line
			}
		}
		return at.errorf("%v", err)
	}
	d.Generate = &spec
	return nil
}

func readNodesAndLinks(d *Document, root value, top map[string]value, name string) error {
	base := topo.DefaultLinks().Fabric
	if v, ok := top["defaults"]; ok {
		fields, err := v.fields("defaults", linkKeys...)
		if err != nil {
			return err
		}
		if base, err = readLinkSpec(fields, base); err != nil {
			return err
		}
	}
	nodes, ok := top["nodes"]
	if !ok {
		return root.errorf("file has neither nodes nor generate, want one of them")
	}
	b := topo.NewBuilder(name)
	if err := b.Err(); err != nil {
		return top["name"].errorf("%v", err)
	}
	list, err := nodes.list("nodes")
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
			return v.errorf("%v", err)
		}
	}
	if links, ok := top["links"]; ok {
		if err := readLinks(b, links, base); err != nil {
			return err
		}
	}
	if d.Fabric, err = b.Build(); err != nil {
		return nodes.errorf("%v", err)
	}
	return nil
}

func readNode(v value) (spec topo.NodeSpec, err error) {
	fields, err := v.fields("a node", "name", "role", "pod", "ipv4", "ipv6", "nets")
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
		return spec, fields["role"].errorf("%v", err)
	}
	spec.Pod = topo.NoPod
	if p, ok := fields["pod"]; ok {
		n, err := p.uint("pod")
		if err != nil {
			return spec, err
		}
		spec.Pod = int(min(n, topo.MaxNodes)) // too large stays too large
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

func requiredText(v value, fields map[string]value, what, key string) (string, error) {
	f, ok := fields[key]
	if !ok {
		return "", v.errorf("%s has no %s, want one", what, key)
	}
	return f.text(key)
}

func optionalAddr(fields map[string]value, key string) (netip.Addr, error) {
	v, ok := fields[key]
	if !ok {
		return netip.Addr{}, nil
	}
	s, err := v.text(key)
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, v.errorf("%s %q, want an address", key, s)
	}
	return a, nil
}

func readNets(v value) (nets []netip.Prefix, err error) {
	list, err := v.list("nets")
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		s, err := item.text("a net")
		if err != nil {
			return nil, err
		}
		p, err := parsePrefix(s)
		if err != nil {
			return nil, item.errorf("net %q, want a prefix such as 192.0.2.0/24", s)
		}
		nets = append(nets, p)
	}
	return nets, nil
}

// parsePrefix reads a prefix, or an address as the prefix of only itself.
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

// readLinkSpec changes what the fields say and leaves the rest as in base.
func readLinkSpec(fields map[string]value, base topo.LinkSpec) (topo.LinkSpec, error) {
	for _, key := range linkKeys {
		v, ok := fields[key]
		if !ok {
			continue
		}
		s, err := v.text(key)
		if err != nil {
			return base, err
		}
		switch key {
		case "rate":
			base.Rate, err = model.ParseRate(s)
			if err == nil && base.Rate <= 0 {
				return base, v.errorf("rate %s, want above 0", s)
			}
		case "delay":
			base.Delay, err = topo.ParseDelay(s)
		case "error-rate":
			base.ErrorRate, err = topo.ParseErrorRate(s)
		}
		if err != nil {
			return base, v.errorf("%v", err)
		}
	}
	return base, nil
}

func readLinks(b *topo.Builder, v value, base topo.LinkSpec) error {
	list, err := v.list("links")
	if err != nil {
		return err
	}
	for _, v := range list {
		fields, err := v.fields("a link", append([]string{"ends"}, linkKeys...)...)
		if err != nil {
			return err
		}
		endsAt, ok := fields["ends"]
		if !ok {
			return v.errorf("a link has no ends, want two, such as [h0, tor0]")
		}
		items, err := endsAt.list("ends")
		if err != nil {
			return err
		}
		if len(items) != 2 {
			return endsAt.errorf("a link has %d ends, want two, such as [h0, tor0]", len(items))
		}
		var ends [2]topo.End
		for i, item := range items {
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
			return v.errorf("%v", err)
		}
	}
	return nil
}

// readEnd reads "node" or "node:port".
func readEnd(b *topo.Builder, v value) (topo.End, error) {
	s, err := v.endText("an end of a link")
	if err != nil {
		return topo.End{}, err
	}
	node, port, named := strings.Cut(s, ":")
	id, ok := b.ByName(node)
	if !ok {
		return topo.End{}, v.errorf("link names unknown node %q, want one of the nodes above", node)
	}
	if named && port == "" {
		return topo.End{}, v.errorf("end %q, want node or node:port", s)
	}
	return topo.End{Node: id, Port: port}, nil
}

// endText returns "node:port" also where it was written without quotes inside
// braces: YAML takes it for one text, the parser for a key and its value.
func (v value) endText(what string) (string, error) {
	if _, isMap := v.node.(ast.MapNode); !isMap {
		return v.text(what)
	}
	list, err := v.entries(what)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return "", v.errorf("%s is keys and values, want node:port", what)
	}
	port, err := list[0].text(what)
	return list[0].key + ":" + port, err
}
