package provenance

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Queue names one class of one egress port.
type Queue struct {
	model.Port
	Priority model.Priority
}

// Compare orders queues by switch, port and class.
func (q Queue) Compare(o Queue) int {
	return cmp.Or(cmp.Compare(q.Node, o.Node), cmp.Compare(q.Port.Port, o.Port.Port), cmp.Compare(q.Priority, o.Priority))
}

// Node is a queue in the graph, with all that its switch told of it.
type Node struct {
	Queue
	Peer   model.Port // at the other end of the link
	ToHost bool       // a host is there

	Packets     uint64  // that joined it, in the epochs told
	Paused      uint64  // of those: while it was paused
	Depth       float64 // packets before each that was not paused, in the mean
	PausedDepth float64 // and of those that were
	PauseFrames uint64  // received in the epochs told

	// At the snapshot.
	State    epoch.Port
	Pauses   epoch.Pause
	Snapshot model.Time
}

// Stands tells whether the queue was paused at the snapshot.
func (n *Node) Stands() bool { return n.State.Paused }

// Edge is a weighted wait-for relation between a node and another, or a flow:
// indexes into Graph.Nodes and Graph.Flows.
type Edge struct {
	From, To int
	Weight   float64
}

// Graph says who waited for whom.
type Graph struct {
	Victim model.FlowKey
	Nodes  []Node          // by Queue
	Flows  []model.FlowKey // ascending

	// PortPort: a paused queue waits for queues of the next switch that its
	// traffic went to. Weight: paused packets × share of the traffic × depth
	// of the other.
	PortPort []Edge
	// FlowPort: a flow waits for a queue that was paused. From is the flow.
	// Weight: its packets that were paused there.
	FlowPort []Edge
	// PortFlow: a queue waits for the flows in it. Weight: the flow's
	// contribution to the contention, below zero for its victims; To is the
	// flow.
	PortFlow []Edge

	// Held: at the snapshots, a queue of the next switch held packets that came
	// from this one. Weight: bytes of them.
	Held []Edge
	// First: the same for what came from the victim's own host, which is no
	// queue here; From is -1.
	First []Edge

	Tellers  []Teller  // switches that answered, ascending
	Waitings []Waiting // by node, then flow
	Passages []Passage // by node, flow and epoch

	// Span is from the beginning of the first epoch told to the last snapshot.
	From, To model.Time
	Epoch    time.Duration
}

// Node returns the index of a queue, or -1.
func (g *Graph) Node(q Queue) int {
	i, found := slices.BinarySearchFunc(g.Nodes, q, func(n Node, q Queue) int { return n.Queue.Compare(q) })
	if !found {
		return -1
	}
	return i
}

// Flow returns the index of a flow, or -1.
func (g *Graph) Flow(k model.FlowKey) int {
	i, found := slices.BinarySearchFunc(g.Flows, k, model.FlowKey.Compare)
	if !found {
		return -1
	}
	return i
}

// Out returns the edges of a list that leave a node; lists are ordered by From.
func Out(edges []Edge, from int) []Edge {
	i, _ := slices.BinarySearchFunc(edges, from, func(e Edge, f int) int { return cmp.Compare(e.From, f) })
	j := i
	for j < len(edges) && edges[j].From == from {
		j++
	}
	return edges[i:j]
}

// nobody is no node of any fabric.
const nobody model.NodeID = math.MaxUint32

// Build makes the graph of a complaint's evidence.
func Build(e *Evidence, victim model.FlowKey, f *topo.Fabric) *Graph {
	source, ok := f.ByAddr(victim.Src)
	if !ok {
		source = nobody
	}
	b := builder{fabric: f, source: source, nodes: map[Queue]*Node{}, g: &Graph{Victim: victim, From: math.MaxInt64, To: math.MinInt64}}
	for _, r := range e.Reports {
		b.report(r)
	}
	b.number()
	for _, r := range e.Reports {
		b.contention(r)
	}
	b.now(e)
	b.flowPorts(e)
	b.portPorts(e)
	return b.g
}

