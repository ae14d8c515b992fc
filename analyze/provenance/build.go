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

// Build returns the provenance graph of the evidence on a detection. It looks
// every flow up once and every queue in a table; from there on it works on
// numbers and on lists sorted by them (`weft bench diagnose` measures it).
func Build(e *Evidence, victim model.FlowKey, f *topo.Fabric) *Graph {
	records := 0
	for _, r := range e.Reports {
		records += len(r.Flows)
	}
	b := builder{
		fabric: f, flows: make(map[model.FlowKey]int32, records/4), // about five switches report a flow
		records: make([]*epoch.Flow, 0, records), refs: make([]flowRecordRef, 0, records),
		g: &Graph{Victim: victim, From: math.MaxInt64, To: math.MinInt64},
	}
	b.indexQueues(e)
	b.g.intervals = make([]Interval, 0, countIntervals(e))
	for _, r := range e.Reports {
		polledAt, later := e.PolledAt[r.Switch]
		if !later {
			polledAt = r.Snapshot
		}
		b.addQueues(r, polledAt)
		b.addIntervals(r)
		b.addSwitchReport(r)
		b.addHeldEdges(r)
		b.addFlows(r)
	}
	sortEdges(b.g.Held)
	b.sortRecords()
	b.addPauseEdges()
	for _, r := range e.Reports {
		b.addSpreadEdges(r)
	}
	sortEdges(b.g.PortPort)
	return b.g
}

type builder struct {
	fabric *topo.Fabric
	g      *Graph

	firstSlot  []int32 // by node of the fabric: its first index in queueIndex; -1: no report
	queueIndex []int32 // by queue of reporting switches: 1 + its index in Graph.Nodes; 0: not reported

	flows    map[model.FlowKey]int32 // in the order of first use
	records  []*epoch.Flow           // in the order of reports
	refs     []flowRecordRef
	backlogs []QueuedFlow // with flow numbers as in flows

	pairs []portPairTraffic // scratch memory, reused from switch to switch
}

// flowRecordRef is a flow's record in numbers: two words, so that sorting is
// fast.
type flowRecordRef struct {
	node, flow int32
	epoch      uint32
	record     int32 // in builder.records: a flow may have several of one epoch
}

// record returns the record itself.
func (b *builder) record(t *flowRecordRef) *epoch.Flow { return b.records[t.record] }

// queueAt returns the index of a queue in Graph.Nodes.
func (b *builder) queueAt(sw model.NodeID, port model.PortID, class model.Priority) (int, bool) {
	if slot := b.slot(sw, port, class); slot >= 0 && b.queueIndex[slot] > 0 {
		return int(b.queueIndex[slot]) - 1, true
	}
	return 0, false
}

// slot returns a queue's index in queueIndex, or -1.
func (b *builder) slot(sw model.NodeID, port model.PortID, class model.Priority) int {
	if int(sw) >= len(b.firstSlot) || b.firstSlot[sw] < 0 || port == 0 || int(port) > len(b.fabric.Node(sw).Ports) {
		return -1
	}
	return int(b.firstSlot[sw]) + (int(port)-1)*classes + int(class&7)
}

