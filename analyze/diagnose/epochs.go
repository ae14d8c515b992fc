package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// epochWaitFor is who waited for whom in the epochs before the snapshots.
func (m *analysis) epochWaitFor() waitForGraph {
	return waitForGraph{
		nodes:    len(m.g.Nodes),
		blocked:  func(n int) bool { return !m.g.Nodes[n].ToHost && m.pausesHeldBacklog(n) },
		blockers: func(n int) []provenance.Edge { return provenance.EdgesFrom(m.g.PortPort, n) },
	}
}

// pausesHeldBacklog tells whether a queue may have held enough in its pauses of the epochs
// told to make others wait: a pause that few packets met, and that found few
// there, stopped nobody before it. A queue that fills while it is paused holds
// twice in the end what its packets find in the mean.
func (m *analysis) pausesHeldBacklog(n int) bool {
	node := &m.g.Nodes[n]
	most := node.PausedDepth + min(node.PausedDepth, float64(node.Paused))
	return node.Paused > 0 && most*packetSize >= m.linkBytes(n, m.cfg.CongestedAt)
}

// packetWindowStart is from when on the victim's packet may have been in a queue, on its
// switch's clock: the poll takes the packet's way, and no longer than the packet
// did. What is still underway waited until a moment ago. If nobody knows how
// long it took, all that is told counts.
func (m *analysis) packetWindowStart(n int) model.Time {
	back := m.detection.Latency
	if back == 0 {
		return m.g.From
	}
	if m.detection.InFlight {
		back = min(back, epoch.PauseBurstGap)
	}
	return m.g.Nodes[n].PolledAt.Add(-back)
}

// relevantSince is from when on what a queue did may have held the packet up. Off its
// way that is less exact.
func (m *analysis) relevantSince(n int) model.Time {
	if slices.Contains(m.victimQueues, n) {
		return m.packetWindowStart(n)
	}
	return m.packetWindowStart(n).Add(-m.snapshotSkew)
}

// pausedInWindow tells whether a queue was paused while it may have held the packet
// up.
func (m *analysis) pausedInWindow(n int) bool {
	node := &m.g.Nodes[n]
	if node.Pauses.Pauses == 0 {
		return node.Paused > 0 // epochs alone were told
	}
	return node.PausedAtSnapshot() || node.Pauses.LastEnd >= m.relevantSince(n)
}

// blockedByPauses tells whether what filled a queue was rather its pauses than its own
// traffic: it was not deep when they began, or packets found more before them
// while it was paused. An epoch in which it was both paused and overfull by
// selfCongested does not tell which of the two a packet met; the nearer of two causes
// is the surer one.
func (m *analysis) blockedByPauses(n int) bool {
	node := &m.g.Nodes[n]
	switch p := &node.Pauses; {
	case !m.pausedInWindow(n):
		return false
	case node.ToHost:
		return true // hosts do not pause for nothing
	case m.pausedBriefly(n), m.pauseIsMinor(n):
		return false
	case p.Pauses > 0 && !m.backlogExceedsPauses(n):
		return true
	}
	free := float64(node.Packets-min(node.Paused, node.Packets)) * node.Depth
	return node.Paused > 0 && float64(node.Paused)*node.PausedDepth >= free
}

// singlePause is how long a queue's one pause was; false if there were more, or it stands.
func (m *analysis) singlePause(n int) (time.Duration, bool) {
	p := &m.g.Nodes[n].Pauses
	return p.LastEnd.Sub(p.LastStart), p.Pauses > 0 && !m.g.Nodes[n].PausedAtSnapshot() && p.BurstStart == p.LastStart
}

// pausedBriefly tells whether a queue was paused but once, for less than it must hold to
// be a reason to wait.
func (m *analysis) pausedBriefly(n int) bool {
	lasted, ok := m.singlePause(n)
	return ok && lasted < m.cfg.CongestedAt
}

// pauseIsMinor tells whether a queue was paused but once, for little beside what the
// victimQueues found in another queue of its way.
func (m *analysis) pauseIsMinor(n int) bool {
	lasted, ok := m.singlePause(n)
	return ok && slices.ContainsFunc(m.victimQueues, func(o int) bool {
		most := m.drainTime(o, m.cfg.MinCauseShare*float64(m.g.Nodes[o].Episode.MaxBytes))
		return o != n && lasted < most && m.congestedInWindow(o) && m.victimMetCongestion(o)
	})
}

// packetSize is the size of most, in bytes: depths are in packets.
const packetSize = 1000

// wasCongested tells whether a queue was deep by itself in the epochs told.
func (m *analysis) wasCongested(n int) bool {
	node := &m.g.Nodes[n]
	return max(node.Depth*packetSize, float64(node.Episode.MaxBytes)) >= m.linkBytes(n, m.cfg.CongestedAt)
}

// congestedBetween tells whether a queue was deep by itself, in the mean over one of the
// epochs in which flows passed it between two times.
func (m *analysis) congestedBetween(n int, from, to model.Time) bool {
	if t, _ := m.g.SwitchReport(m.g.Nodes[n].Node); t.NoFlows {
		return m.wasCongested(n) // its epochs are not told apart
	}
	depth, packets := map[uint32]float64{}, map[uint32]float64{}
	for _, p := range m.g.FlowEpochsAt(n) {
		if m.passedBetween(p, from, to) {
			depth[p.Record.Epoch] += float64(p.Record.Depth)
			packets[p.Record.Epoch] += float64(p.Record.Packets - min(p.Record.Paused, p.Record.Packets))
		}
	}
	for e := range depth {
		if packets[e] > 0 && depth[e]*packetSize >= packets[e]*m.linkBytes(n, m.cfg.CongestedAt) {
			return true
		}
	}
	return false
}

