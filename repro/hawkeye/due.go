package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// due says whether a cause must be named. Of two anomalies at one time, one may
// leave the other without traffic, or hold it up so that it holds up nobody:
// only what somebody waited for is asked for.
type due struct {
	of bool // that it is there
	is bool // that it is this anomaly; else contention of the same flows will do
}

// due tells what must be said of a cause: it is where the waiting of some late
// packet ended in at least half of the looks at which its flow waited. All late
// packets count, whether their hosts complained or had just done so.
func (r *run) due(c *cause, threshold int) (d due) {
	for i := range r.late[threshold] {
		of, is, waited := r.waited(&r.late[threshold][i], c)
		d.of = d.of || of > 0 && 2*of >= waited
		d.is = d.is || is > 0 && 2*is >= waited
	}
	return d
}

// waited counts the looks at which the flow of a late packet waited for a cause,
// for the very anomaly, and for anything.
func (r *run) waited(l *lateness, c *cause) (of, is, waited int) {
	graphs, first := r.history.between(l.at-engine.Of(l.back()), l.at+engine.Of(polling))
	for i := range graphs {
		reasons := r.reasons(first+i, l.flow)
		if len(reasons) > 0 {
			waited++
		}
		if slices.ContainsFunc(reasons, func(a answer) bool { return a.whole(c) }) {
			of++
		}
		if slices.ContainsFunc(reasons, func(a answer) bool { return a.whole(c) && a.anomaly == c.anomaly }) {
			is++
		}
	}
	return of, is, waited
}

// back is how far back what a late packet waited for is looked at: while it was
// underway; of one that still is, in the last moments.
func (l *lateness) back() time.Duration {
	if l.reason == agent.Age {
		return min(l.took, longest, echo)
	}
	return min(l.took, longest)
}

// whole tells whether an answer is what was injected, as a whole: at its port,
// or most flows of its burst at another. Two flows of a burst that share a link
// elsewhere are contention there, and no part of what all of them do.
func (a *answer) whole(c *cause) bool {
	if a.root != c.root {
		return false
	}
	there := 0
	for _, f := range c.flows {
		if a.flows[f] > 0 {
			there++
		}
	}
	return slices.Contains(c.ports, a.port) && there >= min(2, len(c.flows)) || there > 0 && 2*there >= len(c.flows)
}

// reasons is where the waiting of a flow ends in one look.
func (r *run) reasons(i, flow int) (list []answer) {
	g := r.history.graphs[i]
	for _, e := range g.From(truth.FlowNode(flow, false)) {
		if s, _ := g.Of(e.To); !s.Paused {
			list = contends(list, g.Graph, e.To, anomaly.FlowContention, nil)
			continue
		}
		for _, root := range g.rootsOf(e.To) {
			switch root.Kind {
			case truth.RootContention:
				list = contends(list, g.Graph, root.Nodes[0], anomaly.PFCBackpressure, nil)
			case truth.RootHost:
				list = note(list, answer{anomaly: anomaly.PFCStorm, root: anomaly.HostInjection, port: r.paused(root.Nodes[0])}, nil)
			case truth.RootLoop:
				list = r.locked(list, i, root.Nodes)
			}
		}
	}
	return list
}
