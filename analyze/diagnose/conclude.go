package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// stormVerdict returns the verdict on a queue that a host pauses.
func (m *analysis) stormVerdict(e terminal) Verdict {
	v := m.newVerdict(anomaly.PFCStorm, anomaly.HostInjection, e)
	m.describeHostPauses(&v, e.node)
	return v
}

// describeHostPauses adds the evidence, detail and remedy of a host's pauses.
func (m *analysis) describeHostPauses(v *Verdict, n int) {
	node := &m.g.Nodes[n]
	host := nodeName(m.fabric, node.Peer.Node)
	v.addEvidence("%s sent %s to %s; the port leads to no switch",
		host, plural.Count(node.State.PauseFrames, "pause frame"), m.portText(n))
	p := &node.Pauses
	gap := p.LastStart.Sub(p.LastEnd)
	switch {
	case p.Pauses == 0:
		v.Detail = anomaly.UnknownDetail
		return
	case !node.PausedAtSnapshot():
		v.Detail = anomaly.DrainsSlowly
		v.addEvidence("%s has resumed the port", host)
		return
	case p.LastEnd != 0 && gap < epoch.PauseBurstGap:
		v.Detail = anomaly.DrainsSlowly
		v.addEvidence("%s resumes the port between pauses, the last time for %s: it drains slowly", host,
			model.FormatDuration(gap))
	default:
		v.Detail = anomaly.NICStorm
		v.addEvidence("%s has paused the port without a gap for %s", host,
			model.FormatDuration(node.Snapshot.Sub(p.LastStart)))
	}
	v.Remedy = anomaly.Expand(v.Detail.Remedy(), "{host}", host)
}

// backpressureVerdict returns the verdict on a queue that flows congest.
func (m *analysis) backpressureVerdict(e terminal) Verdict {
	v := m.newVerdict(anomaly.PFCBackpressure, anomaly.ContendingFlows, e)
	m.nameCulprits(&v, e.node, m.culprits(e.node))
	return v
}

// addContention adds the verdict on a queue of the victim's own path.
func (m *analysis) addContention(n int) {
	v := m.newVerdict(anomaly.FlowContention, anomaly.ContendingFlows, terminal{node: n, share: 1, path: []int{n}})
	v.Path = nil
	v.Confidence = m.queuedBytes(n) / (m.linkBytes(n, 100*time.Microsecond) + m.queuedBytes(n))
	if !m.atSnapshot {
		v.Confidence = 0.5 * m.victimDepthShare(n) * m.explainedShare(n)
	}
	m.nameCulprits(&v, n, m.competitors(n))
	m.addVerdict(v)
}

// nameCulprits names the flows that congest a queue, and why they do.
func (m *analysis) nameCulprits(v *Verdict, n int, flows []Culprit) {
	node := &m.g.Nodes[n]
	v.Culprits = flows
	if m.atSnapshot {
		v.addEvidence("%s was not paused and held %s", m.portText(n), model.FormatBytes(model.Bytes(node.State.Queued)))
	} else {
		v.addEvidence("%s held %.0f packets on average while it was not paused", m.portText(n), node.Depth)
	}
	if len(v.Culprits) == 0 {
		v.addEvidence("the switch has no record of the flows they belong to")
	}
	v.BurstDuration = m.burstDuration(n, v.Culprits)
	m.setDetail(v, n)
}