// indexQueues assigns an index to every reported queue.
func (b *builder) indexQueues(e *Evidence) {
	b.firstSlot = make([]int32, len(b.fabric.Nodes()))
	for i := range b.firstSlot {
		b.firstSlot[i] = -1
	}
	reports := slices.Clone(e.Reports)
	slices.SortFunc(reports, func(x, y *Report) int { return cmp.Compare(x.Switch, y.Switch) })
	slots := 0
	for _, r := range reports {
		if b.fabric.HasNode(r.Switch) && b.firstSlot[r.Switch] < 0 {
			b.firstSlot[r.Switch] = int32(slots)
			slots += len(b.fabric.Node(r.Switch).Ports) * classes
		}
	}
	b.queueIndex = make([]int32, slots)
	nodes := 0
	for _, r := range reports {
		mark := func(port model.PortID, class model.Priority) {
			if slot := b.slot(r.Switch, port, class); slot >= 0 && b.queueIndex[slot] == 0 {
				b.queueIndex[slot] = 1
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
		for i := range r.Intervals {
			mark(r.Intervals[i].Port, r.Intervals[i].Priority)
		}
	}
	b.g.Nodes = make([]Node, 0, nodes)
	for _, r := range reports {
		if !b.fabric.HasNode(r.Switch) {
			continue
		}
		for i, p := range b.fabric.Node(r.Switch).Ports {
			for class := range model.Priority(classes) {
				slot := int(b.firstSlot[r.Switch]) + i*classes + int(class)
				if b.queueIndex[slot] != 1 {
					continue
				}
				q := Queue{model.Port{Node: r.Switch, Port: model.PortID(i + 1)}, class}
				b.g.Nodes = append(b.g.Nodes, Node{Queue: q, Peer: p.Peer, ToHost: b.fabric.Node(p.Peer.Node).Role <= topo.Mux})
				b.queueIndex[slot] = int32(len(b.g.Nodes))
			}
		}
	}
}

// addQueues adds the records of a switch's queues to the nodes.
func (b *builder) addQueues(r *Report, polledAt model.Time) {
	g := b.g
	g.Epoch = max(g.Epoch, r.EpochLength)
	g.To = max(g.To, r.Snapshot)
	for i := range r.PortEpochs {
		e := &r.PortEpochs[i]
		at, ok := b.queueAt(r.Switch, e.Port, e.Priority)
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
		if at, ok := b.queueAt(r.Switch, p.Port, p.Priority); ok {
			n := &g.Nodes[at]
			n.State, n.Snapshot, n.PolledAt = *p, r.Snapshot, polledAt
		}
	}
}

// flowNumber numbers flows in the order of first use.
func (b *builder) flowNumber(k *model.FlowKey) int32 {
	i, ok := b.flows[*k]
	if !ok {
		i = int32(len(b.g.Flows))
		b.flows[*k] = i
		b.g.Flows = append(b.g.Flows, *k)
	}
	return i
}

// addFlows adds the flow records of a switch.
func (b *builder) addFlows(r *Report) {
	for i := range r.Flows {
		f := &r.Flows[i]
		if n, ok := b.queueAt(r.Switch, f.Out, f.Priority); ok {
			b.refs = append(b.refs, flowRecordRef{int32(n), b.flowNumber(&f.Key), f.Epoch, int32(len(b.records))})
			b.records = append(b.records, f)
		}
	}
	for i := range r.FlowBacklogs {
		w := &r.FlowBacklogs[i]
		if n, ok := b.queueAt(r.Switch, w.Out, w.Priority); ok {
			b.backlogs = append(b.backlogs, QueuedFlow{n, int(b.flowNumber(&w.Key)), w.In, w.Packets, model.Bytes(w.Bytes)})
		}
	}
}

// sortRecords sorts flows and their records, and turns the sums of queues into
// means.
func (b *builder) sortRecords() {
	g := b.g
	index := b.sortFlows()
	for i := range b.refs {
		b.refs[i].flow = index[b.refs[i].flow]
	}
	countingSort(b.refs, len(g.Flows), func(t *flowRecordRef) int { return int(t.flow) })
	countingSort(b.refs, len(g.Nodes), func(t *flowRecordRef) int { return int(t.node) })
	forEachRun(b.refs, func(x, y *flowRecordRef) bool { return x.node == y.node && x.flow == y.flow }, sortByEpoch)
	g.FlowEpochs = make([]FlowEpoch, len(b.refs))
	for i := range b.refs {
		t := &b.refs[i]
		g.FlowEpochs[i] = FlowEpoch{int(t.node), int(t.flow), b.record(t)}
	}
	for i := range b.backlogs {
		b.backlogs[i].Flow = int(index[b.backlogs[i].Flow])
	}
	countingSort(b.backlogs, len(g.Flows), func(w *QueuedFlow) int { return w.Flow })
	countingSort(b.backlogs, len(g.Nodes), func(w *QueuedFlow) int { return w.Node })
	g.QueuedFlows = b.backlogs
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.Depth /= float64(max(n.Packets-min(n.Paused, n.Packets), 1))
		n.PausedDepth /= float64(max(n.Paused, 1))
	}
}

// sortFlows sorts the flows and returns the new index of each.
func (b *builder) sortFlows() (index []int32) {
	flows := b.g.Flows
	order := make([]int32, len(flows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return flows[x].Compare(flows[y]) })
	b.g.Flows, index = make([]model.FlowKey, len(flows)), make([]int32, len(flows))
	for i, was := range order {
		b.g.Flows[i], index[was] = flows[was], int32(i)
	}
	return index
}
