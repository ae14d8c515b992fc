package file

import (
	"encoding/json"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// field is a key and its value: a string, a number (json.Number), or a list of
// strings.
type field struct {
	key string
	val any
}

// record is a line of output: {key: value, …}.
type record []field

// content is a document in the order in which both writers print it.
type content struct {
	head   []field // name, seed: one line each
	single []section
	lists  []section
}

// section is a record, or a list of records, under a key.
type section struct {
	key     string
	records []record
}

func contentOf(d *Document) content {
	var c content
	if name := d.Fabric.Name(); name != "" && (d.Generate == nil || d.Generate.Name != "") {
		c.head = append(c.head, field{"name", name})
	}
	if d.Seed != 0 {
		c.head = append(c.head, field{"seed", json.Number(strconv.FormatUint(d.Seed, 10))})
	}
	if d.Generate != nil {
		c.single = append(c.single, section{"generate", []record{generateRecord(d.Generate)}})
	} else {
		base := commonSpec(d.Fabric)
		c.single = append(c.single, section{"defaults", []record{specRecord(nil, base, topo.LinkSpec{Rate: -1, Delay: -1})}})
		c.lists = append(c.lists, section{"nodes", nodeRecords(d.Fabric)})
		if len(d.Fabric.Links()) > 0 {
			c.lists = append(c.lists, section{"links", linkRecords(d.Fabric, base)})
		}
	}
	if len(d.Overrides) > 0 {
		c.lists = append(c.lists, section{"routes", routeRecords(d.Fabric, d.Overrides)})
	}
	return c
}

func generateRecord(s *topo.Spec) record {
	r := record{{"kind", s.Kind}}
	for _, key := range slices.Sorted(maps.Keys(s.Params)) {
		val := any(s.Params[key])
		if number.MatchString(s.Params[key]) {
			val = json.Number(s.Params[key])
		}
		r = append(r, field{key, val})
	}
	return r
}

// commonSpec is the spec of most links; it is written once, as the default.
func commonSpec(f *topo.Fabric) topo.LinkSpec {
	count := make(map[topo.LinkSpec]int)
	best := topo.DefaultLinks().Fabric
	for _, l := range f.Links() {
		count[l.LinkSpec]++
		if count[l.LinkSpec] > count[best] {
			best = l.LinkSpec
		}
	}
	return best
}

// specRecord appends the values of s that differ from base.
func specRecord(r record, s, base topo.LinkSpec) record {
	if s.Rate != base.Rate {
		r = append(r, field{"rate", s.Rate.String()})
	}
	if s.Delay != base.Delay {
		r = append(r, field{"delay", shortDelay(s.Delay)})
	}
	if s.ErrorRate != base.ErrorRate {
		r = append(r, field{"error-rate", json.Number(strconv.FormatFloat(s.ErrorRate, 'g', -1, 64))})
	}
	return r
}

func nodeRecords(f *topo.Fabric) (out []record) {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		r := record{{"name", n.Name}, {"role", n.Role.String()}}
		if n.Pod != topo.NoPod {
			r = append(r, field{"pod", json.Number(strconv.Itoa(n.Pod))})
		}
		r = append(r, field{"ipv4", n.IPv4.String()})
		if n.IPv6 != topo.IPv6For(n.IPv4) {
			r = append(r, field{"ipv6", n.IPv6.String()})
		}
		if len(n.Nets) > 0 {
			nets := make([]string, len(n.Nets))
			for i, p := range n.Nets {
				nets[i] = p.String()
			}
			r = append(r, field{"nets", nets})
		}
		out = append(out, r)
	}
	return out
}

func linkRecords(f *topo.Fabric, base topo.LinkSpec) (out []record) {
	for _, l := range f.Links() {
		r := record{{"ends", []string{endText(f, l.A), endText(f, l.B)}}}
		out = append(out, specRecord(r, l.LinkSpec, base))
	}
	return out
}

// endText omits the port's name if it is the default name.
func endText(f *topo.Fabric, p model.Port) string {
	n := f.Node(p.Node)
	if name := n.Port(p.Port).Name; name != n.Role.PortName(int(p.Port)) {
		return n.Name + ":" + name
	}
	return n.Name
}