// addDeadlock adds the verdicts on a deadlock cycle: what triggered it decides
// which. There may be a trigger inside the cycle and one outside.
func (m *analysis) addDeadlock(c cycle) {
	inside, depth := m.deepestAtPause(m.sendingBeforeClose(c.nodes))
	host, flows := terminal{node: -1}, terminal{node: -1}
	closed := m.cycleAge(c.nodes)
	for _, e := range c.terminals {
		switch m.classify(e.node) {
		case unknownTerminal:
			m.addGap(e.node)
		case hostTerminal:
			if host.node < 0 {
				host = e
			}
		case flowTerminal:
			deeper := flows.node < 0 || m.queuedBytes(e.node) > m.queuedBytes(flows.node)
			if deeper && !m.causeTooLate(e) && !m.congestedAfterClose(e.node, closed) {
				flows = e
			}
		}
	}
	inLoop := inside >= 0 && depth >= m.linkBytes(inside, m.cfg.CongestedAt)
	past := host.node < 0 && flows.node < 0
	if past {
		// What the cycle waited for outside may be over by now. A queue of the
		// cycle that was congested by itself does not rule it out: the evidence does
		// not say which of the two was the trigger. And hosts do not pause without a
		// reason.
		switch e := m.findTrigger(c.nodes); {
		case e.node < 0:
		case m.pausedByHost(e.node):
			host = e
		default:
			flows = e
		}
	}
	most, outside := depth, 0.0
	if flows.node >= 0 {
		outside = m.queuedBytes(flows.node)
		if past {
			outside = max(outside, m.g.Nodes[flows.node].Depth*packetSize)
		}
		most = max(most, outside)
	}
	if host.node >= 0 {
		v := m.newCycleVerdict(anomaly.DeadlockOutOfLoop, anomaly.HostInjection, c, host, 1)
		m.describeHostPauses(&v, host.node)
		m.addCycleVerdict(v, c)
	}
	if flows.node >= 0 {
		v := m.newCycleVerdict(anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, c, flows, outside/most)
		by := m.culprits(flows.node)
		if past {
			by = m.leadUpCulprits(flows.node, closed)
		}
		m.nameCulprits(&v, flows.node, by)
		m.addCycleVerdict(v, c)
	}
	if inLoop && host.node < 0 {
		v := m.newCycleVerdict(anomaly.DeadlockInLoop, anomaly.ContendingFlows, c, terminal{node: inside}, depth/most)
		v.addEvidence("%s held %s when it was first paused: it was congested by itself",
			m.portText(inside), model.FormatBytes(model.Bytes(depth)))
		v.Culprits = m.flowsBeforePause(inside)
		m.setDetail(&v, inside)
		m.addCycleVerdict(v, c)
	}
	if host.node < 0 && flows.node < 0 && !inLoop {
		v := m.newCycleVerdict(anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, c, terminal{node: c.nodes[0]}, 1)
		v.Initial = model.Port{}
		v.addEvidence("none of its queues was congested when first paused: the trigger lies outside the cycle and left " +
			"no evidence")
		m.addCycleVerdict(v, c)
	}
}

// queuedBytes returns what a queue held at its snapshot.
func (m *analysis) queuedBytes(n int) float64 { return float64(m.g.Nodes[n].State.Queued) }

// newCycleVerdict starts a verdict on a deadlock cycle and its trigger.
func (m *analysis) newCycleVerdict(
	a anomaly.Type, root anomaly.RootCause, c cycle, by terminal, weight float64,
) Verdict {
	v := m.newVerdict(a, root, terminal{node: by.node, share: c.share * weight, path: c.entry})
	for _, n := range c.nodes {
		v.DeadlockCycle = append(v.DeadlockCycle, m.g.Nodes[n].Port)
	}
	v.CycleClosed = m.g.To.Add(-m.cycleAge(c.nodes))
	v.addEvidence("%d paused queues held packets of each other in a cycle (cyclic buffer dependency)", len(c.nodes))
	m.extendPath(&v, by)
	return v
}

// addCycleVerdict adds the routing fault and the remedy of a deadlock cycle,
// and keeps the verdict.
func (m *analysis) addCycleVerdict(v Verdict, c cycle) {
	v.Fault = m.routingFault(c.nodes)
	v.Remedy = v.Anomaly.Remedy()
	if f := v.Fault; f != nil {
		sw, dst, next := nodeName(m.fabric, f.Node), nodeName(m.fabric, f.Dst), nodeName(m.fabric, f.NextHop)
		v.addEvidence("%s forwards packets for %s to %s, which closes the cycle", sw, dst, next)
		v.Remedy = fmt.Sprintf("correct the route of %s for %s; then break the deadlock by resetting one port of the cycle",
			sw, dst)
	}
	m.addVerdict(v)
}

// extendPath extends the path of a cycle's verdict to a trigger outside.
func (m *analysis) extendPath(v *Verdict, outside terminal) {
	for _, n := range outside.path {
		if p := m.g.Nodes[n].Port; !slices.Contains(v.Path, p) {
			v.Path = append(v.Path, p)
		}
	}
}

// deepestAtPause returns the queue of a cycle that held most when it was
// paused, which blocked the others before they blocked it; -1 if there is none.
func (m *analysis) deepestAtPause(nodes []int) (node int, bytes float64) {
	node = -1
	for _, n := range nodes {
		if b := float64(m.g.Nodes[n].Pauses.BytesAtBurstStart); node < 0 || b > bytes {
			node, bytes = n, b
		}
	}
	return node, bytes
}

