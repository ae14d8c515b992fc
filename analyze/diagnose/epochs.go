package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// epochWaitFor returns the wait-for graph of the epochs before the snapshots.
func (m *analysis) epochWaitFor() waitForGraph {
	return waitForGraph{
		nodes:    len(m.g.Nodes),
		blocked:  func(n int) bool { return !m.g.Nodes[n].ToHost && m.pausesHeldBacklog(n) },
		blockers: func(n int) []provenance.Edge { return provenance.EdgesFrom(m.g.PortPort, n) },
	}
}

// pausesHeldBacklog reports whether a queue may have held enough during its
// pauses in the reported epochs to block queues upstream: a pause that few
// packets met, and that found few packets, blocked none. A queue that fills
// while it is paused holds twice in the end what its packets find on average.
func (m *analysis) pausesHeldBacklog(n int) bool {
	node := &m.g.Nodes[n]
	most := node.PausedDepth + min(node.PausedDepth, float64(node.Paused))
	return node.Paused > 0 && most*packetSize >= m.linkBytes(n, m.cfg.CongestedAt)
}

// packetWindowStart returns the earliest time at which the victim's packet can
// have been in a queue, on its switch's clock: the poll takes the packet's
// path, and no longer than the packet did. A packet that is in flight waited
// until at most PauseBurstGap ago. If its latency is unknown, everything
// reported counts.
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

// relevantSince returns from when on the state of a queue can have delayed the
// packet. Off the packet's path that is less exact.
func (m *analysis) relevantSince(n int) model.Time {
	if slices.Contains(m.victimQueues, n) {
		return m.packetWindowStart(n)
	}
	return m.packetWindowStart(n).Add(-m.snapshotSkew)
}

// pausedInWindow reports whether a queue was paused while it can have delayed
// the packet.
func (m *analysis) pausedInWindow(n int) bool {
	node := &m.g.Nodes[n]
	if node.Pauses.Pauses == 0 {
		return node.Paused > 0 // only epochs were reported
	}
	return node.PausedAtSnapshot() || node.Pauses.LastEnd >= m.relevantSince(n)
}

// blockedByPauses reports whether a queue filled because of its pauses rather
// than its own traffic: it was not congested when they began, or packets found
// more ahead of them while it was paused. An epoch in which it was both paused
// and congested by itself does not say which of the two a packet met; the
// nearer of two causes is the more certain one.
func (m *analysis) blockedByPauses(n int) bool {
	node := &m.g.Nodes[n]
	switch p := &node.Pauses; {
	case !m.pausedInWindow(n):
		return false
	case node.ToHost:
		return true // hosts do not pause without a reason
	case m.pausedBriefly(n), m.pauseIsMinor(n):
		return false
	case p.Pauses > 0 && !m.backlogExceedsPauses(n):
		return true
	}
	free := float64(node.Packets-min(node.Paused, node.Packets)) * node.Depth
	return node.Paused > 0 && float64(node.Paused)*node.PausedDepth >= free
}

// singlePause returns how long a queue's only pause was; false if there were
// more, or it is paused now.
func (m *analysis) singlePause(n int) (time.Duration, bool) {
	p := &m.g.Nodes[n].Pauses
	return p.LastEnd.Sub(p.LastStart), p.Pauses > 0 && !m.g.Nodes[n].PausedAtSnapshot() && p.BurstStart == p.LastStart
}

// pausedBriefly reports whether a queue was paused only once, for less than
// CongestedAt.
func (m *analysis) pausedBriefly(n int) bool {
	lasted, ok := m.singlePause(n)
	return ok && lasted < m.cfg.CongestedAt
}

// pauseIsMinor reports whether a queue was paused only once, for a fraction of
// the time that the backlog takes which the victim found in another queue of
// its path.
func (m *analysis) pauseIsMinor(n int) bool {
	lasted, ok := m.singlePause(n)
	return ok && slices.ContainsFunc(m.victimQueues, func(o int) bool {
		most := m.drainTime(o, m.cfg.MinCauseShare*float64(m.g.Nodes[o].Episode.MaxBytes))
		return o != n && lasted < most && m.congestedInWindow(o) && m.victimMetCongestion(o)
	})
}

