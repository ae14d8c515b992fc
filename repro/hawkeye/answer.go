package hawkeye

import (
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// answer is one true reason of a complaint: where the waiting of its flow ended
// at some instant at which the packet it complains of was underway.
type answer struct {
	anomaly diagnose.Anomaly
	root    diagnose.Cause
	port    model.Port
	loop    []model.Port // ascending
	flows   map[int]bool // that competed at the port, at any of those instants
}

// heavy is what a queue must hold to be a reason to wait: 2 µs at 100 Gb/s. A
// queue of a few packets ends many a wait-for path, and delays nobody.
const heavy = 25 * model.KB

// polling is what a poll takes to the last switch, at most.
const polling = 20 * us

// answers returns all true reasons of a complaint, from the closure of the
// wait-for relation while the packet that it is about was underway. One that is
// still underway waits for what there is now.
func (r *run) answers(c complaint) (list []answer) {
	from := c.at - engine.Of(c.took)
	if c.reason == agent.Age {
		from = max(from, c.at-engine.Of(polling))
	}
	graphs, first := r.history.between(from, c.at+engine.Of(polling))
	for i, g := range graphs {
		for _, e := range g.From(truth.FlowNode(c.flow, false)) {
			if s, _ := g.Of(e.To); !s.Paused {
				list = contends(list, g.Graph, e.To, diagnose.Contention, nil)
				continue
			}
			for _, root := range g.rootsOf(e.To) {
				switch root.Kind {
				case truth.RootContention:
					list = contends(list, g.Graph, root.Nodes[0], diagnose.Backpressure, nil)
				case truth.RootHost:
					list = note(list, answer{anomaly: diagnose.Storm, root: diagnose.Host, port: r.paused(root.Nodes[0])}, nil)
				case truth.RootLoop:
					list = r.locked(list, first+i, root.Nodes)
				}
			}
		}
	}
	return list
}

// contends notes that flows compete in a queue.
func contends(list []answer, g *truth.Graph, queue truth.Node, what diagnose.Anomaly, loop []model.Port) []answer {
	if s, _ := g.Of(queue); s.Count.Bytes < heavy {
		return list
	}
	var flows []int
	for _, e := range g.From(queue) {
		if e.Why == truth.Contends {
			flows = append(flows, e.To.Flow)
		}
	}
	return note(list, answer{anomaly: what, root: diagnose.Flows, port: queue.Port, loop: loop}, flows)
}

// note adds an answer, or its flows to the one that is there.
func note(list []answer, a answer, flows []int) []answer {
	at := slices.IndexFunc(list, func(b answer) bool {
		return a.anomaly == b.anomaly && a.root == b.root && a.port == b.port && slices.Equal(a.loop, b.loop)
	})
	if at < 0 {
		a.flows = map[int]bool{}
		at, list = len(list), append(list, a)
	}
	for _, f := range flows {
		list[at].flows[f] = true
	}
	return list
}

// paused is the port of a switch that leads to a host.
func (r *run) paused(host truth.Node) model.Port {
	return r.net.Fabric().Port(model.Port{Node: host.Port.Node, Port: 1}).Peer
}

// beginning is how long before a loop closed the reason for it is looked for.
const beginning = 100 * us

// locked notes what began a loop that stands in the i-th look: where the
// waiting of its queues ended shortly before it closed.
func (r *run) locked(list []answer, i int, loop []truth.Node) []answer {
	closed := i
	for closed > 0 && r.history.graphs[closed-1].loops(loop) {
		closed--
	}
	for _, a := range r.began(closed, loop) {
		list = note(list, a, slices.Collect(maps.Keys(a.flows)))
	}
	return list
}

// lock names a loop that closed at some look, for memory.
type lock struct {
	closed int
	first  truth.Node
	size   int
}

// began finds what made a loop close.
func (r *run) began(closed int, loop []truth.Node) (list []answer) {
	id := lock{closed, loop[0], len(loop)}
	if known, ok := r.locks[id]; ok {
		return known
	}
	var ports []model.Port
	for _, n := range loop {
		ports = append(ports, n.Port)
	}
	slices.SortFunc(ports, comparePorts)
	for _, g := range r.history.graphs[max(closed-int(beginning/step), 0):closed] {
		for _, root := range g.Closure(loop...).Roots() {
			switch n := root.Nodes[0]; {
			case root.Kind == truth.RootHost:
				list = note(list, answer{anomaly: diagnose.OutOfLoop, root: diagnose.Host, port: r.paused(n), loop: ports}, nil)
			case root.Kind == truth.RootContention && slices.Contains(loop, n):
				list = contends(list, g.Graph, n, diagnose.InLoop, ports)
			case root.Kind == truth.RootContention:
				list = contends(list, g.Graph, n, diagnose.OutOfLoop, ports)
			}
		}
	}
	r.locks[id] = list
	return list
}

func comparePorts(a, b model.Port) int {
	if a.Node != b.Node {
		return int(a.Node) - int(b.Node)
	}
	return int(a.Port) - int(b.Port)
}

// is tells whether an answer is the cause that was injected.
func (a *answer) is(c *cause) bool {
	return a.anomaly == c.anomaly && a.root == c.root && slices.Contains(c.ports, a.port)
}
