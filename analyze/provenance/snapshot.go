package provenance

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// SwitchReport says how complete the report of a switch is.
type SwitchReport struct {
	ID       model.NodeID
	Complete bool          // all that it recorded has arrived
	NoFlows  bool          // it keeps no flow records
	Epochs   int           // number of reported epochs
	Epoch    time.Duration // length of an epoch
	Settings epoch.Settings
}

// FlowEpoch is a flow's record at a queue in one epoch.
type FlowEpoch struct {
	Node, Flow int         // indexes into Graph.Nodes and Graph.Flows
	Record     *epoch.Flow // shared with the report
}

// QueuedFlow is what a queue held of a flow at the snapshot.
type QueuedFlow struct {
	Node, Flow int
	In         model.PortID
	Packets    uint32
	Bytes      model.Bytes
}

// SwitchReport returns what is known of a switch's report; false if there is
// none.
func (g *Graph) SwitchReport(id model.NodeID) (SwitchReport, bool) {
	i, found := slices.BinarySearchFunc(g.SwitchReports, id,
		func(t SwitchReport, id model.NodeID) int { return cmp.Compare(t.ID, id) })
	if !found {
		return SwitchReport{ID: id}, false
	}
	return g.SwitchReports[i], true
}

// FlowEpochsAt returns the flow records at a queue.
func (g *Graph) FlowEpochsAt(node int) []FlowEpoch {
	return rangeOfNode(g.FlowEpochs, node, func(p *FlowEpoch) int { return p.Node })
}

// QueuedAt returns the flows that a queue held at the snapshot.
func (g *Graph) QueuedAt(node int) []QueuedFlow {
	return rangeOfNode(g.QueuedFlows, node, func(w *QueuedFlow) int { return w.Node })
}

// rangeOfNode returns the part of an ordered list that belongs to a node.
func rangeOfNode[T any](list []T, node int, key func(*T) int) []T {
	// Not slices.BinarySearchFunc: its elements would escape to the heap.
	list = list[sort.Search(len(list), func(i int) bool { return key(&list[i]) >= node }):]
	return list[:sort.Search(len(list), func(i int) bool { return key(&list[i]) > node })]
}

// addSwitchReport notes that a switch reported.
func (b *builder) addSwitchReport(r *Report) {
	t := SwitchReport{ID: r.Switch, Complete: r.Complete(), NoFlows: r.Flags&epoch.NoFlows != 0, Epoch: r.EpochLength, Settings: r.Settings}
	seen := map[uint32]bool{}
	for i := range r.PortEpochs {
		if e := r.PortEpochs[i].Epoch; i == 0 || e != r.PortEpochs[i-1].Epoch {
			seen[e] = true
		}
	}
	t.Epochs = len(seen)
	b.g.SwitchReports = append(b.g.SwitchReports, t)
}

// addHeldEdges adds edges from a queue to those of the next switch that hold
// its packets.
func (b *builder) addHeldEdges(r *Report) {
	for i := range r.PortPairBacklogs {
		h := &r.PortPairBacklogs[i]
		to, ok := b.queueAt(r.Switch, h.Out, h.Priority)
		in := b.fabric.Port(model.Port{Node: r.Switch, Port: h.In})
		if !ok || in == nil {
			continue
		}
		if from, ok := b.queueAt(in.Peer.Node, in.Peer.Port, h.Priority); ok {
			b.g.Held = append(b.g.Held, Edge{from, to, float64(h.Bytes)})
		}
	}
}
