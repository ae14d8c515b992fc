package diagnose

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// conclude returns the verdict on a cause.
func (m *analysis) conclude(c *cause) Verdict {
	v := Verdict{Share: float64(c.time) / float64(m.account.Late)}
	path := m.path(c)
	for _, p := range path {
		v.Path = append(v.Path, p.Port)
	}
	switch c.kind {
	case attribution.HostInjection:
		v.Anomaly, v.Cause = anomaly.PFCStorm, anomaly.HostInjection
	case attribution.Contention:
		v.Anomaly, v.Cause = anomaly.PFCBackpressure, anomaly.ContendingFlows
		if c.deadlock == nil && 2*c.queued >= c.time {
			v.Anomaly, v.Path = anomaly.FlowContention, nil
		}
	}
	if c.place != nil {
		v.Initial = c.place.Port
	}
	if c.deadlock != nil {
		m.describeCycle(&v, c.deadlock)
	}
	if v.Anomaly != anomaly.FlowContention {
		m.nameSpreaders(&v, path)
	}
	m.describeWait(&v, c)
	n := -1
	if c.place != nil {
		n = m.node(c.place)
	}
	switch {
	case n < 0:
	case c.kind == attribution.HostInjection:
		m.describeHostPauses(&v, n)
	default:
		v.Culprits = m.culprits(c.culprits)
		switch {
		case len(v.Culprits) == 0:
			v.addEvidence("the switch has no record of the flows that congested it")
		case c.term.Later && c.deadlock == nil:
			v.addEvidence("the flows that congested it are no longer recorded; those named came next")
		}
		v.BurstDuration = m.burstDuration(n, v.Culprits)
		m.setDetail(&v, n)
	}
	if c.deadlock != nil {
		m.setCycleRemedy(&v, c.deadlock)
	}
	return v
}

// culprits returns the flows whose share is not far below the largest.
func (m *analysis) culprits(all []attribution.Culprit) (list []Culprit) {
	for _, c := range all {
		if c.Share >= m.cfg.MinCulpritShare*all[0].Share {
			list = append(list, Culprit{c.Flow, c.Share})
		}
	}
	return list
}

// path returns how pauses came from a cause to the packet: from the queue in which it
// waited most, each to the one of the next switch that passed most on, to where the
// cause began.
func (m *analysis) path(c *cause) (list []attribution.Place) {
	via := c.term.Via
	if len(via) == 0 {
		if c.place != nil {
			list = append(list, *c.place)
		}
		return list
	}
	at := 0
	for i := range via {
		if via[i].Waited > via[at].Waited {
			at = i
		}
	}
	for at >= 0 {
		list = append(list, via[at].Place)
		from, next := via[at].Peer.Node, -1
		for i := range via {
			if via[i].Port.Node == from && !slices.Contains(list, via[i].Place) && (next < 0 || via[i].Time > via[next].Time) {
				next = i
			}
		}
		at = next
	}
	if c.place != nil && !slices.Contains(list, *c.place) {
		list = append(list, *c.place)
	}
	return list
}

// describeWait says how long the packet waited for a cause, and where.
func (m *analysis) describeWait(v *Verdict, c *cause) {
	if m.detection.Latency <= 0 {
		return // the packet is an assumed one
	}
	for i := range c.term.Via {
		if q := &c.term.Via[i]; float64(q.Waited) >= m.cfg.MinCauseShare*float64(c.time) {
			v.addEvidence("%s was paused while it held packets of the flow, which cost %s of %s", m.fabric.PortName(q.Port),
				model.FormatDuration(q.Waited), model.FormatDuration(m.account.Late))
		}
	}
	if c.place != nil && float64(c.queued) >= m.cfg.MinCauseShare*float64(c.time) {
		v.addEvidence("packets of the flow were queued at %s, which cost %s of %s", m.fabric.PortName(c.place.Port),
			model.FormatDuration(c.queued), model.FormatDuration(m.account.Late))
	}
}

