package diagnose

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// leadUp is how long before a loop closed what began it must have been there.
const leadUp = 2 * epoch.PauseBurstGap

// ageAtPoll is how long before its switch was asked something was. One poll asks all
// within microseconds, whatever their clocks say: times of different switches
// are compared by this alone.
func (m *analysis) ageAtPoll(n int, t model.Time) time.Duration { return m.g.Nodes[n].PolledAt.Sub(t) }

// ageAtSnapshot is how long something had lasted when its switch read its state. That is
// older where it was read for another complaint.
func (m *analysis) ageAtSnapshot(n int, t model.Time) time.Duration {
	return m.g.Nodes[n].Snapshot.Sub(t)
}

// cycleAge is how long ago a loop closed: when the last of its queues stopped.
func (m *analysis) cycleAge(loop []int) time.Duration {
	closed := m.ageAtPoll(loop[0], m.g.Nodes[loop[0]].Pauses.LastStart)
	for _, n := range loop {
		closed = min(closed, m.ageAtPoll(n, m.g.Nodes[n].Pauses.LastStart))
	}
	return closed
}

// sendingBeforeClose returns the queues of a loop that still sent shortly before it
// closed, and were then deep by themselves. One that stood already was waiting
// for the others, and so was one that nothing joined between its pauses: it
// findTrigger nothing.
func (m *analysis) sendingBeforeClose(loop []int) (list []int) {
	closed := m.cycleAge(loop)
	for _, n := range loop {
		node := &m.g.Nodes[n]
		sent := m.ageAtPoll(n, node.Pauses.LastStart) <= closed+leadUp-m.snapshotSkew
		joined := node.Episode.MaxBytes == 0 || m.ageAtPoll(n, node.Episode.Last) <= closed+leadUp-m.snapshotSkew
		if sent && joined {
			list = append(list, n)
		}
	}
	return list
}

