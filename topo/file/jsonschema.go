package file

import (
	"fmt"

	"github.com/weft-telemetry/weft/internal/jsonschema"
	"github.com/weft-telemetry/weft/topo"
)

// JSONSchema describes a topology in Weft's format, as parseYAML reads it.
func JSONSchema() *jsonschema.Schema {
	text, scalar := jsonschema.Text, jsonschema.Scalar
	link := func(more map[string]*jsonschema.Schema) *jsonschema.Schema {
		more["rate"] = scalar("of the link, such as 100Gb/s")
		more["delay"] = scalar("of propagation, such as 600ns")
		more["error-rate"] = scalar("share of packets that are corrupted, such as 1e-6")
		return jsonschema.Object(more)
	}
	described := func(about string, s *jsonschema.Schema) *jsonschema.Schema {
		s.Description = about
		return s
	}
	node := jsonschema.Object(map[string]*jsonschema.Schema{
		"name": text("of the node"), "role": text("host, tor, leaf, spine, mux, …"), "pod": jsonschema.Number("number of the pod"),
		"ipv4": text("address; default: assigned"), "ipv6": text("address; default: assigned"),
		"nets": described("prefixes behind the node", jsonschema.List(text("a prefix such as 192.0.2.0/24"))),
	})
	node.Required = []string{"name", "role"}
	ends := described("two nodes, or NODE:PORT", jsonschema.List(text("NODE or NODE:PORT")))
	oneLink := link(map[string]*jsonschema.Schema{"ends": ends})
	oneLink.Required = []string{"ends"}
	route := jsonschema.Object(map[string]*jsonschema.Schema{
		"at": text("the switch"), "to": text("a node, an address or a prefix"),
		"via":   described("neighbours; empty: dropped", jsonschema.OneOrMore(text("a neighbour"))),
		"ports": described("ports instead of neighbours", jsonschema.OneOrMore(text("a port"))),
	})
	route.Required = []string{"at", "to"}
	kinds, order := map[string]*jsonschema.Schema{}, []string{}
	for _, k := range topo.Kinds() {
		params := map[string]*jsonschema.Schema{"kind": text("of the fabric"), "name": text("of the fabric")}
		for _, p := range k.Params {
			params[p.Name] = text(p.About)
			if p.Default != "" {
				params[p.Name].Default = p.Default
			}
		}
		kinds[k.Name] = described(k.About, jsonschema.Object(params))
		order = append(order, k.Name)
	}
	list := func(about string, item *jsonschema.Schema) *jsonschema.Schema {
		l := jsonschema.List(item)
		l.Type = []string{"array", "null"}
		return described(about, l)
	}
	return jsonschema.Object(map[string]*jsonschema.Schema{
		"name": text("of the fabric"), "seed": jsonschema.Number("of the ECMP hash"),
		"defaults": described("of links", link(map[string]*jsonschema.Schema{})),
		"generate": described(fmt.Sprintf("a regular fabric instead of nodes and links, one of %d kinds", len(order)), jsonschema.ByKind(kinds, order)),
		"nodes":    list("hosts and switches", node), "links": list("between two nodes", oneLink),
		"routes": list("that deviate from the shortest paths", route),
	})
}
