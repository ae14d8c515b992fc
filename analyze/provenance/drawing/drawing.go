// Package drawing renders a provenance graph as text, JSON, Graphviz and SVG. It
// selects what concerns the victim: the queues it waited for, directly or
// through others, and the flows that filled them. Origin: docs/papers.md#hawkeye, figure 12.
package drawing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Drawing is the selected part of a graph. Its JSON names are fixed.
type Drawing struct {
	Victim string `json:"victim"`
	Ports  []Port `json:"ports"` // nearest to the victim first
	Flows  []Flow `json:"flows"` // the victim first
	Edges  []Edge `json:"edges"`
	Hidden int    `json:"hidden_flows"` // unrelated flows at these ports
}

// Port is a queue of an egress port.
type Port struct {
	ID          string         `json:"id"` // "s0 Ethernet8 → s1"; with the class if there are several
	Node        string         `json:"node"`
	Port        model.PortID   `json:"port"`
	Peer        string         `json:"peer"`
	ToHost      bool           `json:"to_host"`
	Priority    model.Priority `json:"priority"`
	Packets     uint64         `json:"packets"`
	Paused      uint64         `json:"paused_packets"`
	PauseFrames uint64         `json:"pause_frames"`
	Depth       float64        `json:"depth"` // packets, while it was not paused
	PausedNow   bool           `json:"paused_now"`
	Queued      uint64         `json:"queued_bytes"`
	Level       int            `json:"level"` // steps from the victim
}

// Flow is a flow by its end hosts.
type Flow struct {
	ID     string        `json:"id"` // "h0 → h1"; with the source port if there are several
	Key    model.FlowKey `json:"key"`
	Victim bool          `json:"victim"`
	Level  int           `json:"level"`
}

// Kind is the meaning of an edge.
type Kind string

// Kinds of edge.
const (
	PortPort Kind = "port-port" // a paused queue waits for another
	FlowPort Kind = "flow-port" // a flow was paused there
	PortFlow Kind = "port-flow" // a queue waits for a flow in it; below zero: the flow waits for the others
)

// Edge says that From waits for To.
type Edge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Kind   Kind    `json:"kind"`
	Weight float64 `json:"weight"`
	Held   float64 `json:"held_bytes,omitempty"` // From's bytes that To held at the snapshot
}

// Memory is about what the drawing takes. Edges name the ends by the same strings.
func (d *Drawing) Memory() (n model.Bytes) {
	n = model.Bytes(unsafe.Sizeof(*d)) + model.Bytes(cap(d.Edges))*model.Bytes(unsafe.Sizeof(Edge{}))
	for i := range d.Ports {
		n += model.Bytes(unsafe.Sizeof(d.Ports[i])) + model.Bytes(len(d.Ports[i].ID)+len(d.Ports[i].Peer))
	}
	for i := range d.Flows {
		n += model.Bytes(unsafe.Sizeof(d.Flows[i])) + model.Bytes(len(d.Flows[i].ID))
	}
	return n
}

// Options limit what is shown.
type Options struct {
	FlowsPerPort int  // the heaviest flows of each port, by absolute weight
	AllPorts     bool // every port of the graph, reached from the victim or not
}

// DefaultOptions shows six flows of each port that the victim waited for.
func DefaultOptions() Options { return Options{FlowsPerPort: 6} }

// New selects what to show of a graph.
func New(g *provenance.Graph, f *topo.Fabric, o Options) *Drawing {
	p := picker{g: g, f: f, o: o, level: make([]int, len(g.Nodes)), flows: map[int]int{}, contributions: make([][]provenance.Edge, len(g.Nodes))}
	p.pickPorts()
	p.pickFlows()
	return p.buildDrawing()
}

// picker selects ports and flows.
type picker struct {
	g              *provenance.Graph
	f              *topo.Fabric
	o              Options
	level          []int       // by node; 0: not shown
	flows          map[int]int // drawnEdges ones and their levels
	names          map[int]string
	contributions  [][]provenance.Edge // by node, of those that are shown
	severalClasses bool                // ports of several classes are shown
}