// pausedInLeadUp tells whether a queue was paused in the lead-up to something so
// long ago. What stopped since then cannot have begun it, and what was let go
// long before has not.
func (m *analysis) pausedInLeadUp(n int, closed time.Duration) bool {
	p := &m.g.Nodes[n].Pauses
	if p.Pauses == 0 {
		return false
	}
	since := closed + leadUp
	ended := m.ageAtPoll(n, p.LastEnd) // index a pause that stands: the one before it
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

// flowsPausedInLeadUp tells whether packets met a pause in the lead-up to something so long
// ageAtPoll, of a queue that had a calm since then: a switch keeps the times of the
// concludePauses after a calm alone, but of each flow in an epoch when its packets came.
func (m *analysis) flowsPausedInLeadUp(n int, closed time.Duration) bool {
	from, to := m.leadUpWindow(n, closed)
	return slices.ContainsFunc(m.g.FlowEpochsAt(n), func(p provenance.FlowEpoch) bool {
		_, last := m.enqueueTimes(p)
		return p.Record.Paused > 0 && m.passedBetween(p, from, to) && last < m.g.Nodes[n].Pauses.BurstStart
	})
}

// congestedInLeadUp tells whether a queue was deep by itself in the lead-up to
// something so long ago, and not for a moment only, of which nobody can tell what
// else it met. Where it was once more since then, the epoch of that time must
// tell.
func (m *analysis) congestedInLeadUp(n int, closed time.Duration) bool {
	from, to := m.leadUpWindow(n, closed)
	if wave := &m.g.Nodes[n].Episode; wave.MaxBytes > 0 && wave.First <= to {
		return wave.Last >= from && wave.Last.Sub(wave.First) >= m.snapshotSkew && float64(wave.MaxBytes) >= m.linkBytes(n, m.cfg.CongestedAt)
	}
	return m.congestedBetween(n, from, to)
}

// congestedAfterClose tells whether a queue became deep only after something so long ago.
func (m *analysis) congestedAfterClose(n int, closed time.Duration) bool {
	wave := &m.g.Nodes[n].Episode
	return wave.MaxBytes > 0 && m.ageAtPoll(n, wave.First) < closed-m.snapshotSkew
}

// leadUpWindow is the time of a queue's switch in which something so long ago came
// about.
func (m *analysis) leadUpWindow(n int, closed time.Duration) (from, to model.Time) {
	to = m.g.Nodes[n].PolledAt.Add(-closed)
	return to.Add(-leadUp), to
}

// leadUpCulprits returns the flows that overfilled a queue in the lead-up to
// something so long ago; none if no epoch of that time is told. What is in it
// atSnapshot need not be theirs.
func (m *analysis) leadUpCulprits(n int, closed time.Duration) []Culprit {
	from, to := m.leadUpWindow(n, closed)
	return m.culpritList(m.weightedBytesByFlow(n, func(p provenance.FlowEpoch) float64 { return m.fractionBetween(p, from, to) }))
}

// pausedByHost tells whether a host paused a queue, as far as is told.
func (m *analysis) pausedByHost(n int) bool {
	node := &m.g.Nodes[n]
	return node.ToHost && (node.Pauses.Pauses > 0 || node.Paused > 0 || node.PauseFrames > 0)
}

// findTrigger looks in the epochs for what made a loop wait first, when nothing of it
// is left at the snapshots: along queues that were paused shortly before the
// loop closed.
func (m *analysis) findTrigger(loop []int) terminal {
	best := terminal{node: -1}
	depth := 0.0
	closed := m.cycleAge(loop)
	past := m.epochWaitFor()
	waits := past.blocked
	past.blocked = func(n int) bool { return waits(n) && m.pausedInLeadUp(n, closed) }
	past.blockers = func(n int) []provenance.Edge {
		return slices.DeleteFunc(slices.Clone(provenance.EdgesFrom(m.g.PortPort, n)), func(e provenance.Edge) bool { return m.endedBefore(e.To, n, closed) })
	}
	for _, e := range past.terminalsOutside(loop) {
		node := &m.g.Nodes[e.node]
		switch {
		case m.pausedByHost(e.node) && m.pausedInLeadUp(e.node, closed):
			if m.mayHavePausedCycle(loop, e) {
				return e
			}
		case m.selfCongestedInLeadUp(e.node, closed) && !m.causeTooLate(e) && node.Depth > depth:
			best, depth = e, node.Depth
		}
	}
	return best
}

// selfCongestedInLeadUp tells whether a queue was overfull by itself in the lead-up to
// something so long ago, and not paused as well, in the epochs or after it was
// last deep: then what it waited for is not told any more.
func (m *analysis) selfCongestedInLeadUp(n int, closed time.Duration) bool {
	node := &m.g.Nodes[n]
	waited := node.Paused > 0 || node.Pauses.LastEnd > node.Episode.Last && m.pausedInLeadUp(n, closed)
	return !waited && m.wasCongested(n) && m.congestedInLeadUp(n, closed)
}

// endedBefore tells whether all that is told of a queue was over when the pauses of
// another began, of which that led up to something so long ago: it was not the
// reason for them.
func (m *analysis) endedBefore(n, other int, closed time.Duration) bool {
	first := m.ageAtPoll(other, m.g.Nodes[other].Pauses.BurstStart)
	node := &m.g.Nodes[n]
	if node.PausedAtSnapshot() || first < closed-m.snapshotSkew || node.Pauses.Pauses == 0 && node.Episode.MaxBytes == 0 {
		return false
	}
	return m.ageAtPoll(n, max(node.Pauses.LastEnd, node.Episode.Last)) > first+m.snapshotSkew
}

// mayHavePausedCycle tells whether a host's pauses may have stopped a loop. One pause that
// stands keeps all that came since: where none of it is the loop's, nothing of
// the loop has met it.
func (m *analysis) mayHavePausedCycle(loop []int, e terminal) bool {
	if node := &m.g.Nodes[e.node]; !node.PausedAtSnapshot() || node.Pauses.BurstStart != node.Pauses.LastStart {
		return true
	}
	return slices.ContainsFunc(m.g.Held, func(h provenance.Edge) bool {
		return h.To == e.node && (slices.Contains(loop, h.From) || slices.Contains(e.path, h.From))
	})
}