type builder struct {
	fabric *topo.Fabric
	source model.NodeID // of the victim
	nodes  map[Queue]*Node
	index  map[Queue]int
	flows  map[model.FlowKey]int
	g      *Graph
	replay replayer
}

// node returns the node of a queue that the fabric has.
func (b *builder) node(sw model.NodeID, port model.PortID, class model.Priority) *Node {
	q := Queue{model.Port{Node: sw, Port: port}, class & 7}
	if n := b.nodes[q]; n != nil {
		return n
	}
	if !b.fabric.Has(sw) {
		return nil
	}
	p := b.fabric.Port(q.Port)
	if p == nil {
		return nil
	}
	n := &Node{Queue: q, Peer: p.Peer, ToHost: b.fabric.Node(p.Peer.Node).Role <= topo.Mux}
	b.nodes[q] = n
	return n
}

// report reads what a switch told of its queues.
func (b *builder) report(r *Report) {
	g := b.g
	g.Epoch = max(g.Epoch, r.EpochLength)
	g.To = max(g.To, r.Snapshot)
	depth, paused := map[*Node]uint64{}, map[*Node]uint64{}
	for i := range r.PortEpochs {
		e := &r.PortEpochs[i]
		n := b.node(r.Switch, e.Port, e.Priority)
		if n == nil {
			continue
		}
		n.Packets += uint64(e.Packets)
		n.Paused += uint64(e.Paused)
		n.PauseFrames += uint64(e.PauseFrames)
		depth[n] += e.Depth
		paused[n] += e.PausedDepth
		g.From = min(g.From, r.Start(e.Epoch))
	}
	for n, d := range depth {
		if k := n.Packets - n.Paused; k > 0 {
			n.Depth = float64(d) / float64(k)
		}
		if n.Paused > 0 {
			n.PausedDepth = float64(paused[n]) / float64(n.Paused)
		}
	}
	for i := range r.Ports {
		p := &r.Ports[i]
		if n := b.node(r.Switch, p.Port, p.Priority); n != nil {
			n.State, n.Snapshot = *p, r.Snapshot
		}
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		if n := b.node(r.Switch, p.Port, p.Priority); n != nil {
			n.Pauses = *p
		}
	}
}

// number gives nodes and flows their places.
func (b *builder) number() {
	for _, n := range b.nodes {
		b.g.Nodes = append(b.g.Nodes, *n)
	}
	slices.SortFunc(b.g.Nodes, func(x, y Node) int { return x.Queue.Compare(y.Queue) })
	b.index = make(map[Queue]int, len(b.g.Nodes))
	for i := range b.g.Nodes {
		b.index[b.g.Nodes[i].Queue] = i
	}
	b.flows = map[model.FlowKey]int{}
}

// contention replays the queues of a switch and weighs its flows.
func (b *builder) contention(r *Report) {
	type cell struct {
		node int
		ep   uint32
	}
	type part struct {
		flow model.FlowKey
		share
		sum uint64
	}
	queues := map[cell][]part{}
	for i := range r.Flows {
		f := &r.Flows[i]
		n, ok := b.index[Queue{model.Port{Node: r.Switch, Port: f.Out}, f.Priority & 7}]
		if !ok || f.Packets <= f.Paused {
			continue
		}
		c := cell{n, f.Epoch}
		list := queues[c]
		at := slices.IndexFunc(list, func(p part) bool { return p.flow == f.Key })
		if at < 0 {
			at = len(list)
			list = append(list, part{flow: f.Key})
		}
		list[at].packets += int(f.Packets - f.Paused)
		list[at].sum += f.Depth
		queues[c] = list
	}
	weights := map[int]map[model.FlowKey]float64{}
	var shares []share
	var out []float64
	cells := slices.SortedFunc(maps.Keys(queues), func(x, y cell) int {
		return cmp.Or(cmp.Compare(x.node, y.node), cmp.Compare(x.ep, y.ep)) // sums must not depend on the order of a map
	})
	for _, c := range cells {
		list := queues[c]
		slices.SortFunc(list, func(x, y part) int { return x.flow.Compare(y.flow) })
		shares = shares[:0]
		for i := range list {
			p := &list[i]
			p.depth = int(math.Round(float64(p.sum) / float64(p.packets)))
			shares = append(shares, p.share)
		}
		out = b.replay.contribute(shares, out)
		if weights[c.node] == nil {
			weights[c.node] = map[model.FlowKey]float64{}
		}
		for i := range list {
			weights[c.node][list[i].flow] += out[i]
		}
	}
	for n, flows := range weights {
		for k, w := range flows {
			b.g.PortFlow = append(b.g.PortFlow, Edge{From: n, To: b.flow(k), Weight: w})
		}
	}
}