// congestedInWindow tells whether a queue was deep by itself while it may have held the
// packetSize up, or what the packet waited for.
func (m *analysis) congestedInWindow(n int) bool {
	since := m.relevantSince(n)
	if wave := &m.g.Nodes[n].Episode; wave.MaxBytes > 0 {
		return m.wasCongested(n) && wave.Last >= since
	}
	return m.congestedBetween(n, since, math.MaxInt64)
}

// victimMetCongestion tells whether the victim's own packets found a queue deep. A queue of its
// way that was deep at another time did not hold it up.
func (m *analysis) victimMetCongestion(n int) bool {
	node := &m.g.Nodes[n]
	if t, _ := m.g.SwitchReport(node.Node); t.NoFlows {
		return true // nobody can tell
	}
	flow := m.g.Flow(m.detection.Victim)
	return slices.ContainsFunc(m.g.FlowEpochsAt(n), func(p provenance.FlowEpoch) bool {
		if p.Flow != flow || float64(p.Record.Depth)*packetSize < m.linkBytes(n, m.cfg.CongestedAt) {
			return false
		}
		first, last := m.enqueueTimes(p)
		from := max(node.Episode.First, m.packetWindowStart(n))
		return node.Episode.MaxBytes == 0 || last >= from && max(first, from) <= node.Episode.Last
	})
}

// victimDepthShare is what the victim's packets lately found in a queue, of the most that
// they found in any: of several deep queues the deepest held it up.
func (m *analysis) victimDepthShare(n int) float64 {
	if t, _ := m.g.SwitchReport(m.g.Nodes[n].Node); t.NoFlows {
		return 1
	}
	most := 0.0
	for _, o := range m.victimQueues {
		most = max(most, m.victimDepthSum(o))
	}
	if most == 0 {
		return 1
	}
	return m.victimDepthSum(n) / most
}

// explainedShare is the share of the packet's time that a queue can have kept it by itself:
// what was deep for little beside that is no reason where there is another.
func (m *analysis) explainedShare(n int) float64 {
	wave := m.g.Nodes[n].Episode
	if m.detection.Latency <= 0 || wave.MaxBytes == 0 {
		return 1
	}
	return min(1, float64(m.drainTime(n, float64(wave.MaxBytes)))/float64(m.ageAtPoll(n, m.packetWindowStart(n))))
}

// victimDepthSum is the sum of what the victim's packets lately found in a queue.
func (m *analysis) victimDepthSum(n int) (depth float64) {
	flow := m.g.Flow(m.detection.Victim)
	ahead := m.aheadOfVictim(n)
	for _, p := range m.g.FlowEpochsAt(n) {
		if p.Flow == flow && ahead(p) > 0 {
			depth += float64(p.Record.Depth)
		}
	}
	return depth
}

// enqueueTimes is when the first and the last packet of a passage joined the queue.
func (m *analysis) enqueueTimes(p provenance.FlowEpoch) (first, last model.Time) {
	teller, _ := m.g.SwitchReport(m.g.Nodes[p.Node].Node)
	clock := epoch.Header{Snapshot: m.g.Nodes[p.Node].Snapshot, EpochLength: max(teller.Epoch, 1)}
	start := clock.Start(p.Record.Epoch)
	return start.Add(p.Record.First), start.Add(p.Record.Last)
}

// analyzeEpochs matches what the epochs tell, as the paper does, where the wait was over
// when the switches read their state. Pauses that went round a loop in an epoch
// need not have stood all at one time: that is no deadlock, and what it waited
// for outside of itself, or its deepest queue, is named instead.
func (m *analysis) analyzeEpochs() {
	m.atSnapshot, m.waitFor = false, m.epochWaitFor()
	m.waitFor.blocked = func(n int) bool { return m.blockedByPauses(n) && !m.g.Nodes[n].ToHost }
	flow := m.g.Flow(m.detection.Victim)
	var starts []provenance.Edge
	if flow >= 0 {
		for _, e := range provenance.EdgesFrom(m.g.FlowPort, flow) {
			if m.blockedByPauses(e.To) {
				starts = append(starts, provenance.Edge{From: -1, To: e.To, Weight: e.Weight})
			}
		}
	}
	if len(starts) > 0 {
		t := m.waitFor.trace(starts)
		loops := t.cycles
		t.cycles = nil // what they waited for outside is among the ends
		m.concludePauses(t)
		for _, l := range loops {
			if n := m.deepestInCycle(l); n >= 0 && len(m.verdicts) == 0 {
				m.addVerdict(m.backpressureVerdict(terminal{node: n, share: l.share, path: l.entry}))
			}
		}
	}
	for _, n := range m.victimQueues {
		if !m.blockedByPauses(n) && m.congestedInWindow(n) && m.victimMetCongestion(n) && !m.hasVerdictAt(n) {
			m.addContention(n)
		}
	}
	m.rankVerdicts()
}

// deepestInCycle is the queue of a loop that was deepest by itself, or -1. The victim's
// own queue waited for the others, and they for it: it is the last to name.
func (m *analysis) deepestInCycle(l cycle) int {
	own, best, depth := l.entry[0], -1, 0.0
	for _, n := range l.nodes {
		if d := m.g.Nodes[n].Depth; n != own && m.congestedInWindow(n) && (best < 0 || d > depth) {
			best, depth = n, d
		}
	}
	if best < 0 && slices.Contains(l.nodes, own) && m.congestedInWindow(own) {
		return own
	}
	return best
}
