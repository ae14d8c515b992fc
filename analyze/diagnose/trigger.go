package diagnose

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// leadUp is how long before a cycle closed its trigger must have been there.
const leadUp = 2 * epoch.PauseBurstGap

// ageAtPoll returns how long before its switch was polled something happened at
// a queue. One poll reaches all switches within microseconds, whatever their
// clocks say: times of different switches are compared by this age alone.
func (m *analysis) ageAtPoll(n int, t model.Time) time.Duration { return m.g.Nodes[n].PolledAt.Sub(t) }

// ageAtSnapshot returns how long something had lasted when the switch of a
// queue took its snapshot. The snapshot is older than the poll where it was
// taken for another detection.
func (m *analysis) ageAtSnapshot(n int, t model.Time) time.Duration {
	return m.g.Nodes[n].Snapshot.Sub(t)
}

// cycleAge returns how long before the poll a cycle closed: when the last of
// its queues was paused.
func (m *analysis) cycleAge(cycle []int) time.Duration {
	closed := m.ageAtPoll(cycle[0], m.g.Nodes[cycle[0]].Pauses.LastStart)
	for _, n := range cycle {
		closed = min(closed, m.ageAtPoll(n, m.g.Nodes[n].Pauses.LastStart))
	}
	return closed
}

// sendingBeforeClose returns the queues of a cycle that still sent in the
// lead-up to its closing, and were congested by themselves then. A queue that
// was paused already waited for the others, and so did one that no packet
// joined between its pauses: neither is the trigger.
func (m *analysis) sendingBeforeClose(cycle []int) (list []int) {
	closed := m.cycleAge(cycle)
	for _, n := range cycle {
		node := &m.g.Nodes[n]
		sent := m.ageAtPoll(n, node.Pauses.LastStart) <= closed+leadUp-m.snapshotSkew
		joined := node.Episode.MaxBytes == 0 || m.ageAtPoll(n, node.Episode.Last) <= closed+leadUp-m.snapshotSkew
		if sent && joined {
			list = append(list, n)
		}
	}
	return list
}

// pausedInLeadUp reports whether a queue was paused in the lead-up to a cycle
// that closed at an age. What was paused after that cannot be the trigger, and
// what was resumed long before is not.
func (m *analysis) pausedInLeadUp(n int, closed time.Duration) bool {
	p := &m.g.Nodes[n].Pauses
	if p.Pauses == 0 {
		return false
	}
	since := closed + leadUp
	ended := m.ageAtPoll(n, p.LastEnd) // of a queue that is paused now: the pause before
	if p.Pauses > 1 || !m.g.Nodes[n].PausedAtSnapshot() {
		if ended >= closed-m.snapshotSkew && ended <= since {
			return true
		}
	}
	if m.ageAtPoll(n, p.BurstStart) < closed-m.snapshotSkew {
		return m.flowsPausedInLeadUp(n, closed)
	}
	return m.g.Nodes[n].PausedAtSnapshot() || ended <= since
}

// flowsPausedInLeadUp reports whether packets met a pause in the lead-up to a
// cycle that closed at an age, at a queue that had a PauseBurstGap since then:
// a switch keeps the times of the pauses of the last burst only, but of each
// flow in an epoch when its packets came.
func (m *analysis) flowsPausedInLeadUp(n int, closed time.Duration) bool {
	from, to := m.leadUpWindow(n, closed)
	return slices.ContainsFunc(m.g.FlowEpochsAt(n), func(p provenance.FlowEpoch) bool {
		_, last := m.enqueueTimes(p)
		return p.Record.Paused > 0 && m.passedBetween(p, from, to) && last < m.g.Nodes[n].Pauses.BurstStart
	})
}

// congestedInLeadUp reports whether a queue was congested by itself in the
// lead-up to a cycle that closed at an age, for at least snapshotSkew: the
// evidence does not say what else a shorter episode coincided with. If the
// queue was congested once more since then, the epoch of that time decides.
func (m *analysis) congestedInLeadUp(n int, closed time.Duration) bool {
	from, to := m.leadUpWindow(n, closed)
	if episode := &m.g.Nodes[n].Episode; episode.MaxBytes > 0 && episode.First <= to {
		long := episode.Last.Sub(episode.First) >= m.snapshotSkew
		return episode.Last >= from && long && float64(episode.MaxBytes) >= m.linkBytes(n, m.cfg.CongestedAt)
	}
	return m.congestedBetween(n, from, to)
}