// flow numbers a flow in the order of first use; flowPorts renumbers.
func (b *builder) flow(k model.FlowKey) int {
	i, ok := b.flows[k]
	if !ok {
		i = len(b.g.Flows)
		b.flows[k] = i
		b.g.Flows = append(b.g.Flows, k)
	}
	return i
}

// flowPorts adds the edges of paused flows, and puts all flows in order.
func (b *builder) flowPorts(e *Evidence) {
	type pair struct{ flow, node int }
	sums := map[pair]float64{}
	for _, r := range e.Reports {
		for i := range r.Flows {
			f := &r.Flows[i]
			n, ok := b.index[Queue{model.Port{Node: r.Switch, Port: f.Out}, f.Priority & 7}]
			if ok && f.Paused > 0 {
				sums[pair{b.flow(f.Key), n}] += float64(f.Paused)
			}
		}
	}
	for p, w := range sums {
		b.g.FlowPort = append(b.g.FlowPort, Edge{From: p.flow, To: p.node, Weight: w})
	}
	old := slices.Clone(b.g.Flows)
	slices.SortFunc(b.g.Flows, model.FlowKey.Compare)
	place := make([]int, len(old))
	for i, k := range old {
		place[i] = b.g.Flow(k)
	}
	for i := range b.g.PortFlow {
		b.g.PortFlow[i].To = place[b.g.PortFlow[i].To]
	}
	for i := range b.g.FlowPort {
		b.g.FlowPort[i].From = place[b.g.FlowPort[i].From]
	}
	order(b.g.PortFlow)
	order(b.g.FlowPort)
	b.sortNow(place)
}

// portPorts adds the ways by which pauses spread.
func (b *builder) portPorts(e *Evidence) {
	type pair struct {
		in  model.PortID
		out Queue
	}
	for _, r := range e.Reports {
		traffic := map[pair]float64{}
		total := map[Queue]float64{} // by arrival: all that came in by a port in a class
		for i := range r.Meters {
			m := &r.Meters[i]
			classes := []model.Priority{m.Priority & 7}
			if m.Priority == epoch.AnyPriority {
				classes = []model.Priority{0, 1, 2, 3, 4, 5, 6, 7}
			}
			for _, class := range classes {
				traffic[pair{m.In, Queue{model.Port{Node: r.Switch, Port: m.Out}, class}}] += float64(m.Packets)
				total[Queue{model.Port{Node: r.Switch, Port: m.In}, class}] += float64(m.Packets)
			}
		}
		for p, packets := range traffic {
			to, ok := b.index[p.out]
			in := b.fabric.Port(model.Port{Node: r.Switch, Port: p.in})
			if !ok || in == nil {
				continue
			}
			from, ok := b.index[Queue{in.Peer, p.out.Priority}]
			if !ok || b.g.Nodes[from].Paused == 0 && !b.g.Nodes[from].State.Paused {
				continue
			}
			share := packets / total[Queue{model.Port{Node: r.Switch, Port: p.in}, p.out.Priority}]
			n := &b.g.Nodes[to]
			b.g.PortPort = append(b.g.PortPort, Edge{from, to, float64(b.g.Nodes[from].Paused) * share * n.meanDepth()})
		}
	}
	order(b.g.PortPort)
}

// meanDepth is that of all packets, paused or not: what held the other up.
func (n *Node) meanDepth() float64 {
	if n.Packets == 0 {
		return 0
	}
	return (n.Depth*float64(n.Packets-n.Paused) + n.PausedDepth*float64(n.Paused)) / float64(n.Packets)
}

func order(edges []Edge) {
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
}
