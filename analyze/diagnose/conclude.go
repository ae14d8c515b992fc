package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// stormVerdict is the verdict of a queue that a host pauses.
func (m *analysis) stormVerdict(e terminal) Verdict {
	v := m.newVerdict(anomaly.PFCStorm, anomaly.HostInjection, e)
	m.describeHostPauses(&v, e.node)
	return v
}

// describeHostPauses tells what a host's pauses look like.
func (m *analysis) describeHostPauses(v *Verdict, n int) {
	node := &m.g.Nodes[n]
	host := nodeName(m.fabric, node.Peer.Node)
	v.addEvidence("%s sent %d pause frames to %s: no switch is behind that port", host, node.State.PauseFrames, m.portText(n))
	p := &node.Pauses
	gap := p.LastStart.Sub(p.LastEnd)
	switch {
	case p.Pauses == 0:
		v.Detail = anomaly.UnknownDetail
	case !node.PausedAtSnapshot():
		v.Detail = anomaly.DrainsSlowly
		v.addEvidence("it has let packets through again")
	case p.LastEnd != 0 && gap < epoch.PauseBurstGap:
		v.Detail = anomaly.DrainsSlowly
		v.addEvidence("it let packets through between pauses, lately for %v: it takes in what it can", gap)
		v.Remedy = fmt.Sprintf("find out why %s takes packets in slowly (PCIe, memory, a busy processor); until then move its load elsewhere", host)
	default:
		v.Detail = anomaly.NICStorm
		v.addEvidence("it has paused without a break for %v", node.Snapshot.Sub(p.LastStart))
		v.Remedy = fmt.Sprintf("take %s out of service: disable its port or let the PFC watchdog ignore its pauses, and reset or replace its network card", host)
	}
}

// backpressureVerdict is the verdict of a queue that flows overfill.
func (m *analysis) backpressureVerdict(e terminal) Verdict {
	v := m.newVerdict(anomaly.PFCBackpressure, anomaly.ContendingFlows, e)
	m.nameCulprits(&v, e.node, m.culprits(e.node))
	return v
}

// addContention adds the verdict of a queue of the victim's own way.
func (m *analysis) addContention(n int) {
	v := m.newVerdict(anomaly.FlowContention, anomaly.ContendingFlows, terminal{node: n, share: 1, path: []int{n}})
	v.Path = nil
	v.Confidence = float64(m.g.Nodes[n].State.Queued) / (m.linkBytes(n, 100*time.Microsecond) + float64(m.g.Nodes[n].State.Queued))
	if !m.atSnapshot {
		v.Confidence = 0.5 * m.victimDepthShare(n) * m.explainedShare(n)
	}
	m.nameCulprits(&v, n, m.competitors(n))
	m.addVerdict(v)
}

// victimDepthShare names the flows that overfill a queue, and why they do.
func (m *analysis) nameCulprits(v *Verdict, n int, flows []Culprit) {
	node := &m.g.Nodes[n]
	v.Culprits = flows
	if m.atSnapshot {
		v.addEvidence("%s was not paused and held %v", m.portText(n), model.Bytes(node.State.Queued))
	} else {
		v.addEvidence("%s had %.0f packets waiting in the mean while it was not paused", m.portText(n), node.Depth)
	}
	if len(v.Culprits) == 0 {
		v.addEvidence("which flows they were of is not known there")
	}
	v.BurstDuration = m.burstDuration(n, v.Culprits)
	m.setDetail(v, n)
}

