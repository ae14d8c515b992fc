package hawkeye

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// trueCause is one true cause of a detection: where the wait-for path of its
// flow ended at some instant at which the detected packet was in flight.
type trueCause struct {
	anomaly anomaly.Type
	root    anomaly.RootCause
	port    model.Port
	loop    []model.Port  // ports of the deadlock cycle, ascending
	flows   map[int]int64 // that contended at the port, at any of those instants: sum of bytes
}

// congestedBytes is what a queue must hold to delay packets: 2 µs at 100 Gb/s.
// Many wait-for paths end at queues of a few packets, which delay no flow.
const congestedBytes = 25 * model.KB

// maxPollDelay is how long a poll takes to the last switch, at most.
const maxPollDelay = 20 * us

// pauseMemory is for how long what paused a queue remains a cause of its
// backlog. PFC resumes and pauses queues every few microseconds; one that
// drains now, and was paused within the shortest of epochs, is full because of
// that.
const pauseMemory = 100 * us

// maxLookBack limits how far back the waiting of a packet is followed.
const maxLookBack = 500 * us

// trueCauses returns all true causes of a detection, from the closure of the
// wait-for relation while the detected packet was in flight; for one that still
// is, within the last pauseMemory.
func (r *run) trueCauses(c detection) (list []trueCause) {
	graphs, first := r.history.samplesBetween(c.at-engine.Of(c.lookBack()), c.at+engine.Of(maxPollDelay))
	waitedFor := map[truth.Node]bool{} // all that it waited for through pauses
	for i, g := range graphs {
		for _, e := range g.EdgesFrom(truth.FlowNode(c.flow, false)) {
			if s, _ := g.State(e.To); !s.Paused {
				list = r.addDraining(list, first+i, e.To, anomaly.FlowContention, nil)
				continue
			}
			for _, n := range g.queuesWaitedFor(e.To) {
				waitedFor[n] = true
			}
			for _, root := range g.rootsOf(e.To) {
				switch root.Kind {
				case truth.RootContention:
					list = r.addDraining(list, first+i, root.Nodes[0], anomaly.PFCBackpressure, nil)
				case truth.RootHost:
					list = addTrueCause(list, trueCause{
						anomaly: anomaly.PFCStorm, root: anomaly.HostInjection,
						port: r.portToHost(root.Nodes[0]),
					}, nil)
				case truth.RootCycle:
					list = r.addDeadlock(list, first+i, root.Nodes)
				}
			}
		}
	}
	// PFC pauses and resumes faster than samples are taken: a queue that it waited
	// for at one sample and that is congested by itself at another is a cause, too.
	for _, g := range graphs {
		for n := range waitedFor {
			if s, _ := g.State(n); !s.Paused {
				list = addContention(list, g.Graph, n, anomaly.PFCBackpressure, nil)
			}
		}
	}
	return list
}

// addDraining adds a queue where a wait-for path ends, and what paused it
// within pauseMemory: a queue that drained then, too, may have been paused
// shortly before by another. In a row of queues that PFC pauses and resumes in
// turn no sample shows all of them waiting.
func (r *run) addDraining(list []trueCause, i int, queue truth.Node, what anomaly.Type, loop []model.Port) []trueCause {
	list = addContention(list, r.history.samples[i].Graph, queue, what, loop)
	storm, spread := anomaly.PFCStorm, anomaly.PFCBackpressure
	if loop != nil {
		storm, spread = anomaly.DeadlockOutOfLoop, anomaly.DeadlockOutOfLoop
	}
	type drain struct {
		queue truth.Node
		at    int
	}
	seen := map[truth.Node]int{} // by queue: up to which sample it was followed
	for todo := []drain{{queue, i}}; len(todo) > 0; {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for at := max(i-int(pauseMemory/sampleInterval), seen[d.queue], 0); at < d.at; at++ {
			g := r.history.samples[at]
			if s, _ := g.State(d.queue); !s.Paused {
				continue
			}
			for _, root := range g.rootsOf(d.queue) {
				switch n := root.Nodes[0]; {
				case root.Kind == truth.RootHost:
					list = addTrueCause(list, trueCause{
						anomaly: storm, root: anomaly.HostInjection, port: r.portToHost(n),
						loop: loop,
					}, nil)
				case root.Kind == truth.RootContention && !slices.Contains(loop, n.Port):
					list = addContention(list, g.Graph, n, spread, loop)
					todo = append(todo, drain{n, at})
				}
			}
		}
		seen[d.queue] = max(seen[d.queue], d.at)
	}
	return list
}

// addContention adds that flows contend in a queue.
func addContention(
	list []trueCause, g *truth.Graph, queue truth.Node, what anomaly.Type, loop []model.Port,
) []trueCause {
	if s, _ := g.State(queue); s.Count.Bytes < congestedBytes {
		return list
	}
	flows := map[int]int64{}
	for _, e := range g.EdgesFrom(queue) {
		if e.Reason == truth.ReasonContends {
			flows[e.To.Flow] += int64(e.Count.Bytes)
		}
	}
	return addTrueCause(list, trueCause{anomaly: what, root: anomaly.ContendingFlows, port: queue.Port, loop: loop}, flows)
}

