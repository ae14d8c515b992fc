package provenance

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

const classes = 8

// nobody is no node of any fabric.
const nobody model.NodeID = math.MaxUint32

// Build makes the graph of a complaint's evidence. It looks every flow up once
// and every queue in a table; from there on it works on numbers and lists that
// are sorted by them (`weft bench diagnose` measures it).
func Build(e *Evidence, victim model.FlowKey, f *topo.Fabric) *Graph {
	source, ok := f.ByAddr(victim.Src)
	if !ok {
		source = nobody
	}
	records := 0
	for _, r := range e.Reports {
		records += len(r.Flows)
	}
	b := builder{
		fabric: f, source: source, flows: make(map[model.FlowKey]int32, records/4), // a flow is told of by about five switches
		records: make([]*epoch.Flow, 0, records), told: make([]told, 0, records),
		g: &Graph{Victim: victim, From: math.MaxInt64, To: math.MinInt64},
	}
	b.number(e)
	for _, r := range e.Reports {
		asked, later := e.Asked[r.Switch]
		if !later {
			asked = r.Snapshot
		}
		b.report(r, asked)
		b.tellers(r)
		b.held(r)
		b.gather(r)
	}
	order(b.g.Held)
	order(b.g.First)
	b.sort()
	b.weigh()
	b.pauses()
	for _, r := range e.Reports {
		b.portPorts(r)
	}
	order(b.g.PortPort)
	return b.g
}

type builder struct {
	fabric *topo.Fabric
	source model.NodeID // of the victim
	g      *Graph

	base  []int32 // by node of the fabric: its first queue in place; -1: it told nothing
	place []int32 // by queue of those that told: 1 + its index in Graph.Nodes; 0: not there

	flows   map[model.FlowKey]int32 // in the order of first use
	records []*epoch.Flow           // in the order told
	told    []told
	waiting []Waiting // flows as in flows

	// Memory to use again from queue to queue.
	replay replayer
	sums   []float64 // by flow: what it contributed to the queue at hand
	shares []share
	who    []int32 // whose they are
	out    []float64
	ways   []way
}

// told is a flow's record in numbers: two words, so that sorting them is quick.
type told struct {
	node, flow int32
	epoch      uint32
	record     int32 // in builder.records: a flow may have several of one epoch
}

// did is the record itself.
func (b *builder) did(t *told) *epoch.Flow { return b.records[t.record] }

// at returns the index of a queue in Graph.Nodes.
func (b *builder) at(sw model.NodeID, port model.PortID, class model.Priority) (int, bool) {
	if slot := b.slot(sw, port, class); slot >= 0 && b.place[slot] > 0 {
		return int(b.place[slot]) - 1, true
	}
	return 0, false
}

// slot is where a queue is in place, or -1.
func (b *builder) slot(sw model.NodeID, port model.PortID, class model.Priority) int {
	if int(sw) >= len(b.base) || b.base[sw] < 0 || port == 0 || int(port) > len(b.fabric.Node(sw).Ports) {
		return -1
	}
	return int(b.base[sw]) + (int(port)-1)*classes + int(class&7)
}

// number gives the queues that somebody told of their places.
func (b *builder) number(e *Evidence) {
	b.base = make([]int32, len(b.fabric.Nodes()))
	for i := range b.base {
		b.base[i] = -1
	}
	reports := slices.Clone(e.Reports)
	slices.SortFunc(reports, func(x, y *Report) int { return cmp.Compare(x.Switch, y.Switch) })
	slots := 0
	for _, r := range reports {
		if b.fabric.HasNode(r.Switch) && b.base[r.Switch] < 0 {
			b.base[r.Switch] = int32(slots)
			slots += len(b.fabric.Node(r.Switch).Ports) * classes
		}
	}
	b.place = make([]int32, slots)
	nodes := 0
	for _, r := range reports {
		mark := func(port model.PortID, class model.Priority) {
			if slot := b.slot(r.Switch, port, class); slot >= 0 && b.place[slot] == 0 {
				b.place[slot] = 1
				nodes++
			}
		}
		for i := range r.PortEpochs {
			mark(r.PortEpochs[i].Port, r.PortEpochs[i].Priority)
		}
		for i := range r.Ports {
			mark(r.Ports[i].Port, r.Ports[i].Priority)
		}
		for i := range r.Pauses {
			mark(r.Pauses[i].Port, r.Pauses[i].Priority)
		}
	}
	b.g.Nodes = make([]Node, 0, nodes)
	for _, r := range reports {
		if !b.fabric.HasNode(r.Switch) {
			continue
		}
		for i, p := range b.fabric.Node(r.Switch).Ports {
			for class := range model.Priority(classes) {
				slot := int(b.base[r.Switch]) + i*classes + int(class)
				if b.place[slot] != 1 {
					continue
				}
				q := Queue{model.Port{Node: r.Switch, Port: model.PortID(i + 1)}, class}
				b.g.Nodes = append(b.g.Nodes, Node{Queue: q, Peer: p.Peer, ToHost: b.fabric.Node(p.Peer.Node).Role <= topo.Mux})
				b.place[slot] = int32(len(b.g.Nodes))
			}
		}
	}
}