// describeHostPauses adds the evidence, detail and remedy of a host's pauses.
func (m *analysis) describeHostPauses(v *Verdict, n int) {
	node := &m.g.Nodes[n]
	host := nodeName(m.fabric, node.Peer.Node)
	v.addEvidence("%s sent %s to %s; the port leads to no switch",
		host, plural.Count(node.State.PauseFrames, "pause frame"), m.portText(n))
	// The pauses since the first that had a part in the lateness.
	since := node.PolledAt.Add(m.account.Since.Sub(m.packet.Sent.Add(m.packet.Took)))
	pauses, last := 0, provenance.Interval{}
	for _, p := range node.PauseIntervals {
		if p.End > since {
			pauses, last = pauses+1, p
			if p.Coverage < 1 {
				pauses++
			}
		}
	}
	switch paused := node.PausedAtSnapshot(); {
	case pauses <= 1 && !paused: // it may have been either
		v.Detail = anomaly.UnknownDetail
		v.Remedy = anomaly.Expand(anomaly.DrainsSlowly.Remedy(), "{host}", host)
		return
	case pauses > 1:
		v.Detail = anomaly.DrainsSlowly
		v.addEvidence("%s resumes the port between pauses: it drains slowly", host)
	default:
		v.Detail = anomaly.NICStorm
		v.addEvidence("%s has paused the port without a gap for %s", host, model.FormatDuration(node.Snapshot.Sub(last.Start)))
	}
	v.Remedy = anomaly.Expand(v.Detail.Remedy(), "{host}", host)
}

// describeCycle sets the deadlock of a verdict.
func (m *analysis) describeCycle(v *Verdict, d *attribution.DeadlockCycle) {
	v.Anomaly = anomaly.DeadlockOutOfLoop
	if d.Inside {
		v.Anomaly = anomaly.DeadlockInLoop
	}
	closed := m.packet.Sent.Add(m.packet.Took).Sub(d.Closed) // before the poll
	v.CycleClosed = m.g.To.Add(-closed)
	for _, p := range d.Cycle {
		v.DeadlockCycle = append(v.DeadlockCycle, p.Port)
	}
	v.addEvidence("%d paused queues held packets of each other in a cycle (cyclic buffer dependency)", len(d.Cycle))
	if d.Trigger == nil {
		v.addEvidence("what triggered it has left no evidence")
	}
}

// setCycleRemedy sets the routing fault and the remedy of a deadlock cycle.
func (m *analysis) setCycleRemedy(v *Verdict, d *attribution.DeadlockCycle) {
	var cycle []int
	for i := range d.Cycle {
		if n := m.node(&d.Cycle[i]); n >= 0 {
			cycle = append(cycle, n)
		}
	}
	v.Fault = m.routingFault(cycle)
	v.Remedy = v.Anomaly.Remedy()
	if f := v.Fault; f != nil {
		sw, dst, next := nodeName(m.fabric, f.Node), nodeName(m.fabric, f.Dst), nodeName(m.fabric, f.NextHop)
		v.addEvidence("%s forwards packets for %s to %s, which closes the cycle", sw, dst, next)
		v.Remedy = fmt.Sprintf("correct the route of %s for %s; then break the deadlock by resetting one port of the cycle",
			sw, dst)
	}
}

// addEvidence adds a piece of evidence.
func (v *Verdict) addEvidence(format string, args ...any) {
	v.Evidence = append(v.Evidence, fmt.Sprintf(format, args...))
}

// nameSpreaders names the flows that spread PFC from port to port, and those
// that were paused.
func (m *analysis) nameSpreaders(v *Verdict, path []attribution.Place) {
	const most = 64
	var before []int
	for i := range path {
		var here []int
		if n := m.node(&path[i]); n >= 0 {
			if m.g.Nodes[n].PausedAtSnapshot() {
				for _, w := range m.g.QueuedAt(n) {
					here = append(here, w.Flow)
				}
			} else {
				for _, e := range m.g.FlowPort {
					if e.To == n {
						here = append(here, e.From)
					}
				}
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
	v := Verdict{Remedy: anomaly.None.Remedy()}
	switch {
	case len(m.g.SwitchReports) == 0:
		v.addEvidence("no switch reported")
	case m.g.Flow(m.detection.Victim) < 0:
		v.addEvidence("no switch recorded the flow in the reported epochs")
	case m.account.Explained() > 0 && m.detection.Latency > 0:
		v.addEvidence("queues on the flow's path explain only %s of its lateness", model.FormatShare(m.account.Confidence()))
	default:
		v.addEvidence("no port on the flow's path was paused or congested")
	}
	m.verdicts = append(m.verdicts, v)
}

// confidenceInNothing returns the confidence of a verdict that finds no cause: low
// unless all that would show one has reported.
func (m *analysis) confidenceInNothing() float64 {
	if m.g.Flow(m.detection.Victim) < 0 || len(m.gaps) > 0 || !m.evidence.Complete() {
		return 0.1
	}
	return 1
}