// addTrueCause adds a true cause, or its flows to the one that is there.
func addTrueCause(list []trueCause, a trueCause, flows map[int]int64) []trueCause {
	at := slices.IndexFunc(list, func(b trueCause) bool {
		return a.anomaly == b.anomaly && a.root == b.root && a.port == b.port && slices.Equal(a.loop, b.loop)
	})
	if at < 0 {
		a.flows = map[int]int64{}
		at, list = len(list), append(list, a)
	}
	for f, bytes := range flows {
		list[at].flows[f] += bytes
	}
	return list
}

// portToHost returns the port of a switch that leads to a host.
func (r *run) portToHost(host truth.Node) model.Port {
	return r.net.Fabric().Port(model.Port{Node: host.Port.Node, Port: 1}).Peer
}

// leadUp is how long before a cycle closed its trigger is searched.
const leadUp = 200 * us

// addDeadlock adds what triggered a deadlock cycle of the i-th sample, where
// the wait-for paths of its queues ended shortly before it closed, and what
// keeps it.
func (r *run) addDeadlock(list []trueCause, i int, loop []truth.Node) []trueCause {
	closed := i
	for closed > 0 && r.history.samples[closed-1].inCycle(loop) {
		closed--
	}
	for _, a := range r.findTriggers(closed, loop) {
		list = addTrueCause(list, a, a.flows)
	}
	// What else the cycle waits for now keeps it, whatever triggered it.
	for _, root := range r.history.samples[i].rootsOf(loop[0]) {
		switch {
		case root.Kind == truth.RootHost:
			list = addTrueCause(list, trueCause{
				anomaly: anomaly.DeadlockOutOfLoop, root: anomaly.HostInjection,
				port: r.portToHost(root.Nodes[0]), loop: portsOf(loop),
			}, nil)
		case root.Kind == truth.RootContention:
			list = r.addDraining(list, i, root.Nodes[0], anomaly.DeadlockOutOfLoop, portsOf(loop))
		}
	}
	return list
}

// portsOf returns the ports of queues, ascending.
func portsOf(queues []truth.Node) (ports []model.Port) {
	for _, n := range queues {
		ports = append(ports, n.Port)
	}
	slices.SortFunc(ports, comparePorts)
	return ports
}

// cycleID names a cycle that closed at some sample, as a cache key.
type cycleID struct {
	closed int
	first  truth.Node
	size   int
}

// findTriggers returns what made a cycle close.
func (r *run) findTriggers(closed int, loop []truth.Node) (list []trueCause) {
	id := cycleID{closed, loop[0], len(loop)}
	if known, ok := r.triggers[id]; ok {
		return known
	}
	ports := portsOf(loop)
	for i := max(closed-int(leadUp/sampleInterval), 0); i < closed; i++ {
		for _, root := range r.history.samples[i].Closure(loop...).Roots() {
			switch n := root.Nodes[0]; {
			case root.Kind == truth.RootHost:
				list = addTrueCause(list, trueCause{
					anomaly: anomaly.DeadlockOutOfLoop, root: anomaly.HostInjection,
					port: r.portToHost(n), loop: ports,
				}, nil)
			case root.Kind == truth.RootContention && slices.Contains(loop, n):
				list = addContention(list, r.history.samples[i].Graph, n, anomaly.DeadlockInLoop, ports)
			case root.Kind == truth.RootContention:
				list = r.addDraining(list, i, n, anomaly.DeadlockOutOfLoop, ports)
			}
		}
	}
	r.triggers[id] = list
	return list
}

func comparePorts(a, b model.Port) int {
	if a.Node != b.Node {
		return int(a.Node) - int(b.Node)
	}
	return int(a.Port) - int(b.Port)
}

// isInjected reports whether a true cause is the injected one.
func (a *trueCause) isInjected(c *injectedCause) bool { return a.anomaly == c.anomaly && a.isAbout(c) }

// isAbout reports whether a true cause is about what was injected: its port, or
// another on the path where flows of its burst contend.
func (a *trueCause) isAbout(c *injectedCause) bool {
	if a.root != c.root {
		return false
	}
	there := 0
	for _, f := range c.flows {
		if a.flows[f] > 0 {
			there++
		}
	}
	return slices.Contains(c.ports, a.port) || there >= 2
}

// isMainCulprit reports whether a flow had a part in the contention that a
// verdict must not leave out: a quarter of the heaviest's.
func (a *trueCause) isMainCulprit(flow int) bool {
	most := int64(0)
	for _, bytes := range a.flows {
		most = max(most, bytes)
	}
	return 4*a.flows[flow] >= most
}