// newVerdict starts a verdict on a terminal. Confidence holds its weight until
// setConfidences.
func (m *analysis) newVerdict(a anomaly.Type, root anomaly.RootCause, e terminal) Verdict {
	v := Verdict{
		Event: m.detection.Event, Victim: m.detection.Victim, Anomaly: a, Cause: root,
		Initial: m.g.Nodes[e.node].Port, Confidence: e.share,
	}
	if source, ok := m.fabric.ByAddr(v.Victim.Src); ok && m.startsAtHost {
		first := m.fabric.Port(model.Port{Node: source, Port: 1})
		for _, p := range m.fabric.Node(source).Ports {
			if p.Peer.Node == m.g.Nodes[e.path[0]].Node {
				first = m.fabric.Port(model.Port{Node: source, Port: p.ID})
			}
		}
		v.Path = append(v.Path, model.Port{Node: source, Port: first.ID})
		v.addEvidence("%s paused %s, whose packets it held at %s", nodeName(m.fabric, first.Peer.Node),
			nodeName(m.fabric, source), m.portText(e.path[0]))
	} else if a != anomaly.FlowContention {
		v.addEvidence("%s was paused while it held packets of the flow", m.portText(e.path[0]))
	}
	for _, n := range e.path {
		v.Path = append(v.Path, m.g.Nodes[n].Port)
	}
	if a != anomaly.FlowContention {
		m.nameSpreaders(&v, e.path)
	}
	return v
}

// addEvidence adds a piece of evidence.
func (v *Verdict) addEvidence(format string, args ...any) {
	v.Evidence = append(v.Evidence, fmt.Sprintf(format, args...))
}

// nameSpreaders names the flows that spread PFC from port to port, and those
// that were paused.
func (m *analysis) nameSpreaders(v *Verdict, via []int) {
	const most = 64
	var before []int
	for i, n := range via {
		var here []int
		if m.g.Nodes[n].PausedAtSnapshot() {
			for _, w := range m.g.QueuedAt(n) {
				here = append(here, w.Flow)
			}
		}
		for _, e := range m.g.FlowPort {
			if e.To == n && !m.atSnapshot {
				here = append(here, e.From)
			}
		}
		for _, f := range here {
			key := m.g.Flows[f]
			if i > 0 && slices.Contains(before, f) && len(v.Spreaders) < most && !slices.Contains(v.Spreaders, key) {
				v.Spreaders = append(v.Spreaders, key)
			}
			if len(v.Victims) < most && !slices.Contains(v.Victims, key) {
				v.Victims = append(v.Victims, key)
			}
		}
		before = here
	}
	slices.SortFunc(v.Spreaders, model.FlowKey.Compare)
	slices.SortFunc(v.Victims, model.FlowKey.Compare)
}

// concludeNothing adds the verdict on a detection without a cause.
func (m *analysis) concludeNothing() {
	v := Verdict{Event: m.detection.Event, Victim: m.detection.Victim, Confidence: 1}
	switch {
	case len(m.g.SwitchReports) == 0:
		v.addEvidence("no switch reported")
	case len(m.victimQueues) == 0:
		v.addEvidence("no switch recorded the flow in the reported epochs")
	default:
		v.addEvidence("no port on the flow's path was paused or congested")
	}
	v.Remedy = v.Anomaly.Remedy()
	m.addVerdict(v)
}

// setConfidences turns weights into confidences and adds what all verdicts on a
// detection share.
func (m *analysis) setConfidences() {
	whole := 0.0
	for i := range m.verdicts {
		whole = max(whole, m.verdicts[i].Confidence)
	}
	if whole <= 0 {
		whole = 1 // forged times can leave everything without weight
	}
	for i := range m.verdicts {
		v := &m.verdicts[i]
		v.Confidence = m.confidence(v, v.Confidence/whole)
		v.Incomplete = len(m.gaps) > 0 || !m.evidence.Complete()
		v.At, v.Switches = m.g.To, len(m.g.SwitchReports)
		for _, r := range m.evidence.Reports {
			v.Telemetry += r.Bytes
		}
	}
}

// confidence returns the confidence of a verdict from its weight relative to
// the heaviest. The factors are not probabilities: each says that something is
// missing, and they multiply so that more missing evidence means less
// confidence.
func (m *analysis) confidence(v *Verdict, weight float64) float64 {
	c := 0.5 + 0.5*weight
	if len(m.gaps) > 0 {
		for _, g := range m.gaps {
			v.addEvidence("%s", g)
		}
		if v.Anomaly == anomaly.None {
			return 0.1 // not enough evidence
		}
		c *= 0.6
	}
	if !m.evidence.Complete() {
		c *= 0.8
		v.addEvidence("some reports are missing or incomplete")
	}
	if !m.atSnapshot && v.Anomaly != anomaly.None {
		c *= 0.6
	}
	switch {
	case v.Anomaly == anomaly.None && len(m.victimQueues) == 0:
		c *= 0.2
	case v.Cause == anomaly.NoRootCause && v.Anomaly != anomaly.None:
		c *= 0.5
	case v.Cause == anomaly.ContendingFlows && len(v.Culprits) == 0:
		c *= 0.7
	}
	if len(v.DeadlockCycle) > 0 && !v.Persistent {
		c *= unconfirmedFactor
	}
	return c
}

// unconfirmedFactor lowers the confidence of a deadlock cycle that was seen in
// one snapshot only.
const unconfirmedFactor = 0.8
