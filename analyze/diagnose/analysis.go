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

// analysis is the work on one graph.
type analysis struct {
	*Diagnoser
	detection Detection
	evidence  *provenance.Evidence
	g         *provenance.Graph
	routes    *topo.Routes
	atSnapshot       bool // the relation at hand is that of the snapshots
	startsAtHost    bool // waiting begins in the victim's host, whose port is paused
	waitFor       waitForGraph

	victimQueues   []int         // queues on the victim's way
	victimHolders  []int         // index them: those that hold packets of it, or may
	pausedFeeders  map[int][]int // by queue: paused ones that it holds packets of
	gaps     []string
	verdicts []Verdict
}

// findVictimQueues finds the victim's queues: where its packets wait or went. A
// switch that keeps no flows is taken to follow its intended routes.
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

// requireReport notes if a node that must have been asked has not answered: the
// switch of the victim's host, or one that it was seen on its way to.
func (m *analysis) requireReport(id model.NodeID) {
	if node := m.fabric.Node(id); !node.Role.IsSwitch() {
		if len(node.Ports) != 1 || id != m.victimHost() {
			return
		}
		id = node.Ports[0].Peer.Node
	}
	if _, told := m.g.SwitchReport(id); !told {
		m.gaps = append(m.gaps, fmt.Sprintf("%s, on the flow's way, did not answer", nodeName(m.fabric, id)))
	}
}

// victimHost is the victim's host.
func (m *analysis) victimHost() model.NodeID {
	id, _ := m.fabric.ByAddr(m.detection.Victim.Src)
	return id
}

// portText prints a queue's port.
func (m *analysis) portText(n int) string { return viewPort(m.fabric, m.g.Nodes[n].Port).String() }

// isCongested tells whether a queue holds enough to make others wait.
func (m *analysis) isCongested(n int) bool {
	return float64(m.g.Nodes[n].State.Queued) >= m.linkBytes(n, m.cfg.CongestedAt)
}

// linkBytes is what a queue's link carries in a time.
func (m *analysis) linkBytes(n int, d time.Duration) float64 {
	p := m.fabric.Port(m.g.Nodes[n].Port)
	rate := m.fabric.Links()[p.Link].Rate
	return float64(rate) / 8 * d.Seconds()
}

// pausedTogether tells whether the queues of a loop were all paused at one instant.
// Snapshots are apart: where pauses go round, each queue may be paused when it
// is looked at, and the circle never was.
func (m *analysis) pausedTogether(loop cycle) bool {
	return !slices.ContainsFunc(loop.nodes, func(n int) bool { return m.ageAtSnapshot(n, m.g.Nodes[n].Pauses.LastStart) < m.snapshotSkew })
}

// recentlyBlocked tells whether a queue waits for its neighbour, now or a moment ago.
// PFC lets a queue go and stops it again every few microseconds; one that is
// isCongested because of that, not by itself, still waits for what stops it.
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

// isBlocked tells whether a queue is held up by its neighbour, now or a moment ago.
func (m *analysis) isBlocked(n int) bool {
	return m.g.Nodes[n].PausedAtSnapshot() && !m.selfCongested(n) || m.recentlyBlocked(n)
}

// selfCongested tells whether a queue was overfull before it was paused, which it was
// only after the host complained: it waited for itself.
func (m *analysis) selfCongested(n int) bool {
	return m.pausedAfterDetection(n) && m.backlogExceedsPauses(n)
}

// pausedAfterDetection tells whether a queue is paused, by a switch, and was not when the
// host complained.
func (m *analysis) pausedAfterDetection(n int) bool {
	node := &m.g.Nodes[n]
	return !node.ToHost && node.PausedAtSnapshot() && m.ageAtPoll(n, node.Pauses.BurstStart) < m.pollDelay
}

// congestedAfterDetection tells whether a queue was not deep when the host complained.
func (m *analysis) congestedAfterDetection(n int) bool {
	wave := &m.g.Nodes[n].Episode
	return wave.MaxBytes > 0 && m.ageAtPoll(n, wave.First) < m.pollDelay
}

// isBottleneck tells whether a queue is a reason to wait by itself: it sends, and is
// isCongested.
func (m *analysis) isBottleneck(n int) bool { return !m.isBlocked(n) && m.isCongested(n) }

// justResumed tells whether a queue was let go a moment ago and may wait again in
// the next.
func (m *analysis) justResumed(n int) bool {
	just := m.g.Nodes[n].Pauses.Pauses > 0 && m.ageAtSnapshot(n, m.g.Nodes[n].Pauses.LastEnd) <= m.snapshotSkew
	return just && !m.backlogExceedsPauses(n) || m.inPauseBurst(n)
}

// backlogExceedsPauses tells whether a queue was overfull before its pauses began, and they were
// shorter together than what it takes to send that: it waits for itself.
func (m *analysis) backlogExceedsPauses(n int) bool {
	p := &m.g.Nodes[n].Pauses
	paused := p.LastEnd.Sub(p.BurstStart)
	if m.g.Nodes[n].PausedAtSnapshot() {
		paused = m.ageAtSnapshot(n, p.BurstStart)
	}
	if p.PausedTime > 0 {
		paused = min(paused, p.PausedTime) // index all pauses ever: at least theirs
	}
	return float64(p.BytesAtBurstStart) >= max(m.linkBytes(n, m.cfg.CongestedAt), m.linkBytes(n, paused))
}

// inPauseBurst tells whether a queue was paused a moment ago, and not overfull before
// that fit of pauses began.
func (m *analysis) inPauseBurst(n int) bool {
	node := &m.g.Nodes[n]
	p := &node.Pauses
	return p.Pauses > 0 && m.ageAtSnapshot(n, p.LastEnd) <= epoch.PauseBurstGap && float64(p.BytesAtBurstStart) < m.linkBytes(n, m.cfg.CongestedAt)
}

// victimBytes is what a queue holds of the victim, in bytes.
func (m *analysis) victimBytes(n int) (bytes float64) {
	flow := m.g.Flow(m.detection.Victim)
	for _, w := range m.g.QueuedAt(n) {
		if w.Flow == flow {
			bytes += float64(w.Bytes)
		}
	}
	return bytes
}

// peerMissing tells whether the answer of a queue's neighbour is missing, or a part of
// it.
func (m *analysis) peerMissing(n int) bool {
	t, told := m.g.SwitchReport(m.g.Nodes[n].Peer.Node)
	return !told || !t.Complete
}

func (m *analysis) addGap(n int) {
	m.gaps = append(m.gaps, fmt.Sprintf("%s was paused by %s, which did not answer in full", m.portText(n), nodeName(m.fabric, m.g.Nodes[n].Peer.Node)))
}

// hasVerdictAt tells whether a verdict begins at a queue already.
func (m *analysis) hasVerdictAt(n int) bool {
	return slices.ContainsFunc(m.verdicts, func(v Verdict) bool { return v.Initial == m.g.Nodes[n].Port })
}

// addVerdict keeps a verdict.
func (m *analysis) addVerdict(v Verdict) { m.verdicts = append(m.verdicts, v) }

// rankVerdicts orders verdicts by weight, which stands in Confidence until account, and
// drops what is far lighter than the heaviest.
func (m *analysis) rankVerdicts() {
	slices.SortStableFunc(m.verdicts, func(a, b Verdict) int { return cmp.Compare(b.Confidence, a.Confidence) })
	for i := range m.verdicts {
		if i > 0 && m.verdicts[i].Confidence < m.cfg.MinCauseShare*m.verdicts[0].Confidence {
			m.verdicts = m.verdicts[:i]
			break
		}
	}
}