func routeRecords(f *topo.Fabric, all []topo.Override) (out []record) {
	for i := 0; i < len(all); i++ {
		o := all[i]
		to := o.To.String()
		if id, ok := f.ByAddr(model.AddrOf(o.To.Addr())); ok && o.To.IsSingleIP() {
			to = o.To.Addr().String()
			// Two routes to both addresses of a node are one to the node.
			if i+1 < len(all) && isRouteTo(f, id, o, all[i+1]) {
				to = f.Node(id).Name
				i++
			}
		}
		r := record{{"at", f.Node(o.At).Name}, {"to", to}}
		var hops []string
		via, ok := neighbours(f, o)
		if ok {
			for _, v := range via {
				hops = append(hops, f.Node(v).Name)
			}
			r = append(r, field{"via", hops})
		} else {
			for _, p := range o.Ports {
				hops = append(hops, f.Node(o.At).Port(p).Name)
			}
			r = append(r, field{"ports", hops})
		}
		out = append(out, r)
	}
	return out
}

// isRouteTo reports whether two overrides are those of Fabric.RouteTo for a node.
func isRouteTo(f *topo.Fabric, id model.NodeID, a, b topo.Override) bool {
	n := f.Node(id)
	return a.At == b.At && slices.Equal(a.Ports, b.Ports) &&
		a.To == netip.PrefixFrom(n.IPv4.Netip(), 32) && b.To == netip.PrefixFrom(n.IPv6.Netip(), 128)
}

// neighbours returns the peers of a route's ports, and whether the route uses all
// ports to them.
func neighbours(f *topo.Fabric, o topo.Override) (via []model.NodeID, ok bool) {
	n := f.Node(o.At)
	var all []model.PortID
	for _, p := range o.Ports {
		if peer := n.Port(p).Peer.Node; !slices.Contains(via, peer) {
			via = append(via, peer)
			all = append(all, n.PortsTo(peer)...)
		}
	}
	slices.Sort(all)
	ports := slices.Clone(o.Ports)
	slices.Sort(ports)
	return via, slices.Equal(all, ports)
}

func appendYAML(b []byte, d *Document) []byte {
	c := contentOf(d)
	for _, f := range c.head {
		b = append(append(append(b, f.key...), ": "...), scalar(f.val, false)...)
		b = append(b, '\n')
	}
	for _, s := range c.single {
		b = append(append(b, s.key...), ": "...)
		b = append(s.records[0].appendTo(b, false), '\n')
	}
	for _, s := range c.lists {
		b = append(append(b, s.key...), ":\n"...)
		for _, r := range s.records {
			b = append(r.appendTo(append(b, "  - "...), false), '\n')
		}
	}
	return b
}

// appendJSON writes the same schema with one line per node, link and route, so
// that a diff of two files shows them.
func appendJSON(b []byte, d *Document) []byte {
	c := contentOf(d)
	sep := "{\n  "
	key := func(k string) {
		b = append(append(append(append(b, sep...), '"'), k...), `": `...)
		sep = ",\n  "
	}
	for _, f := range c.head {
		key(f.key)
		b = append(b, scalar(f.val, true)...)
	}
	for _, s := range c.single {
		key(s.key)
		b = s.records[0].appendTo(b, true)
	}
	for _, s := range c.lists {
		key(s.key)
		between := "[\n    "
		for _, r := range s.records {
			b = r.appendTo(append(b, between...), true)
			between = ",\n    "
		}
		b = append(b, "\n  ]"...)
	}
	return append(b, "\n}\n"...)
}

func (r record) appendTo(b []byte, inJSON bool) []byte {
	b = append(b, '{')
	for i, f := range r {
		if i > 0 {
			b = append(b, ", "...)
		}
		if inJSON {
			b = append(append(append(b, '"'), f.key...), '"')
		} else {
			b = append(b, f.key...)
		}
		b = append(b, ": "...)
		list, ok := f.val.([]string)
		if !ok {
			b = append(b, scalar(f.val, inJSON)...)
			continue
		}
		b = append(b, '[')
		for j, s := range list {
			if j > 0 {
				b = append(b, ", "...)
			}
			b = append(b, scalar(s, inJSON)...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// Texts that need no quotes in YAML: words, addresses, prefixes, and numbers
// with a unit. All others are quoted for the sake of other YAML readers: many
// parse tor0:Ethernet4 inside braces as a key and its value.
var (
	plainText     = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+){3}(/[0-9]+)?|[0-9.]+([kMGT]?b/s|ns|us|ms|s))$`)
	reservedWords = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n|inf|nan)$`)
	number        = regexp.MustCompile(`^(0|[1-9][0-9]{0,15})$`)
)

func scalar(v any, inJSON bool) string {
	if n, ok := v.(json.Number); ok {
		return string(n)
	}
	s := v.(string)
	if !inJSON && plainText.MatchString(s) && !reservedWords.MatchString(s) {
		return s
	}
	// All texts are ASCII, where Go's quoting is JSON's and YAML's.
	return strconv.Quote(s)
}

// shortDelay prints a delay in ASCII, as people type it.
func shortDelay(d time.Duration) string { return strings.Replace(d.String(), "µs", "us", 1) }
