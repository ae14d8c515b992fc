package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// requirement says whether a cause must be named. Of two anomalies at one time, one may
// leave the other without traffic, or hold it up so that it holds up nobody:
// only what somebody waited for is asked for.
type requirement struct {
	named bool // that it is there
	exact bool // that it is this anomaly; else contention of the same flows will do
}

// requirement tells what must be said of a cause: it is where the waiting of some late
// packet ended in at least half of the looks at which its flow waited. All late
// packets count, whether their hosts complained or had just done so.
func (r *run) requirementFor(c *injectedCause, threshold int) (d requirement) {
	for i := range r.latePackets[threshold] {
		of, is, waited := r.countWaits(&r.latePackets[threshold][i], c)
		d.named = d.named || of > 0 && 2*of >= waited
		d.exact = d.exact || is > 0 && 2*is >= waited
	}
	return d
}

// countWaits counts the looks at which the flow of a late packet waited for a cause,
// for the very anomaly, and for anything.
func (r *run) countWaits(l *latePacket, c *injectedCause) (of, is, waited int) {
	graphs, first := r.history.samplesBetween(l.at-engine.Of(l.lookBack()), l.at+engine.Of(maxPollDelay))
	for i := range graphs {
		reasons := r.causesAt(first+i, l.flow)
		if len(reasons) > 0 {
			waited++
		}
		if slices.ContainsFunc(reasons, func(a trueCause) bool { return a.isWhole(c) }) {
			of++
		}
		if slices.ContainsFunc(reasons, func(a trueCause) bool { return a.isWhole(c) && a.anomaly == c.anomaly }) {
			is++
		}
	}
	return of, is, waited
}

// lookBack is how far back what a late packet waited for is looked at: while it was
// underway; of one that still is, in the last moments.
func (l *latePacket) lookBack() time.Duration {
	if l.detectedBy == agent.Age {
		return min(l.latency, maxLookBack, pauseMemory)
	}
	return min(l.latency, maxLookBack)
}

// isWhole tells whether an answer is what was injected, as a whole: at its port,
// or most flows of its burst at another. Two flows of a burst that share a link
// elsewhere are contention there, and no part of what all of them do.
func (a *trueCause) isWhole(c *injectedCause) bool {
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

// causesAt is where the waiting of a flow ends in one look.
func (r *run) causesAt(i, flow int) (list []trueCause) {
	g := r.history.samples[i]
	for _, e := range g.EdgesFrom(truth.FlowNode(flow, false)) {
		if s, _ := g.State(e.To); !s.Paused {
			list = addContention(list, g.Graph, e.To, anomaly.FlowContention, nil)
			continue
		}
		for _, root := range g.rootsOf(e.To) {
			switch root.Kind {
			case truth.RootContention:
				list = addContention(list, g.Graph, root.Nodes[0], anomaly.PFCBackpressure, nil)
			case truth.RootHost:
				list = addTrueCause(list, trueCause{anomaly: anomaly.PFCStorm, root: anomaly.HostInjection, port: r.portToHost(root.Nodes[0])}, nil)
			case truth.RootCycle:
				list = r.addDeadlock(list, i, root.Nodes)
			}
		}
	}
	return list
}
