package hawkeye

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// requirement says what verdicts must name of an injected cause. Of two
// anomalies at one time, one may leave the other without traffic, or delay it so
// that it delays no flow: only what some flow waited for is required.
type requirement struct {
	named bool // the cause must be named
	exact bool // as this anomaly; otherwise contention of the same flows suffices
}

// requirementFor returns what must be named of a cause: it is where the
// wait-for path of some late packet ended in at least half of the samples at
// which its flow waited. All late packets count, whether their hosts polled for
// them or had done so just before.
func (r *run) requirementFor(c *injectedCause, threshold int) (d requirement) {
	for i := range r.latePackets[threshold] {
		of, is, waited := r.countWaits(&r.latePackets[threshold][i], c)
		d.named = d.named || of > 0 && 2*of >= waited
		d.exact = d.exact || is > 0 && 2*is >= waited
	}
	return d
}

// countWaits counts the samples at which the flow of a late packet waited for a
// cause, for the very anomaly, and for anything.
func (r *run) countWaits(l *latePacket, c *injectedCause) (of, is, waited int) {
	graphs, first := r.history.samplesBetween(l.at-engine.Of(l.lookBack()), l.at+engine.Of(maxPollDelay))
	for i := range graphs {
		causes := r.causesAt(first+i, l.flow)
		if len(causes) > 0 {
			waited++
		}
		if slices.ContainsFunc(causes, func(a trueCause) bool { return a.isWhole(c) }) {
			of++
		}
		if slices.ContainsFunc(causes, func(a trueCause) bool { return a.isWhole(c) && a.anomaly == c.anomaly }) {
			is++
		}
	}
	return of, is, waited
}

// lookBack returns how far back the waiting of a late packet is followed: while
// it was in flight; for one that still is, within pauseMemory.
func (l *latePacket) lookBack() time.Duration {
	if l.detectedBy == agent.Age {
		return min(l.latency, maxLookBack, pauseMemory)
	}
	return min(l.latency, maxLookBack)
}

// isWhole reports whether a true cause is what was injected, as a whole: at its
// port, or most flows of its burst at another. Two flows of a burst that share
// a link elsewhere are contention there, and no part of what all of them do.
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

// causesAt returns where the wait-for paths of a flow end in one sample.
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
				list = addTrueCause(list, trueCause{
					anomaly: anomaly.PFCStorm, root: anomaly.HostInjection,
					port: r.portToHost(root.Nodes[0]),
				}, nil)
			case truth.RootCycle:
				list = r.addDeadlock(list, i, root.Nodes)
			}
		}
	}
	return list
}
