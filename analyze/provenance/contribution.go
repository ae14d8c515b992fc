package provenance

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/wire/epoch"
)

// Contributions computes what flows contributed to the contention in queues, as the
// paper does: the port-flow edges of its graph. They are not in Graph, as only
// drawings and the paper's own method read them, of a few queues. Its memory is reused.
type Contributions struct {
	g       *Graph
	replay  replayer
	records []ownedRecord
	loads   []flowLoad
	owners  []int32 // of the loads
	shares  []float64
}

// ownedRecord is a flow's record and the number of the edge that it counts for.
type ownedRecord struct {
	*epoch.Flow
	owner int32
}

// Contributions returns a computation for the queues of the graph.
func (g *Graph) Contributions() *Contributions { return &Contributions{g: g} }

// At returns the edges from a queue to the flows in it, by flow. Weight: the flow's
// contribution, below zero for its victims.
func (c *Contributions) At(node int) (edges []Edge) {
	c.records = c.records[:0]
	for _, p := range c.g.FlowEpochsAt(node) {
		if p.Record.Packets <= p.Record.Paused {
			continue
		}
		if n := len(edges); n == 0 || edges[n-1].To != p.Flow {
			edges = append(edges, Edge{From: node, To: p.Flow})
		}
		c.records = append(c.records, ownedRecord{p.Record, int32(len(edges) - 1)})
	}
	slices.SortStableFunc(c.records, func(x, y ownedRecord) int { return cmp.Compare(x.Epoch, y.Epoch) })
	forEachRun(c.records, func(x, y *ownedRecord) bool { return x.Epoch == y.Epoch }, func(list []ownedRecord) { c.addEpoch(list, edges) })
	return edges
}

// addEpoch adds what each flow contributed in one epoch.
func (c *Contributions) addEpoch(list []ownedRecord, edges []Edge) {
	c.loads, c.owners = c.loads[:0], c.owners[:0]
	var depth uint64
	waits := false
	for _, did := range list {
		if n := len(c.owners); n == 0 || c.owners[n-1] != did.owner {
			c.loads, c.owners, depth = append(c.loads, flowLoad{}), append(c.owners, did.owner), 0
		}
		s := &c.loads[len(c.loads)-1]
		s.packets += int(did.Packets - did.Paused)
		depth += did.Depth
		s.depth = int(math.Round(min(float64(depth)/float64(s.packets), maxReplayedPackets)))
		waits = waits || s.depth > 0
	}
	if len(c.loads) < 2 || !waits {
		return // no flow waited for another
	}
	each := coarsen(c.loads)
	c.shares = c.replay.contributions(c.loads, c.shares)
	for i, e := range c.owners {
		edges[e].Weight += each * c.shares[i]
	}
}

// maxReplayedPackets is how many packets of a queue and epoch are replayed one
// by one: more than a 100 Gb/s link carries in 2 ms if all are of minimum size.
// A report may claim any number, and must not cost memory and time for it.
const maxReplayedPackets = 1 << 19

// coarsen lets one packet represent several if there are too many, and returns
// how many.
func coarsen(flows []flowLoad) (each float64) {
	total := 0
	for _, s := range flows {
		total += s.packets
	}
	n := (total + maxReplayedPackets - 1) / maxReplayedPackets
	if n <= 1 {
		return 1
	}
	for i := range flows {
		s := &flows[i]
		s.packets, s.depth = (s.packets+n-1)/n, (s.depth+n-1)/n
	}
	return float64(n)
}
