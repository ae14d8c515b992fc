package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// analysis is the diagnosis of one provenance graph.
type analysis struct {
	*Diagnoser
	detection    Detection
	evidence     *provenance.Evidence
	g            *provenance.Graph
	routes       *topo.Routes
	atSnapshot   bool // waitFor is that of the snapshots, not of the epochs
	startsAtHost bool // the victim waits in its host, whose port is paused
	waitFor      waitForGraph

	victimQueues  []int         // queues on the victim's path
	victimHolders []int         // of them: those that hold packets of it, or may
	pausedFeeders map[int][]int // by queue: paused upstream queues whose packets it holds
	gaps          []string
	verdicts      []Verdict
}

// findVictimQueues finds the queues where packets of the victim wait or passed.
// A switch that keeps no flows is assumed to follow its intended routes.
func (m *analysis) findVictimQueues() {
	flow := m.g.Flow(m.detection.Victim)
	for i := range m.g.QueuedFlows {
		if w := &m.g.QueuedFlows[i]; w.Flow == flow {
			m.victimHolders = append(m.victimHolders, w.Node)
		}
	}
	m.victimQueues = slices.Clone(m.victimHolders)
	for i := range m.g.FlowEpochs {
		if p := &m.g.FlowEpochs[i]; p.Flow == flow {
			m.victimQueues = append(m.victimQueues, p.Node)
		}
	}
	slices.Sort(m.victimQueues)
	m.victimHolders, m.victimQueues = slices.Compact(m.victimHolders), slices.Compact(m.victimQueues)
	source, ok := m.fabric.ByAddr(m.detection.Victim.Src)
	if !ok {
		return
	}
	m.requireReport(source)
	for _, n := range m.victimQueues {
		m.requireReport(m.g.Nodes[n].Peer.Node)
	}
	hops, _ := m.routes.Path(m.detection.Victim, source)
	for _, h := range hops {
		t, _ := m.g.SwitchReport(h.Node)
		for class := range model.Priority(8) {
			n := m.g.Node(provenance.Queue{Port: model.Port{Node: h.Node, Port: h.Out}, Priority: class})
			if n >= 0 && t.NoFlows && !slices.Contains(m.victimQueues, n) {
				m.victimQueues = append(m.victimQueues, n)
				if m.g.Nodes[n].State.Queued > 0 {
					m.victimHolders = append(m.victimHolders, n)
				}
			}
		}
	}
}

// requireReport adds a gap if a node that must have been polled has not
// reported: the switch of the victim's host, or the next hop of a queue that
// the victim passed.
func (m *analysis) requireReport(id model.NodeID) {
	if node := m.fabric.Node(id); !node.Role.IsSwitch() {
		if len(node.Ports) != 1 || id != m.victimHost() {
			return
		}
		id = node.Ports[0].Peer.Node
	}
	if _, found := m.g.SwitchReport(id); !found {
		m.gaps = append(m.gaps, fmt.Sprintf("%s, on the flow's path, did not report", nodeName(m.fabric, id)))
	}
}

// victimHost returns the victim's source host.
func (m *analysis) victimHost() model.NodeID {
	id, _ := m.fabric.ByAddr(m.detection.Victim.Src)
	return id
}

// portText returns the name of a queue's port.
func (m *analysis) portText(n int) string { return m.fabric.PortName(m.g.Nodes[n].Port) }

// isCongested reports whether a queue holds enough to delay other packets.
func (m *analysis) isCongested(n int) bool {
	return float64(m.g.Nodes[n].State.Queued) >= m.linkBytes(n, m.cfg.CongestedAt)
}

// linkBytes returns how many bytes a queue's link carries in a time.
func (m *analysis) linkBytes(n int, d time.Duration) float64 {
	p := m.fabric.Port(m.g.Nodes[n].Port)
	rate := m.fabric.Links()[p.Link].Rate
	return float64(rate) / 8 * d.Seconds()
}

// pausedTogether reports whether the queues of a cycle were all paused at one
// instant. Snapshots are not simultaneous: where pauses move along a cycle,
// each queue may be paused at its own snapshot although they never were all at
// once.
func (m *analysis) pausedTogether(c cycle) bool {
	return !slices.ContainsFunc(c.nodes, func(n int) bool {
		return m.ageAtSnapshot(n, m.g.Nodes[n].Pauses.LastStart) < m.snapshotSkew
	})
}

// recentlyBlocked reports whether a queue waits for its neighbour, now or
// within snapshotSkew or PauseBurstGap before its snapshot. PFC resumes and
// pauses a queue again every few microseconds; one that is congested because of
// that, not by itself, still waits for what pauses it.
func (m *analysis) recentlyBlocked(n int) bool {
	node := &m.g.Nodes[n]
	if node.ToHost {
		return false
	}
	if node.PausedAtSnapshot() {
		return !m.selfCongested(n)
	}
	return m.justResumed(n) && slices.ContainsFunc(provenance.EdgesFrom(m.g.Held, n), func(e provenance.Edge) bool {
		return m.g.Nodes[e.To].PausedAtSnapshot() || m.isCongested(e.To)
	})
}