// report reads what a switch told of its queues.
func (b *builder) report(r *Report, asked model.Time) {
	g := b.g
	g.Epoch = max(g.Epoch, r.EpochLength)
	g.To = max(g.To, r.Snapshot)
	for i := range r.PortEpochs {
		e := &r.PortEpochs[i]
		at, ok := b.at(r.Switch, e.Port, e.Priority)
		if !ok {
			continue
		}
		n := &g.Nodes[at]
		n.Packets += uint64(e.Packets)
		n.Paused += uint64(e.Paused)
		n.PauseFrames += uint64(e.PauseFrames)
		n.Depth += float64(e.Depth)
		n.PausedDepth += float64(e.PausedDepth)
		g.From = min(g.From, r.Start(e.Epoch))
	}
	for i := range r.Ports {
		p := &r.Ports[i]
		if at, ok := b.at(r.Switch, p.Port, p.Priority); ok {
			n := &g.Nodes[at]
			n.State, n.Snapshot, n.Asked = *p, r.Snapshot, asked
		}
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		if at, ok := b.at(r.Switch, p.Port, p.Priority); ok {
			g.Nodes[at].Pauses = *p
		}
	}
	for i := range r.Waves {
		w := &r.Waves[i]
		if at, ok := b.at(r.Switch, w.Port, w.Priority); ok {
			g.Nodes[at].Wave = *w
		}
	}
}

// flow numbers a flow in the order of first use.
func (b *builder) flow(k *model.FlowKey) int32 {
	i, ok := b.flows[*k]
	if !ok {
		i = int32(len(b.g.Flows))
		b.flows[*k] = i
		b.g.Flows = append(b.g.Flows, *k)
	}
	return i
}

// gather notes what a switch told of flows.
func (b *builder) gather(r *Report) {
	for i := range r.Flows {
		f := &r.Flows[i]
		if n, ok := b.at(r.Switch, f.Out, f.Priority); ok {
			b.told = append(b.told, told{int32(n), b.flow(&f.Key), f.Epoch, int32(len(b.records))})
			b.records = append(b.records, f)
		}
	}
	for i := range r.Waitings {
		w := &r.Waitings[i]
		if n, ok := b.at(r.Switch, w.Out, w.Priority); ok {
			b.waiting = append(b.waiting, Waiting{n, int(b.flow(&w.Key)), w.In, w.Packets, model.Bytes(w.Bytes)})
		}
	}
}

// sort puts flows and what they did in order, and ends the means of queues.
func (b *builder) sort() {
	g := b.g
	place := b.sortFlows()
	for i := range b.told {
		b.told[i].flow = place[b.told[i].flow]
	}
	byNumber(b.told, len(g.Flows), func(t *told) int { return int(t.flow) })
	byNumber(b.told, len(g.Nodes), func(t *told) int { return int(t.node) })
	runs(b.told, func(x, y *told) bool { return x.node == y.node && x.flow == y.flow }, byEpoch)
	g.Passages = make([]Passage, len(b.told))
	for i := range b.told {
		t := &b.told[i]
		g.Passages[i] = Passage{int(t.node), int(t.flow), b.did(t)}
	}
	for i := range b.waiting {
		b.waiting[i].Flow = int(place[b.waiting[i].Flow])
	}
	byNumber(b.waiting, len(g.Flows), func(w *Waiting) int { return w.Flow })
	byNumber(b.waiting, len(g.Nodes), func(w *Waiting) int { return w.Node })
	g.Waitings = b.waiting
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.Depth /= float64(max(n.Packets-min(n.Paused, n.Packets), 1))
		n.PausedDepth /= float64(max(n.Paused, 1))
	}
}

// sortFlows puts flows in order and returns where each went.
func (b *builder) sortFlows() (place []int32) {
	flows := b.g.Flows
	order := make([]int32, len(flows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return flows[x].Compare(flows[y]) })
	b.g.Flows, place = make([]model.FlowKey, len(flows)), make([]int32, len(flows))
	for i, was := range order {
		b.g.Flows[i], place[was] = flows[was], int32(i)
	}
	return place
}