// packetSize is the assumed size of packets, in bytes: depths are in packets.
const packetSize = 1000

// wasCongested reports whether a queue was congested by itself in the reported
// epochs.
func (m *analysis) wasCongested(n int) bool {
	node := &m.g.Nodes[n]
	return max(node.Depth*packetSize, float64(node.Episode.MaxBytes)) >= m.linkBytes(n, m.cfg.CongestedAt)
}

// congestedBetween reports whether a queue was congested by itself, on average
// over one of the epochs in which flows passed it between two times.
func (m *analysis) congestedBetween(n int, from, to model.Time) bool {
	if t, _ := m.g.SwitchReport(m.g.Nodes[n].Node); t.NoFlows {
		return m.wasCongested(n) // it reports no flows, so its epochs cannot be distinguished
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

// congestedInWindow reports whether a queue was congested by itself while it
// can have delayed the packet, or what the packet waited for.
func (m *analysis) congestedInWindow(n int) bool {
	since := m.relevantSince(n)
	if episode := &m.g.Nodes[n].Episode; episode.MaxBytes > 0 {
		return m.wasCongested(n) && episode.Last >= since
	}
	return m.congestedBetween(n, since, math.MaxInt64)
}

// victimMetCongestion reports whether the victim's own packets found a queue
// congested. A queue of its path that was congested at another time did not
// delay it.
func (m *analysis) victimMetCongestion(n int) bool {
	node := &m.g.Nodes[n]
	if t, _ := m.g.SwitchReport(node.Node); t.NoFlows {
		return true // unknown: it reports no flows
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

// victimDepthShare returns the depth that the victim's packets found in a
// queue, relative to the most that they found in any: of several congested
// queues the deepest delayed it most.
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

// explainedShare returns the share of the packet's latency that a queue can
// explain by itself: a short congestion episode is no cause where there is a
// longer one.
func (m *analysis) explainedShare(n int) float64 {
	episode := m.g.Nodes[n].Episode
	if m.detection.Latency <= 0 || episode.MaxBytes == 0 {
		return 1
	}
	return min(1, float64(m.drainTime(n, float64(episode.MaxBytes)))/float64(m.ageAtPoll(n, m.packetWindowStart(n))))
}

// victimDepthSum returns the sum of the depths that the victim's packets found
// in a queue since the slow packet was sent.
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

// enqueueTimes returns when the first and the last packet of a flow's epoch
// record joined the queue.
func (m *analysis) enqueueTimes(p provenance.FlowEpoch) (first, last model.Time) {
	teller, _ := m.g.SwitchReport(m.g.Nodes[p.Node].Node)
	clock := epoch.Header{Snapshot: m.g.Nodes[p.Node].Snapshot, EpochLength: max(teller.Epoch, 1)}
	start := clock.Start(p.Record.Epoch)
	return start.Add(p.Record.First), start.Add(p.Record.Last)
}

// analyzeEpochs diagnoses from the epochs, as the paper does, where the wait
// was over when the switches took their snapshots. Pauses that went along a
// cycle within an epoch need not have coincided: that is no deadlock, and what
// the cycle waited for outside, or its deepest queue, is named instead.
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
		cycles := t.cycles
		t.cycles = nil // what they waited for outside is among the terminals
		m.concludePauses(t)
		for _, c := range cycles {
			if n := m.deepestInCycle(c); n >= 0 && len(m.verdicts) == 0 {
				m.addVerdict(m.backpressureVerdict(terminal{node: n, share: c.share, path: c.entry}))
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

// deepestInCycle returns the queue of a cycle that was deepest by itself, or
// -1. The victim's own queue waited for the others, and they for it: it is
// named last.
func (m *analysis) deepestInCycle(c cycle) int {
	own, best, depth := c.entry[0], -1, 0.0
	for _, n := range c.nodes {
		if d := m.g.Nodes[n].Depth; n != own && m.congestedInWindow(n) && (best < 0 || d > depth) {
			best, depth = n, d
		}
	}
	if best < 0 && slices.Contains(c.nodes, own) && m.congestedInWindow(own) {
		return own
	}
	return best
}