// addDeadlock makes the verdicts of a loop: what began it decides which. There may
// be a reason inside and one outside of it.
func (m *analysis) addDeadlock(loop cycle) {
	inside, depth := m.deepestAtPause(m.sendingBeforeClose(loop.nodes))
	host, flows := terminal{node: -1}, terminal{node: -1}
	closed := m.cycleAge(loop.nodes)
	for _, e := range loop.terminals {
		switch m.classify(e.node) {
		case unknownTerminal:
			m.addGap(e.node)
		case hostTerminal:
			if host.node < 0 {
				host = e
			}
		case flowTerminal:
			if !m.causeTooLate(e) && !m.congestedAfterClose(e.node, closed) && (flows.node < 0 || m.queuedBytes(e.node) > m.queuedBytes(flows.node)) {
				flows = e
			}
		}
	}
	inLoop := inside >= 0 && depth >= m.linkBytes(inside, m.cfg.CongestedAt)
	past := host.node < 0 && flows.node < 0
	if past {
		// What the circle waited for outside may be over by now. A queue of the
		// circle that was overfull by itself does not rule it out: which of the
		// two began it, nobody can tell. And hosts do not pause for nothing.
		switch e := m.findTrigger(loop.nodes); {
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
		v := m.newCycleVerdict(anomaly.DeadlockOutOfLoop, anomaly.HostInjection, loop, host, 1)
		m.describeHostPauses(&v, host.node)
		m.addCycleVerdict(v, loop)
	}
	if flows.node >= 0 {
		v := m.newCycleVerdict(anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, loop, flows, outside/most)
		by := m.culprits(flows.node)
		if past {
			by = m.leadUpCulprits(flows.node, closed)
		}
		m.nameCulprits(&v, flows.node, by)
		m.addCycleVerdict(v, loop)
	}
	if inLoop && host.node < 0 {
		v := m.newCycleVerdict(anomaly.DeadlockInLoop, anomaly.ContendingFlows, loop, terminal{node: inside}, depth/most)
		v.addEvidence("%s held %v already when it was first paused: it was overfull by itself", m.portText(inside), model.Bytes(depth))
		v.Culprits = m.flowsBeforePause(inside)
		m.setDetail(&v, inside)
		m.addCycleVerdict(v, loop)
	}
	if host.node < 0 && flows.node < 0 && !inLoop {
		v := m.newCycleVerdict(anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, loop, terminal{node: loop.nodes[0]}, 1)
		v.Initial = model.Port{}
		v.addEvidence("none of its queues was overfull when it was first paused: it began outside, and what began it has left no trace")
		m.addCycleVerdict(v, loop)
	}
}

func (m *analysis) queuedBytes(n int) float64 { return float64(m.g.Nodes[n].State.Queued) }

// newCycleVerdict begins a verdict of a loop that something began.
func (m *analysis) newCycleVerdict(a anomaly.Type, c anomaly.RootCause, loop cycle, by terminal, weight float64) Verdict {
	v := m.newVerdict(a, c, terminal{node: by.node, share: loop.share * weight, path: loop.entry})
	for _, n := range loop.nodes {
		v.DeadlockCycle = append(v.DeadlockCycle, m.g.Nodes[n].Port)
	}
	v.CycleClosed = m.g.To.Add(-m.cycleAge(loop.nodes))
	v.addEvidence("%d queues, each paused, held packets of each other in a circle", len(loop.nodes))
	m.extendPath(&v, by)
	return v
}

// addCycleVerdict adds what can be done about a loop.
func (m *analysis) addCycleVerdict(v Verdict, loop cycle) {
	v.Fault = m.routingFault(loop.nodes)
	if f := v.Fault; f != nil {
		v.addEvidence("%s sends packets for %s to %s, which closes the circle", nodeName(m.fabric, f.Node), nodeName(m.fabric, f.Dst), nodeName(m.fabric, f.NextHop))
		v.Remedy = fmt.Sprintf("put the route of %s for %s right; then break the circle by resetting one of its ports", nodeName(m.fabric, f.Node), nodeName(m.fabric, f.Dst))
	} else {
		v.Remedy = "break the circle: reset or drop the queue of one of its ports; then take the cyclic dependency out of the routes (weft topo check)"
	}
	m.addVerdict(v)
}

// extendPath lengthens the path of a loop's verdict to what is outside.
func (m *analysis) extendPath(v *Verdict, outside terminal) {
	for _, n := range outside.path {
		if p := m.g.Nodes[n].Port; !slices.Contains(v.Path, p) {
			v.Path = append(v.Path, p)
		}
	}
}

// deepestAtPause returns the queue of a loop that held most when it was paused: the
// one that made the others wait, before they made it wait; -1 of none.
func (m *analysis) deepestAtPause(loop []int) (node int, bytes float64) {
	node = -1
	for _, n := range loop {
		if b := float64(m.g.Nodes[n].Pauses.BytesAtBurstStart); node < 0 || b > bytes {
			node, bytes = n, b
		}
	}
	return node, bytes
}

// newVerdict starts a verdict of where waiting ended. Its weight stands in
// Confidence until account.
func (m *analysis) newVerdict(a anomaly.Type, c anomaly.RootCause, e terminal) Verdict {
	v := Verdict{Event: m.detection.Event, Victim: m.detection.Victim, Anomaly: a, Cause: c, Initial: m.g.Nodes[e.node].Port, Confidence: e.share}
	if source, ok := m.fabric.ByAddr(v.Victim.Src); ok && m.startsAtHost {
		first := m.fabric.Port(model.Port{Node: source, Port: 1})
		for _, p := range m.fabric.Node(source).Ports {
			if p.Peer.Node == m.g.Nodes[e.path[0]].Node {
				first = m.fabric.Port(model.Port{Node: source, Port: p.ID})
			}
		}
		v.Path = append(v.Path, model.Port{Node: source, Port: first.ID})
		v.addEvidence("%s paused %s itself, for packets of its that it held at %s", nodeName(m.fabric, first.Peer.Node), nodeName(m.fabric, source), m.portText(e.path[0]))
	} else if a != anomaly.FlowContention {
		v.addEvidence("%s was paused and held packets of the flow", m.portText(e.path[0]))
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

// nameSpreaders names the flows that carried pauses from port to port, and those that
// were held up.
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

// concludeNothing is the verdict of a complaint without a cause.
func (m *analysis) concludeNothing() {
	v := Verdict{Event: m.detection.Event, Victim: m.detection.Victim, Confidence: 1}
	switch {
	case len(m.g.SwitchReports) == 0:
		v.addEvidence("no switch answered")
	case len(m.victimQueues) == 0:
		v.addEvidence("no switch saw the flow in the epochs told")
	default:
		v.addEvidence("nothing on the flow's way was paused or overfull")
	}
	v.Remedy = "none; if it happens again, look at the hosts at both ends"
	m.addVerdict(v)
}

// setConfidences turns weights into confidence and adds what all verdicts of a
// detection share.
func (m *analysis) setConfidences() {
	whole := 0.0
	for i := range m.verdicts {
		whole = max(whole, m.verdicts[i].Confidence)
	}
	if whole <= 0 {
		whole = 1 // forged times can leave no weight to anything
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

// confidence is how sure a verdict is, of a weight relative to the heaviest. The
// factors are not probabilities: each says that something is missing, and they
// multiply so that more missing is less sure.
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
		v.addEvidence("some reports did not arrive, or not whole")
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

// unconfirmedFactor is what a loop is worth that was looked at once.
const unconfirmedFactor = 0.8
