package provenance

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/weft-telemetry/weft/model"
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

// Node is a queue in the graph, with all that its switch reported about it.
type Node struct {
	Queue
	Peer   model.Port // at the other end of the link
	ToHost bool       // the peer is a host

	Packets     uint64  // that joined it in the reported epochs
	Paused      uint64  // of those: while it was paused
	Depth       float64 // mean of the packets ahead of each that joined while it was not paused
	PausedDepth float64 // the same for those that joined while it was paused
	PauseFrames uint64  // received in the reported epochs

	// At the snapshot.
	State    epoch.Port
	Snapshot model.Time
	PolledAt model.Time // when the poll came: at the snapshot, or later

	// PauseIntervals and CongestionIntervals are when it was paused, and when its
	// own traffic congested it: ascending, without overlap, as far back as the
	// switch remembers.
	PauseIntervals, CongestionIntervals []Interval
}

// PausedAtSnapshot reports whether the queue was paused at the snapshot.
func (n *Node) PausedAtSnapshot() bool { return n.State.Paused }

// Edge is a weighted wait-for relation between a node and another, or a flow:
// indexes into Graph.Nodes and Graph.Flows.
type Edge struct {
	From, To int
	Weight   float64
}

// Graph is the PFC provenance of a slow flow: which ports and flows wait for
// which.
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

	// Held: at the snapshots, a queue of the next switch held packets that came
	// from this one. Weight: bytes of them.
	Held []Edge

	SwitchReports []SwitchReport // ascending by switch
	QueuedFlows   []QueuedFlow   // by node, then flow
	FlowEpochs    []FlowEpoch    // by node, flow and epoch

	// The span is from the start of the first reported epoch to the last snapshot.
	From, To model.Time
	Epoch    time.Duration

	// ImplausibleIntervals counts intervals that were left out because they end
	// before they start, or after the snapshot.
	ImplausibleIntervals int

	intervals []Interval // of all nodes
}

// IntervalMemory returns what the intervals of all nodes take. They are the graph's
// own; most of the rest refers to the reports.
func (g *Graph) IntervalMemory() model.Bytes { return memoryOf(g.intervals) }

// Node returns the index of a queue, or -1.
func (g *Graph) Node(q Queue) int {
	// Not slices.BinarySearchFunc: nodes are too large to copy.
	i, found := sort.Find(len(g.Nodes), func(i int) int { return q.Compare(g.Nodes[i].Queue) })
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

// EdgesFrom returns the edges of a list that leave a node; lists are ordered by
// From.
func EdgesFrom(edges []Edge, from int) []Edge {
	i, _ := slices.BinarySearchFunc(edges, from, func(e Edge, f int) int { return cmp.Compare(e.From, f) })
	j := i
	for j < len(edges) && edges[j].From == from {
		j++
	}
	return edges[i:j]
}

// meanDepth returns the mean depth that all packets met, paused or not: what
// delayed the other queue.
func (n *Node) meanDepth() float64 {
	if n.Packets == 0 {
		return 0
	}
	return (n.Depth*float64(n.Packets-n.Paused) + n.PausedDepth*float64(n.Paused)) / float64(n.Packets)
}

func sortEdges(edges []Edge) {
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
}
