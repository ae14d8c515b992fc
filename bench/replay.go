package bench

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// replayedGraph is a direct implementation of the paper's Algorithm 1: every
// packet of every queue is put at its position, and compared with every packet
// before it.
type replayedGraph struct {
	portFlow map[flowAt]float64
	flowPort map[flowAt]float64
	portPort map[[2]provenance.Queue]float64
}

type flowAt struct {
	queue provenance.Queue
	flow  model.FlowKey
}

func queueAt(sw model.NodeID, port model.PortID, class model.Priority) provenance.Queue {
	return provenance.Queue{Port: model.Port{Node: sw, Port: port}, Priority: class & 7}
}

// replayGraph builds the graph.
func replayGraph(e *provenance.Evidence, f *topo.Fabric) *replayedGraph {
	r := &replayedGraph{map[flowAt]float64{}, map[flowAt]float64{}, map[[2]provenance.Queue]float64{}}
	for _, rep := range e.Reports {
		r.flows(rep)
	}
	r.ports(e, f)
	return r
}

// flows replays the queues of a switch.
func (r *replayedGraph) flows(rep *provenance.Report) {
	type cell struct {
		queue provenance.Queue
		epoch uint32
	}
	type did struct {
		packets, depth float64
	}
	cells := map[cell]map[model.FlowKey]did{}
	for i := range rep.Flows {
		fl := &rep.Flows[i]
		q := queueAt(rep.Switch, fl.Out, fl.Priority)
		if fl.Paused > 0 {
			r.flowPort[flowAt{q, fl.Key}] += float64(fl.Paused)
		}
		if fl.Packets <= fl.Paused {
			continue
		}
		c := cell{q, fl.Epoch}
		if cells[c] == nil {
			cells[c] = map[model.FlowKey]did{}
		}
		d := cells[c][fl.Key]
		cells[c][fl.Key] = did{d.packets + float64(fl.Packets-fl.Paused), d.depth + float64(fl.Depth)}
	}
	for c, flows := range cells {
		type packet struct {
			at   float64
			flow int
		}
		keys := slices.SortedFunc(maps.Keys(flows), model.FlowKey.Compare)
		var seq []packet
		for i, k := range keys {
			for j := range int(flows[k].packets) {
				seq = append(seq, packet{float64(j) / flows[k].packets, i})
			}
		}
		slices.SortStableFunc(seq, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
		waits := make([][]float64, len(keys)) // how many of each other's packets each flow's waited for
		for i := range waits {
			waits[i] = make([]float64, len(keys))
		}
		for p, a := range seq {
			d := flows[keys[a.flow]]
			for _, b := range seq[max(0, p-int(math.Round(d.depth/d.packets))):p] {
				waits[a.flow][b.flow]++
			}
		}
		for i, a := range keys {
			for j, b := range keys {
				w := waits[i][j] / flows[a].packets
				r.portFlow[flowAt{c.queue, b}] += w
				r.portFlow[flowAt{c.queue, a}] -= w
			}
		}
	}
}

// ports weighs the port pairs along which pauses spread.
func (r *replayedGraph) ports(e *provenance.Evidence, f *topo.Fabric) {
	type sums struct{ packets, paused, depth float64 }
	queues := map[provenance.Queue]sums{}
	stands := map[provenance.Queue]bool{}
	for _, rep := range e.Reports {
		for i := range rep.PortEpochs {
			p := &rep.PortEpochs[i]
			s := queues[queueAt(rep.Switch, p.Port, p.Priority)]
			queues[queueAt(rep.Switch, p.Port, p.Priority)] = sums{
				s.packets + float64(p.Packets), s.paused + float64(p.Paused), s.depth + float64(p.Depth+p.PausedDepth),
			}
		}
		for i := range rep.Ports {
			p := &rep.Ports[i]
			stands[queueAt(rep.Switch, p.Port, p.Priority)] = p.Paused
		}
	}
	for _, rep := range e.Reports {
		total := map[provenance.Queue]float64{}
		for i := range rep.Meters {
			m := &rep.Meters[i]
			total[queueAt(rep.Switch, m.In, m.Priority)] += float64(m.Packets)
		}
		for i := range rep.Meters {
			m := &rep.Meters[i]
			in := f.Port(model.Port{Node: rep.Switch, Port: m.In})
			from, to := provenance.Queue{Port: in.Peer, Priority: m.Priority & 7}, queueAt(rep.Switch, m.Out,
				m.Priority)
			if queues[from].paused == 0 && !stands[from] {
				continue
			}
			share := float64(m.Packets) / total[queueAt(rep.Switch, m.In, m.Priority)]
			r.portPort[[2]provenance.Queue{
				from,
				to,
			}] += queues[from].paused * share * queues[to].depth / max(queues[to].packets, 1)
		}
	}
}

// portFlowEdges returns what flows contributed in all queues.
func portFlowEdges(g *provenance.Graph) (list []provenance.Edge) {
	all := g.Contributions()
	for n := range g.Nodes {
		list = append(list, all.At(n)...)
	}
	return list
}

// equals returns where a graph differs from the replayed one.
func (r *replayedGraph) equals(g *provenance.Graph, portFlow []provenance.Edge) error {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(a)+math.Abs(b)) }
	for _, e := range portFlow {
		if want := r.portFlow[flowAt{g.Nodes[e.From].Queue, g.Flows[e.To]}]; !near(e.Weight, want) {
			return fmt.Errorf("queue %v waits for flow %v with %v; replayed %v", g.Nodes[e.From].Queue, g.Flows[e.To],
				e.Weight, want)
		}
	}
	for _, e := range g.FlowPort {
		if want := r.flowPort[flowAt{g.Nodes[e.To].Queue, g.Flows[e.From]}]; !near(e.Weight, want) {
			return fmt.Errorf("flow %v waits for queue %v with %v; replayed %v", g.Flows[e.From], g.Nodes[e.To].Queue,
				e.Weight, want)
		}
	}
	for _, e := range g.PortPort {
		if want := r.portPort[[2]provenance.Queue{g.Nodes[e.From].Queue, g.Nodes[e.To].Queue}]; !near(e.Weight, want) {
			return fmt.Errorf("queue %v waits for %v with %v; replayed %v", g.Nodes[e.From].Queue,
				g.Nodes[e.To].Queue, e.Weight, want)
		}
	}
	if len(r.portFlow) != len(portFlow) || len(r.flowPort) != len(g.FlowPort) || len(r.portPort) != len(g.PortPort) {
		return fmt.Errorf("%d, %d and %d edges; replayed %d, %d and %d", len(portFlow), len(g.FlowPort),
			len(g.PortPort),
			len(r.portFlow), len(r.flowPort), len(r.portPort))
	}
	return nil
}