// isBlocked reports whether its neighbour blocks a queue, now or just before
// its snapshot.
func (m *analysis) isBlocked(n int) bool {
	return m.g.Nodes[n].PausedAtSnapshot() && !m.selfCongested(n) || m.recentlyBlocked(n)
}

// selfCongested reports whether a queue was congested before it was paused, and
// paused only after the detection: then it delayed the flow by itself.
func (m *analysis) selfCongested(n int) bool {
	return m.pausedAfterDetection(n) && m.backlogExceedsPauses(n)
}

// pausedAfterDetection reports whether a switch pauses a queue now and did not
// at the detection.
func (m *analysis) pausedAfterDetection(n int) bool {
	node := &m.g.Nodes[n]
	return !node.ToHost && node.PausedAtSnapshot() && m.ageAtPoll(n, node.Pauses.BurstStart) < m.pollDelay
}

// congestedAfterDetection reports whether a queue was not congested at the
// detection.
func (m *analysis) congestedAfterDetection(n int) bool {
	episode := &m.g.Nodes[n].Episode
	return episode.MaxBytes > 0 && m.ageAtPoll(n, episode.First) < m.pollDelay
}

// isBottleneck reports whether a queue delays packets by itself: it sends, and
// is congested.
func (m *analysis) isBottleneck(n int) bool { return !m.isBlocked(n) && m.isCongested(n) }

// justResumed reports whether a queue was resumed just before its snapshot and
// is likely to be paused again.
func (m *analysis) justResumed(n int) bool {
	just := m.g.Nodes[n].Pauses.Pauses > 0 && m.ageAtSnapshot(n, m.g.Nodes[n].Pauses.LastEnd) <= m.snapshotSkew
	return just && !m.backlogExceedsPauses(n) || m.inPauseBurst(n)
}

// backlogExceedsPauses reports whether a queue was congested before its pauses
// began, and they were shorter in total than the time to send that backlog: it
// delays packets by itself.
func (m *analysis) backlogExceedsPauses(n int) bool {
	p := &m.g.Nodes[n].Pauses
	paused := p.LastEnd.Sub(p.BurstStart)
	if m.g.Nodes[n].PausedAtSnapshot() {
		paused = m.ageAtSnapshot(n, p.BurstStart)
	}
	if p.PausedTime > 0 {
		paused = min(paused, p.PausedTime) // PausedTime sums all pauses ever, these among them
	}
	return float64(p.BytesAtBurstStart) >= max(m.linkBytes(n, m.cfg.CongestedAt), m.linkBytes(n, paused))
}

// inPauseBurst reports whether a queue was paused within PauseBurstGap, and was
// not congested before that burst of pauses began.
func (m *analysis) inPauseBurst(n int) bool {
	node := &m.g.Nodes[n]
	p := &node.Pauses
	return p.Pauses > 0 && m.ageAtSnapshot(n, p.LastEnd) <= epoch.PauseBurstGap &&
		float64(p.BytesAtBurstStart) < m.linkBytes(n, m.cfg.CongestedAt)
}

// victimBytes returns how many bytes of the victim a queue holds.
func (m *analysis) victimBytes(n int) (bytes float64) {
	flow := m.g.Flow(m.detection.Victim)
	for _, w := range m.g.QueuedAt(n) {
		if w.Flow == flow {
			bytes += float64(w.Bytes)
		}
	}
	return bytes
}

// peerMissing reports whether the report of a queue's neighbour is missing or
// incomplete.
func (m *analysis) peerMissing(n int) bool {
	t, found := m.g.SwitchReport(m.g.Nodes[n].Peer.Node)
	return !found || !t.Complete
}

// addGap notes that the report about what paused a queue is missing.
func (m *analysis) addGap(n int) {
	m.gaps = append(m.gaps, fmt.Sprintf("%s was paused by %s, whose report is missing or incomplete",
		m.portText(n), nodeName(m.fabric, m.g.Nodes[n].Peer.Node)))
}

// hasVerdictAt reports whether a queue is the initial port of a verdict.
func (m *analysis) hasVerdictAt(n int) bool {
	return slices.ContainsFunc(m.verdicts, func(v Verdict) bool { return v.Initial == m.g.Nodes[n].Port })
}

// addVerdict keeps a verdict.
func (m *analysis) addVerdict(v Verdict) { m.verdicts = append(m.verdicts, v) }

// rankVerdicts orders verdicts by weight, which Confidence holds until
// setConfidences, and drops those far below the heaviest.
func (m *analysis) rankVerdicts() {
	slices.SortStableFunc(m.verdicts, func(a, b Verdict) int { return cmp.Compare(b.Confidence, a.Confidence) })
	for i := range m.verdicts {
		if i > 0 && m.verdicts[i].Confidence < m.cfg.MinCauseShare*m.verdicts[0].Confidence {
			m.verdicts = m.verdicts[:i]
			break
		}
	}
}