// congestedAfterClose reports whether a queue became congested only after a
// cycle that closed at an age.
func (m *analysis) congestedAfterClose(n int, closed time.Duration) bool {
	episode := &m.g.Nodes[n].Episode
	return episode.MaxBytes > 0 && m.ageAtPoll(n, episode.First) < closed-m.snapshotSkew
}

// leadUpWindow returns the lead-up to a cycle that closed at an age, on the
// clock of a queue's switch.
func (m *analysis) leadUpWindow(n int, closed time.Duration) (from, to model.Time) {
	to = m.g.Nodes[n].PolledAt.Add(-closed)
	return to.Add(-leadUp), to
}

// leadUpCulprits returns the flows that congested a queue in the lead-up to a
// cycle that closed at an age; none if no epoch of that time was reported. What
// is in the queue now need not be theirs.
func (m *analysis) leadUpCulprits(n int, closed time.Duration) []Culprit {
	from, to := m.leadUpWindow(n, closed)
	return m.culpritList(m.weightedBytesByFlow(n,
		func(p provenance.FlowEpoch) float64 { return m.fractionBetween(p, from, to) }))
}

// pausedByHost reports whether a host paused a queue, as far as was reported.
func (m *analysis) pausedByHost(n int) bool {
	node := &m.g.Nodes[n]
	return node.ToHost && (node.Pauses.Pauses > 0 || node.Paused > 0 || node.PauseFrames > 0)
}

// findTrigger finds in the epochs what blocked a cycle first, when nothing of
// it is left at the snapshots: it follows queues that were paused shortly
// before the cycle closed.
func (m *analysis) findTrigger(cycle []int) terminal {
	best := terminal{node: -1}
	depth := 0.0
	closed := m.cycleAge(cycle)
	waitFor := m.epochWaitFor()
	blocked := waitFor.blocked
	waitFor.blocked = func(n int) bool { return blocked(n) && m.pausedInLeadUp(n, closed) }
	waitFor.blockers = func(n int) []provenance.Edge {
		return slices.DeleteFunc(slices.Clone(provenance.EdgesFrom(m.g.PortPort, n)), func(e provenance.Edge) bool {
			return m.endedBefore(e.To, n, closed)
		})
	}
	for _, e := range waitFor.terminalsOutside(cycle) {
		node := &m.g.Nodes[e.node]
		switch {
		case m.pausedByHost(e.node) && m.pausedInLeadUp(e.node, closed):
			if m.mayHavePausedCycle(cycle, e) {
				return e
			}
		case m.selfCongestedInLeadUp(e.node, closed) && !m.causeTooLate(e) && node.Depth > depth:
			best, depth = e, node.Depth
		}
	}
	return best
}

// selfCongestedInLeadUp reports whether a queue was congested by itself in the
// lead-up to a cycle that closed at an age, and was not paused as well, in the
// epochs or after its last congestion episode: otherwise what it waited for is
// not in the reports any more.
func (m *analysis) selfCongestedInLeadUp(n int, closed time.Duration) bool {
	node := &m.g.Nodes[n]
	waited := node.Paused > 0 || node.Pauses.LastEnd > node.Episode.Last && m.pausedInLeadUp(n, closed)
	return !waited && m.wasCongested(n) && m.congestedInLeadUp(n, closed)
}

// endedBefore reports whether a queue's last pause and congestion episode ended
// before another queue was first paused, if those pauses led up to a cycle that
// closed at an age: then the queue did not cause them.
func (m *analysis) endedBefore(n, other int, closed time.Duration) bool {
	first := m.ageAtPoll(other, m.g.Nodes[other].Pauses.BurstStart)
	node := &m.g.Nodes[n]
	if node.PausedAtSnapshot() || first < closed-m.snapshotSkew || node.Pauses.Pauses == 0 && node.Episode.MaxBytes == 0 {
		return false
	}
	return m.ageAtPoll(n, max(node.Pauses.LastEnd, node.Episode.Last)) > first+m.snapshotSkew
}

// mayHavePausedCycle reports whether a host's pauses may have paused a cycle. A
// single pause that lasts keeps all packets that came since: if none of them is
// the cycle's, no packet of the cycle has met the pause.
func (m *analysis) mayHavePausedCycle(cycle []int, e terminal) bool {
	if node := &m.g.Nodes[e.node]; !node.PausedAtSnapshot() || node.Pauses.BurstStart != node.Pauses.LastStart {
		return true
	}
	return slices.ContainsFunc(m.g.Held, func(h provenance.Edge) bool {
		return h.To == e.node && (slices.Contains(cycle, h.From) || slices.Contains(e.path, h.From))
	})
}
