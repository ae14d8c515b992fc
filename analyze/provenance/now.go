package provenance

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Teller is a switch that answered.
type Teller struct {
	ID       model.NodeID
	Complete bool          // all that it knew is here
	NoFlows  bool          // it keeps none
	Epochs   int           // that it told of
	Epoch    time.Duration // the length of each
}

// Passage is what a flow did in a queue in one epoch.
type Passage struct {
	Node, Flow int         // indexes into Graph.Nodes and Graph.Flows
	Did        *epoch.Flow // the report's own
}

// Waiting is what waited of a flow in a queue at the snapshot.
type Waiting struct {
	Node, Flow int
	In         model.PortID
	Packets    uint32
	Bytes      model.Bytes
}

// Teller returns what is known of a switch's answer; false: there is none.
func (g *Graph) Teller(id model.NodeID) (Teller, bool) {
	i, found := slices.BinarySearchFunc(g.Tellers, id, func(t Teller, id model.NodeID) int { return cmp.Compare(t.ID, id) })
	if !found {
		return Teller{ID: id}, false
	}
	return g.Tellers[i], true
}

// PassagesAt returns what flows did in a queue.
func (g *Graph) PassagesAt(node int) []Passage {
	return of(g.Passages, node, func(p *Passage) int { return p.Node })
}

// WaitingAt returns what waited in a queue at the snapshot.
func (g *Graph) WaitingAt(node int) []Waiting {
	return of(g.Waitings, node, func(w *Waiting) int { return w.Node })
}

// of returns the part of an ordered list that belongs to a node.
func of[T any](list []T, node int, key func(*T) int) []T {
	// Not by slices.BinarySearchFunc: its elements would go to the heap.
	list = list[sort.Search(len(list), func(i int) bool { return key(&list[i]) >= node }):]
	return list[:sort.Search(len(list), func(i int) bool { return key(&list[i]) > node })]
}

// tellers lists who answered.
func (b *builder) tellers(r *Report) {
	t := Teller{ID: r.Switch, Complete: r.Complete(), NoFlows: r.Flags&epoch.NoFlows != 0, Epoch: r.EpochLength}
	seen := map[uint32]bool{}
	for i := range r.PortEpochs {
		if e := r.PortEpochs[i].Epoch; i == 0 || e != r.PortEpochs[i-1].Epoch {
			seen[e] = true
		}
	}
	t.Epochs = len(seen)
	b.g.Tellers = append(b.g.Tellers, t)
}

// held adds edges from what paused a queue to it: packets of the one that wait
// in the other. What came in from the victim's own host has no queue here.
func (b *builder) held(r *Report) {
	for i := range r.Helds {
		h := &r.Helds[i]
		to, ok := b.at(r.Switch, h.Out, h.Priority)
		in := b.fabric.Port(model.Port{Node: r.Switch, Port: h.In})
		if !ok || in == nil {
			continue
		}
		if b.fabric.Node(in.Peer.Node).Role <= topo.Mux {
			if b.source == in.Peer.Node {
				b.g.First = append(b.g.First, Edge{From: -1, To: to, Weight: float64(h.Bytes)})
			}
			continue
		}
		if from, ok := b.at(in.Peer.Node, in.Peer.Port, h.Priority); ok {
			b.g.Held = append(b.g.Held, Edge{from, to, float64(h.Bytes)})
		}
	}
}
