package provenance

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// weigh replays the queues and weighs the flows in them. What was told is in
// the order of queues.
func (b *builder) weigh() {
	sums := make([]float64, len(b.g.Flows)) // of one queue, by flow
	b.g.PortFlow = make([]Edge, 0, len(b.told))
	var inQueue []int
	for all := b.told; len(all) > 0; {
		end := 1
		for end < len(all) && all[end].node() == all[0].node() {
			end++
		}
		inQueue = b.weighQueue(all[:end], sums, inQueue[:0])
		for _, f := range inQueue {
			b.g.PortFlow = append(b.g.PortFlow, Edge{From: all[0].node(), To: f, Weight: sums[f]})
			sums[f] = 0
		}
		all = all[end:]
	}
}

// weighQueue adds up over the epochs of one queue what each flow contributed,
// and lists the flows, ascending.
func (b *builder) weighQueue(list []told, sums []float64, flows []int) []int {
	b.byEpoch = append(b.byEpoch[:0], list...)
	slices.SortFunc(b.byEpoch, func(x, y told) int {
		if x.epoch() != y.epoch() {
			return cmp.Compare(x.epoch(), y.epoch())
		}
		return x.compare(y)
	})
	for _, t := range list {
		did := b.did(t)
		if f := t.flow(); did.Packets > did.Paused && (len(flows) == 0 || flows[len(flows)-1] != f) {
			flows = append(flows, f)
		}
	}
	for left := b.byEpoch; len(left) > 0; {
		end := 1
		for end < len(left) && left[end].epoch() == left[0].epoch() {
			end++
		}
		b.weighEpoch(left[:end], sums)
		left = left[end:]
	}
	return flows
}

// weighEpoch adds what each flow contributed in one epoch.
func (b *builder) weighEpoch(list []told, sums []float64) {
	b.shares, b.who = b.shares[:0], b.who[:0]
	var depth uint64
	for _, t := range list {
		did, f := b.did(t), t.flow()
		if did.Packets <= did.Paused {
			continue
		}
		if n := len(b.who); n == 0 || b.who[n-1] != f {
			b.shares, b.who, depth = append(b.shares, share{}), append(b.who, f), 0
		}
		s := &b.shares[len(b.shares)-1]
		s.packets += int(did.Packets - did.Paused)
		depth += did.Depth
		s.depth = int(math.Round(float64(depth) / float64(s.packets)))
	}
	if len(b.shares) < 2 || !slices.ContainsFunc(b.shares, func(s share) bool { return s.depth > 0 }) {
		return // nobody waited for anybody else
	}
	b.out = b.replay.contribute(b.shares, b.out)
	for i, f := range b.who {
		sums[f] += b.out[i]
	}
}

// pauses adds the edges of flows that were paused.
func (b *builder) pauses() {
	edges := &b.g.FlowPort
	for _, t := range b.told {
		did := b.did(t)
		if did.Paused == 0 {
			continue
		}
		e := Edge{From: t.flow(), To: t.node(), Weight: float64(did.Paused)}
		if n := len(*edges); n > 0 && (*edges)[n-1].From == e.From && (*edges)[n-1].To == e.To {
			(*edges)[n-1].Weight += e.Weight
			continue
		}
		*edges = append(*edges, e)
	}
	order(*edges)
}

// portPorts adds the ways by which pauses spread through a switch.
func (b *builder) portPorts(r *Report) {
	if !b.fabric.Has(r.Switch) {
		return
	}
	ports := b.fabric.Node(r.Switch).Ports
	total := make([]float64, (len(ports)+1)*classes) // by arrival: all that came in by a port in a class
	b.ways = b.ways[:0]
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
			a, ok := b.at(from.Node, from.Port, class)
			z, there := b.at(r.Switch, m.Out, class)
			if ok && there && (b.g.Nodes[a].Paused > 0 || b.g.Nodes[a].State.Paused) {
				b.ways = append(b.ways, way{a, z, m.In, class, float64(m.Packets)})
			}
		}
	}
	slices.SortStableFunc(b.ways, func(x, y way) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to)) })
	for i := 0; i < len(b.ways); {
		w := b.ways[i]
		for i++; i < len(b.ways) && b.ways[i].from == w.from && b.ways[i].to == w.to; i++ {
			w.packets += b.ways[i].packets
		}
		share := w.packets / total[int(w.in)*classes+int(w.class)]
		b.g.PortPort = append(b.g.PortPort, Edge{w.from, w.to, float64(b.g.Nodes[w.from].Paused) * share * b.g.Nodes[w.to].meanDepth()})
	}
}

// way is traffic from a paused queue to one of the next switch.
type way struct {
	from, to int
	in       model.PortID
	class    model.Priority
	packets  float64
}
