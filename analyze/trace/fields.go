package trace

import (
	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// View is a trace as filters see it: the packet as it was first seen, with its
// headers parsed, its hops, and its fate. One View serves many traces.
type View struct {
	*Trace
	frame headers.Frame
}

// SetTrace makes the view show a trace.
func (v *View) SetTrace(t *Trace) *View {
	v.Trace = t
	v.frame.Read(t.Frame, int(t.Length))
	return v
}

// ends are the names of packet fates.
var ends = map[string]int64{
	"unknown": int64(Unknown), "arrived": int64(Arrived), "lost": int64(Lost), "looped": int64(Looped),
	"unsettled": int64(Unsettled),
}

// Schema returns the fields of traces in a fabric: those of headers, of hops and
// of the whole trace. Node names are accepted for their addresses.
func Schema(f *topo.Fabric) *filter.Schema[View] {
	n := namesOf(f)
	fields := headers.Fields(func(v *View) *headers.Frame { return &v.frame })
	fields = append(fields, traceFields(n)...)
	fields = append(fields, hopFields(n)...)
	return filter.NewSchema(fields, func(name string) (model.Addr, bool) {
		id, ok := f.ByName(name)
		if !ok {
			return model.Addr{}, false
		}
		return f.Node(id).IPv4, true
	})
}

// nodeNames holds the names of nodes, ports and links, so that a match allocates none.
type nodeNames struct {
	fabric       *topo.Fabric
	ports, links [][]string // by node and port; port 0 has none
	known        map[string]int64
	port, link   map[string]int64
}

func namesOf(f *topo.Fabric) *nodeNames {
	n := &nodeNames{
		fabric: f, ports: make([][]string, len(f.Nodes())), links: make([][]string, len(f.Nodes())),
		known: map[string]int64{}, port: map[string]int64{}, link: map[string]int64{},
	}
	for _, id := range f.Switches() {
		node := f.Node(id)
		n.known[node.Name] = int64(id)
		n.ports[id], n.links[id] = make([]string, len(node.Ports)+1), make([]string, len(node.Ports)+1)
		for i := range node.Ports {
			p := model.Port{Node: id, Port: model.PortID(i + 1)}
			port, link := f.PortRef(p), linkName(f, p)
			n.ports[id][p.Port], n.links[id][p.Port] = port, link
			n.port[port], n.link[link] = 0, 0
		}
	}
	return n
}

// linkName returns a link as filters take it, "tor0>leaf1"; parallel links have
// one name. A port without a link has PortRef's form.
func linkName(f *topo.Fabric, p model.Port) string {
	if port := f.Port(p); port != nil && port.Peer.Port != 0 {
		return f.Node(p.Node).Name + ">" + f.Node(port.Peer.Node).Name
	}
	return f.PortRef(p)
}

func (n *nodeNames) switchText(id model.NodeID) (filter.Value, bool) {
	if !n.fabric.HasNode(id) {
		return filter.Value{}, false
	}
	return filter.TextValue(n.fabric.Node(id).Name), true
}

// outPortText returns the name of a hop's out port in a table.
func (n *nodeNames) outPortText(table [][]string, h *Hop) (filter.Value, bool) {
	if int(h.Switch) >= len(table) || int(h.Out) >= len(table[h.Switch]) || h.Out == 0 {
		return filter.Value{}, false
	}
	return filter.TextValue(table[h.Switch][h.Out]), true
}

func traceFields(n *nodeNames) []filter.Field[View] {
	yes := func(name, about string, get func(t *Trace) bool) filter.Field[View] {
		return filter.Field[View]{
			Name: name, Type: filter.Bool, About: about,
			Get: filter.SingleValue(func(v *View) filter.Value { return filter.BoolValue(get(v.Trace)) }),
		}
	}
	number := func(name, about string, get func(t *Trace) int) filter.Field[View] {
		return filter.Field[View]{
			Name: name, Type: filter.Int, About: about,
			Get: filter.SingleValue(func(v *View) filter.Value { return filter.IntValue(get(v.Trace)) }),
		}
	}
	at := func(name, about string, which func(t *Trace) int) filter.Field[View] {
		return filter.Field[View]{
			Name: name, Type: filter.Text, About: about, Names: n.known,
			Get: func(v *View, i int) (filter.Value, bool) {
				if i > 0 {
					return filter.Value{}, false
				}
				return n.switchText(v.Hops[which(v.Trace)].Switch)
			},
		}
	}
	return []filter.Field[View]{
		yes("trace.drop", "last seen where it should not end", func(t *Trace) bool { return t.End == Lost }),
		yes("trace.loop", "passed a device twice", func(t *Trace) bool { return t.End == Looped }),
		yes("trace.duplicate", "a mirror or the packet arrived twice",
			func(t *Trace) bool { return t.Duplicates+t.Repeats > 0 }),
		yes("trace.debug", "carries the debug mark", func(t *Trace) bool { return t.Why.Has(mirror.Debug) }),
		yes("trace.protocol", "control protocol (PFC, CNP, routing)",
			func(t *Trace) bool { return t.Why.Has(mirror.Protocol) }),
		{
			Name: "trace.end", Type: filter.Int, About: "fate of the packet", Names: ends,
			Get: filter.SingleValue(func(v *View) filter.Value { return filter.IntValue(v.End) }),
		},
		number("trace.hops", "switches that saw it", func(t *Trace) int { return len(t.Hops) }),
		number("trace.lost", "mirrors known to be lost", func(t *Trace) int { return t.MirrorsLost }),
		number("trace.reordered", "mirrors that arrived after those of later hops",
			func(t *Trace) int { return t.Reordered }),
		at("trace.first", "switch that saw it first", func(*Trace) int { return 0 }),
		at("trace.last", "switch that saw it last", func(t *Trace) int { return len(t.Hops) - 1 }),
		{
			Name: "trace.latency", Type: filter.Duration,
			About: "from the first hop to the last, by the switches' clocks", Get: func(v *View, i int) (filter.Value, bool) {
				d, ok := v.Latency()
				return filter.IntValue(d), ok && i == 0
			},
		},
	}
}

func hopFields(n *nodeNames) []filter.Field[View] {
	// hops returns a field with a value of each hop that has one.
	hops := func(name string, typ filter.Type, about string, known map[string]int64,
		get func(t *Trace, i int) (filter.Value, bool),
	) filter.Field[View] {
		return filter.Field[View]{
			Name: name, Type: typ, About: about, Names: known,
			Get: func(v *View, i int) (filter.Value, bool) {
				for at := range v.Hops {
					x, ok := get(v.Trace, at)
					if ok && i == 0 {
						return x, true
					}
					if ok {
						i--
					}
				}
				return filter.Value{}, false
			},
		}
	}
	number := func(name, about string, get func(h *Hop) filter.Value) filter.Field[View] {
		return hops(name, filter.Int, about, nil,
			func(t *Trace, i int) (filter.Value, bool) { return get(&t.Hops[i]), true })
	}
	return []filter.Field[View]{
		hops("hop.switch", filter.Text, "a switch that saw it", n.known,
			func(t *Trace, i int) (filter.Value, bool) { return n.switchText(t.Hops[i].Switch) }),
		hops("hop.port", filter.Text, "a port that it left through", n.port,
			func(t *Trace, i int) (filter.Value, bool) { return n.outPortText(n.ports, &t.Hops[i]) }),
		hops("hop.link", filter.Text, "a link that it took", n.link,
			func(t *Trace, i int) (filter.Value, bool) { return n.outPortText(n.links, &t.Hops[i]) }),
		hops("hop.src", filter.MAC, "MAC address of the previous hop", nil,
			func(t *Trace, i int) (filter.Value, bool) { return filter.MACValue(t.Hops[i].Src), true }),
		hops("hop.dst", filter.Addr, "destination of the outer header at a switch", nil,
			func(t *Trace, i int) (filter.Value, bool) {
				return filter.AddrValue(t.Hops[i].To), t.Hops[i].Depth > 0
			}),
		number("hop.in", "ingress port", func(h *Hop) filter.Value { return filter.IntValue(h.In) }),
		number("hop.out", "egress port", func(h *Hop) filter.Value { return filter.IntValue(h.Out) }),
		number("hop.ttl", "TTL of the outer header", func(h *Hop) filter.Value { return filter.IntValue(h.TTL) }),
		number("hop.dscp", "DSCP of the outer header",
			func(h *Hop) filter.Value { return filter.IntValue(h.TOS >> 2) }),
		number("hop.ecn", "ECN of the outer header; 3: congestion experienced",
			func(h *Hop) filter.Value { return filter.IntValue(h.TOS & 3) }),
		number("hop.depth", "number of IP headers", func(h *Hop) filter.Value { return filter.IntValue(h.Depth) }),
		hops("hop.latency", filter.Duration, "from one switch to the next, by both clocks", nil,
			func(t *Trace, i int) (filter.Value, bool) { d, ok := t.HopDelay(i); return filter.IntValue(d), ok }),
		hops("mux.latency", filter.Duration, "round trip to a load balancer, including the time in it", nil,
			func(t *Trace, i int) (filter.Value, bool) { d, ok := t.MuxDelay(i); return filter.IntValue(d), ok }),
	}
}