// pickPorts walks from the victim, or from what was paused if no switch has seen the
// victim, to what it waited for.
func (p *picker) pickPorts() {
	g := p.g
	victim := g.Flow(g.Victim)
	var todo []int
	visit := func(n, level int) {
		if p.level[n] == 0 {
			p.level[n] = level
			todo = append(todo, n)
		}
	}
	if victim >= 0 {
		p.flows[victim] = 0
		for _, e := range provenance.EdgesFrom(g.FlowPort, victim) {
			visit(e.To, 1)
		}
		for _, w := range g.QueuedFlows {
			if w.Flow == victim {
				visit(w.Node, 1)
			}
		}
		for _, w := range g.FlowEpochs {
			if w.Flow == victim {
				visit(w.Node, 1)
			}
		}
	}
	walk := func() {
		for len(todo) > 0 {
			n := todo[0]
			todo = todo[1:]
			for _, e := range provenance.EdgesFrom(g.PortPort, n) {
				visit(e.To, p.level[n]+1)
			}
			for _, e := range p.heldBy(n) {
				visit(e.To, p.level[n]+1)
			}
		}
	}
	walk()
	// A packet that was still in flight when switches answered may be in no record of
	// theirs: what was paused then is what kept it.
	unseen := !slices.ContainsFunc(p.level, func(level int) bool { return level > 0 })
	for n := range g.Nodes {
		if p.o.AllPorts || unseen && (g.Nodes[n].Paused > 0 || g.Nodes[n].PausedAtSnapshot()) {
			visit(n, 1)
			walk()
		}
	}
}

// heldBy returns the queues that hold what a queue sent before it was paused.
func (p *picker) heldBy(n int) []provenance.Edge {
	if !p.g.Nodes[n].PausedAtSnapshot() {
		return nil
	}
	return provenance.EdgesFrom(p.g.Held, n)
}

// pickFlows selects the flows with the largest contributions at the selected
// ports.
func (p *picker) pickFlows() {
	all := p.g.Contributions()
	for n, level := range p.level {
		if level == 0 {
			continue
		}
		p.contributions[n] = all.At(n)
		for _, e := range p.heaviestFlows(n) {
			if _, shown := p.flows[e.To]; !shown {
				p.flows[e.To] = level + 1
			}
		}
	}
}

// heaviestFlows returns the edges of a port to the flows that weigh most there,
// the victim's among them.
func (p *picker) heaviestFlows(n int) []provenance.Edge {
	edges := slices.Clone(p.contributions[n])
	// Two flows that meet only each other have opposite weights, up to the last
	// bits of their sums, which must not decide the order.
	heavy := func(e provenance.Edge) float32 { return float32(math.Abs(e.Weight)) }
	slices.SortStableFunc(edges, func(a, b provenance.Edge) int {
		return cmp.Or(cmp.Compare(heavy(b), heavy(a)), cmp.Compare(a.To, b.To))
	})
	victim := p.g.Flow(p.g.Victim)
	kept := edges[:0]
	for i, e := range edges {
		if i < p.o.FlowsPerPort || e.To == victim {
			kept = append(kept, e)
		}
	}
	return kept
}

// buildDrawing lists what was selected.
func (p *picker) buildDrawing() *Drawing {
	g := p.g
	d := &Drawing{Victim: p.flowName(g.Victim), Ports: []Port{}, Flows: []Flow{}, Edges: []Edge{}}
	p.nameFlows()
	for n, level := range p.level {
		if level > 0 {
			d.Ports = append(d.Ports, p.drawPort(n))
		}
	}
	slices.SortStableFunc(d.Ports, func(a, b Port) int { return cmp.Compare(a.Level, b.Level) })
	for i, k := range g.Flows {
		if level, shown := p.flows[i]; shown {
			d.Flows = append(d.Flows, Flow{ID: p.names[i], Key: k, Victim: k == g.Victim, Level: level})
		}
	}
	slices.SortStableFunc(d.Flows, func(a, b Flow) int { return cmp.Compare(a.Level, b.Level) })
	if len(d.Flows) > 0 && d.Flows[0].Victim {
		d.Victim = d.Flows[0].ID
	}
	p.addEdges(d)
	return d
}

