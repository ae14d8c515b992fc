package provenance

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// addContributions replays the queues and adds an edge for every flow in them.
// The records are ordered by queue and flow; afterwards, by queue and epoch.
func (b *builder) addContributions() {
	b.sums = make([]float64, len(b.g.Flows))
	b.g.PortFlow = make([]Edge, 0, len(b.refs))
	forEachRun(b.refs, func(x, y *flowRecordRef) bool { return x.node == y.node }, b.addQueueContributions)
}

// addQueueContributions adds up over the epochs of one queue what each flow
// contributed.
func (b *builder) addQueueContributions(list []flowRecordRef) {
	edges := len(b.g.PortFlow)
	for i := range list {
		t, did := &list[i], b.record(&list[i])
		if last := len(b.g.PortFlow) - 1; did.Packets > did.Paused && (last < edges || b.g.PortFlow[last].To != int(t.flow)) {
			b.g.PortFlow = append(b.g.PortFlow, Edge{From: int(t.node), To: int(t.flow)})
		}
	}
	sortByEpoch(list)
	forEachRun(list, func(x, y *flowRecordRef) bool { return x.epoch == y.epoch }, b.addEpochContributions)
	for i := range b.g.PortFlow[edges:] {
		e := &b.g.PortFlow[edges+i]
		e.Weight, b.sums[e.To] = b.sums[e.To], 0
	}
}

// addEpochContributions adds what each flow contributed in one epoch.
func (b *builder) addEpochContributions(list []flowRecordRef) {
	b.loads, b.owners = b.loads[:0], b.owners[:0]
	var depth uint64
	waits := false
	for i := range list {
		did, f := b.record(&list[i]), list[i].flow
		if did.Packets <= did.Paused {
			continue
		}
		if n := len(b.owners); n == 0 || b.owners[n-1] != f {
			b.loads, b.owners, depth = append(b.loads, flowLoad{}), append(b.owners, f), 0
		}
		s := &b.loads[len(b.loads)-1]
		s.packets += int(did.Packets - did.Paused)
		depth += did.Depth
		s.depth = int(math.Round(min(float64(depth)/float64(s.packets), maxReplayedPackets)))
		waits = waits || s.depth > 0
	}
	if len(b.loads) < 2 || !waits {
		return // no flow waited for another
	}
	each := coarsen(b.loads)
	b.contributions = b.replay.contributions(b.loads, b.contributions)
	for i, f := range b.owners {
		b.sums[f] += each * b.contributions[i]
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

// addPauseEdges adds the edges of flows that were paused.
func (b *builder) addPauseEdges() {
	edges := &b.g.FlowPort
	for i := range b.g.FlowEpochs {
		p := &b.g.FlowEpochs[i]
		if p.Record.Paused == 0 {
			continue
		}
		e := Edge{From: p.Flow, To: p.Node, Weight: float64(p.Record.Paused)}
		if n := len(*edges); n > 0 && (*edges)[n-1].From == e.From && (*edges)[n-1].To == e.To {
			(*edges)[n-1].Weight += e.Weight
			continue
		}
		*edges = append(*edges, e)
	}
	sortEdges(*edges)
}

// addSpreadEdges adds the edges along which PFC spreads through a switch.
func (b *builder) addSpreadEdges(r *Report) {
	if !b.fabric.HasNode(r.Switch) {
		return
	}
	ports := b.fabric.Node(r.Switch).Ports
	total := make([]float64, (len(ports)+1)*classes) // by ingress port and class: all packets that came in
	b.pairs = b.pairs[:0]
	for i := range r.Meters {
		m := &r.Meters[i]
		if m.In == 0 || int(m.In) > len(ports) {
			continue
		}
		first, last := m.Priority&7, m.Priority&7
		if m.Priority == epoch.AnyPriority {
			first, last = 0, classes-1
		}
		for class := first; class <= last; class++ {
			total[int(m.In)*classes+int(class)] += float64(m.Packets)
			from := ports[m.In-1].Peer
			a, ok := b.queueAt(from.Node, from.Port, class)
			z, there := b.queueAt(r.Switch, m.Out, class)
			if ok && there && (b.g.Nodes[a].Paused > 0 || b.g.Nodes[a].State.Paused) {
				b.pairs = append(b.pairs, portPairTraffic{a, z, m.In, class, float64(m.Packets)})
			}
		}
	}
	slices.SortStableFunc(b.pairs, func(x, y portPairTraffic) int {
		return cmp.Or(cmp.Compare(x.from, y.from),
			cmp.Compare(x.to, y.to))
	})
	for i := 0; i < len(b.pairs); {
		w := b.pairs[i]
		for i++; i < len(b.pairs) && b.pairs[i].from == w.from && b.pairs[i].to == w.to; i++ {
			w.packets += b.pairs[i].packets
		}
		share := w.packets / total[int(w.in)*classes+int(w.class)]
		b.g.PortPort = append(b.g.PortPort, Edge{
			w.from, w.to,
			float64(b.g.Nodes[w.from].Paused) * share * b.g.Nodes[w.to].meanDepth(),
		})
	}
}

// portPairTraffic is traffic from a paused queue to one of the next switch.
type portPairTraffic struct {
	from, to int
	in       model.PortID
	class    model.Priority
	packets  float64
}
