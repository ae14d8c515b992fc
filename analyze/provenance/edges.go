package provenance

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

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