// addEdges adds the edges between what is shown.
func (p *picker) addEdges(d *Drawing) {
	g := p.g
	hidden := map[int]bool{}
	for _, e := range g.FlowPort {
		if _, shown := p.flows[e.From]; shown && p.level[e.To] > 0 {
			d.Edges = append(d.Edges, Edge{From: p.names[e.From], To: p.portID(e.To), Kind: FlowPort, Weight: e.Weight})
		}
	}
	for n, level := range p.level {
		if level == 0 {
			continue
		}
		held := map[int]float64{}
		for _, e := range p.heldBy(n) {
			held[e.To] = e.Weight
		}
		for _, e := range provenance.EdgesFrom(g.PortPort, n) {
			d.Edges = append(d.Edges, Edge{p.portID(n), p.portID(e.To), PortPort, e.Weight, held[e.To]})
			delete(held, e.To)
		}
		for _, e := range p.heldBy(n) {
			if w, left := held[e.To]; left {
				d.Edges = append(d.Edges, Edge{p.portID(n), p.portID(e.To), PortPort, 0, w})
			}
		}
		for _, e := range p.heaviestFlows(n) {
			d.Edges = append(d.Edges, Edge{From: p.portID(n), To: p.names[e.To], Kind: PortFlow, Weight: e.Weight})
		}
		for _, e := range p.contributions[n] {
			if _, shown := p.flows[e.To]; !shown {
				hidden[e.To] = true
			}
		}
	}
	d.Hidden = len(hidden)
}

func (p *picker) drawPort(i int) Port {
	n := &p.g.Nodes[i]
	return Port{
		ID: p.portID(i), Node: p.nodeName(n.Node), Port: n.Port.Port, Peer: p.nodeName(n.Peer.Node), ToHost: n.ToHost, Priority: n.Priority,
		Packets: n.Packets, Paused: n.Paused, PauseFrames: n.PauseFrames, Depth: n.Depth,
		PausedNow: n.PausedAtSnapshot(), Queued: n.State.Queued, Level: p.level[i],
	}
}

// nameFlows gives every selected flow a unique name, and finds out whether
// ports need their class.
func (p *picker) nameFlows() {
	p.names = map[int]string{}
	same := map[string]int{}
	for i := range p.flows {
		same[p.flowName(p.g.Flows[i])]++
	}
	for i := range p.flows {
		k := p.g.Flows[i]
		p.names[i] = p.flowName(k)
		if same[p.names[i]] > 1 {
			p.names[i] += fmt.Sprintf(" (%d)", k.SrcPort)
		}
	}
	first := -1
	for i, level := range p.level {
		if level == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		p.severalClasses = p.severalClasses || p.g.Nodes[i].Priority != p.g.Nodes[first].Priority
	}
}

func (p *picker) portID(i int) string {
	n := &p.g.Nodes[i]
	id := p.f.PortName(n.Queue.Port)
	if p.severalClasses {
		id += fmt.Sprintf(" class %d", n.Priority)
	}
	return id
}

func (p *picker) nodeName(id model.NodeID) string {
	if !p.f.HasNode(id) {
		return fmt.Sprintf("node %d", id)
	}
	return p.f.Node(id).Name
}

func (p *picker) flowName(k model.FlowKey) string {
	name := func(a model.Addr) string {
		if id, ok := p.f.ByAddr(a); ok {
			return p.nodeName(id)
		}
		return a.String()
	}
	return name(k.Src) + " → " + name(k.Dst)
}
