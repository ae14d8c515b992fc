package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// Node is a node of the wait-for graph. It is comparable.
type Node struct {
	Kind     NodeKind
	Port     model.Port     // of a queue; of a host: its node, port 0
	Priority model.Priority // of a queue
	Flow     int            // of a flow: its index; -1 for all packets of no flow
	Reverse  bool           // of a flow: from its destination to its source
}

// NodeKind is the type of a Node.
type NodeKind uint8

// Kinds of node.
const (
	KindQueue NodeKind = iota // egress queue of one port and priority
	KindHost                  // a host that pauses its switch
	KindFlow                  // one direction of a flow
)

var kindNames = [...]string{"queue", "host", "flow"}

// String prints the kind's name.
func (k NodeKind) String() string { return kindNames[k] }

// MarshalText writes String's form.
func (k NodeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// QueueNode is the egress queue of a port and priority.
func QueueNode(p model.Port, prio model.Priority) Node {
	return Node{Kind: KindQueue, Port: p, Priority: prio}
}

// HostNode is a host.
func HostNode(id model.NodeID) Node { return Node{Kind: KindHost, Port: model.Port{Node: id}} }

// FlowNode is one direction of a flow.
func FlowNode(flow int, reverse bool) Node { return Node{Kind: KindFlow, Flow: flow, Reverse: reverse} }

func compareNodes(a, b Node) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), comparePorts(a.Port, b.Port), cmp.Compare(a.Priority, b.Priority),
		cmp.Compare(directionOf(a.Flow, a.Reverse), directionOf(b.Flow, b.Reverse)),
	)
}

// State is a node with its state.
type State struct {
	Node
	Name   string
	Paused bool  // a queue that may not send
	Count  Count // in the queue; of a flow, in all queues
}

// Reason is why one node waits for another.
type Reason uint8

// Reasons to wait.
const (
	// ReasonQueued: the flow has packets in the queue.
	ReasonQueued Reason = iota
	// ReasonUnsent: the flow has bytes left to send, and its host is paused.
	ReasonUnsent
	// ReasonPausedBySwitch: the queue is paused, and that queue of the next
	// switch holds packets that came from it.
	ReasonPausedBySwitch
	// ReasonPausedByHost: the queue is paused by a host: a storm, or a slow
	// receiver.
	ReasonPausedByHost
	// ReasonContends: the queue drains, and packets of that flow are in it.
	ReasonContends
	// ReasonSharesPort: the queue drains, and so does that of another priority
	// of the same port; they are served round robin.
	ReasonSharesPort
)

var reasonNames = [...]string{"queued", "unsent", "paused-by-switch", "paused-by-host", "contends", "shares-port"}

// String prints the reason's name.
func (w Reason) String() string { return reasonNames[w] }

// MarshalText writes String's form.
func (w Reason) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Edge says that From waits for To.
type Edge struct {
	From, To Node
	Reason   Reason
	Count    Count // packets that cause it; none for ReasonPausedByHost and ReasonUnsent
}

// Graph is the wait-for graph at one instant.
type Graph struct {
	At    engine.Time
	Nodes []State // queues by port and priority, hosts, flows
	Edges []Edge  // by From, then To

	// Invariant: both ends of every edge are in Nodes.
	fabric *topo.Fabric
	index  map[Node]int // in Nodes
	first  []int        // by Nodes: its first edge; one more at the end
}

// finish sorts the graph and builds its indexes.
func (g *Graph) finish() {
	slices.SortFunc(g.Nodes, func(a, b State) int { return compareNodes(a.Node, b.Node) })
	slices.SortFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(compareNodes(a.From, b.From), compareNodes(a.To, b.To), cmp.Compare(a.Reason, b.Reason))
	})
	g.index = make(map[Node]int, len(g.Nodes))
	g.first = make([]int, 0, len(g.Nodes)+1)
	e := 0
	for i, n := range g.Nodes {
		g.index[n.Node] = i
		g.first = append(g.first, e)
		for e < len(g.Edges) && g.Edges[e].From == n.Node {
			e++
		}
	}
	g.first = append(g.first, e)
}

// State returns a node's state, and whether it is in the graph: an empty queue
// that is not paused and a flow without waiting packets are not.
func (g *Graph) State(n Node) (State, bool) {
	i, ok := g.index[n]
	if !ok {
		return State{Node: n}, false
	}
	return g.Nodes[i], true
}

// EdgesFrom returns the edges of a node. They belong to the graph.
func (g *Graph) EdgesFrom(n Node) []Edge {
	i, ok := g.index[n]
	if !ok {
		return nil
	}
	return g.Edges[g.first[i]:g.first[i+1]]
}

// QueuesOf returns the queues of a port that are in the graph.
func (g *Graph) QueuesOf(p model.Port) (queues []Node) {
	for prio := range model.Priority(priorities) {
		if n := QueueNode(p, prio); g.has(n) {
			queues = append(queues, n)
		}
	}
	return queues
}

func (g *Graph) has(n Node) bool {
	_, ok := g.index[n]
	return ok
}
