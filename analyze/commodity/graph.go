package commodity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// reverseWaits returns for every queue those that wait for it directly.
func (a *Analyzer) reverseWaits() map[queueID][]queueID {
	rev := make(map[queueID][]queueID, len(a.next))
	for q, to := range a.next {
		rev[to] = append(rev[to], q)
	}
	return rev
}

// waitingFor returns the ports that wait for a queue, directly or behind others, and
// their nodes.
func (a *Analyzer) waitingFor(root queueID) (ports []model.Port, nodes []model.NodeID) {
	seen := map[queueID]bool{root: true}
	for todo := []queueID{root}; len(todo) > 0; todo = todo[1:] {
		for _, q := range a.waiters[todo[0]] {
			if !seen[q] {
				seen[q] = true
				todo = append(todo, q)
				ports, nodes = append(ports, q.port), append(nodes, q.port.Node)
			}
		}
	}
	slices.SortFunc(ports, model.Port.Compare)
	slices.Sort(nodes)
	return slices.Compact(ports), slices.Compact(nodes)
}

// findDeadlocks finds queues that wait for each other in a cycle and that were
// paused nearly all the time.
func (a *Analyzer) findDeadlocks() (list []finding) {
	done := map[queueID]bool{}
	for _, start := range slices.SortedFunc(maps.Keys(a.next), compareQueues) {
		walk := []queueID{}
		q, ok := start, true
		for ok && !done[q] {
			done[q] = true
			walk = append(walk, q)
			q, ok = a.next[q]
		}
		at := slices.Index(walk, q)
		if !ok || at < 0 {
			continue
		}
		if f, ok := a.cycle(walk[at:]); ok {
			list = append(list, f)
		}
	}
	return list
}

// cycle returns the finding of a cycle, if it stands: all of its queues are paused,
// by readings of this round or the watchdog.
func (a *Analyzer) cycle(queues []queueID) (f finding, ok bool) {
	first := slices.MinFunc(queues, compareQueues)
	f = a.newFinding(deadlocked, first.port, first.class)
	stormed := 0
	for i, q := range queues {
		j := a.judged(q.port)
		share, measured := a.paused(q)
		if j == nil || !a.nodes[q.port.Node].fresh {
			return f, false
		}
		if j.class[q.class].stormed {
			stormed++
		} else if !measured || share < a.cfg.StormPaused || j.hasBytes && j.tx > 1-a.cfg.StormPaused {
			return f, false
		}
		if s := &a.nodes[q.port.Node]; i == 0 || s.to > f.to {
			f.to = s.to
		}
		f.from = min(f.from, a.nodes[q.port.Node].from)
		f.path = append(f.path, q.port)
		f.extent = append(f.extent, q.port.Node)
	}
	if stormed > 0 {
		f.weight = 3
	}
	slices.Sort(f.extent)
	f.extent = slices.Compact(f.extent)
	return f, true
}

// compareFindings orders findings: equal input gives equal output.
func compareFindings(x, y *finding) int {
	return cmp.Or(cmp.Compare(x.kind, y.kind), x.at.Compare(y.at), cmp.Compare(x.class, y.class))
}
