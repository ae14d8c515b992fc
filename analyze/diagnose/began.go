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

// ago is how long before its switch was asked something was. One poll asks all
// within microseconds, whatever their clocks say: times of different switches
// are compared by this alone.
func (m *matching) ago(n int, t model.Time) time.Duration { return m.g.Nodes[n].Asked.Sub(t) }

// aged is how long something had lasted when its switch read its state. That is
// older where it was read for another complaint.
func (m *matching) aged(n int, t model.Time) time.Duration { return m.g.Nodes[n].Snapshot.Sub(t) }

// closing is how long ago a loop closed: when the last of its queues stopped.
func (m *matching) closing(loop []int) time.Duration {
	closed := m.ago(loop[0], m.g.Nodes[loop[0]].Pauses.LastStart)
	for _, n := range loop {
		closed = min(closed, m.ago(n, m.g.Nodes[n].Pauses.LastStart))
	}
	return closed
}

// lastStopped returns the queues of a loop that still sent shortly before it
// closed, and were then deep by themselves. One that stood already was waiting
// for the others, and so was one that nothing joined between its pauses: it
// began nothing.
func (m *matching) lastStopped(loop []int) (list []int) {
	closed := m.closing(loop)
	for _, n := range loop {
		node := &m.g.Nodes[n]
		sent := m.ago(n, node.Pauses.LastStart) <= closed+leadUp-m.apart
		joined := node.Wave.MaxBytes == 0 || m.ago(n, node.Wave.Last) <= closed+leadUp-m.apart
		if sent && joined {
			list = append(list, n)
		}
	}
	return list
}

// pausedBefore tells whether a queue was paused in the lead-up to something so
// long ago. What stopped since then cannot have begun it, and what was let go
// long before has not.
func (m *matching) pausedBefore(n int, closed time.Duration) bool {
	p := &m.g.Nodes[n].Pauses
	if p.Pauses == 0 {
		return false
	}
	since := closed + leadUp
	ended := m.ago(n, p.LastEnd) // of a pause that stands: the one before it
	if p.Pauses > 1 || !m.g.Nodes[n].Stands() {
		if ended >= closed-m.apart && ended <= since {
			return true
		}
	}
	if m.ago(n, p.BurstStart) < closed-m.apart {
		return m.metBefore(n, closed)
	}
	return m.g.Nodes[n].Stands() || ended <= since
}

// metBefore tells whether packets met a pause in the lead-up to something so long
// ago, of a queue that had a calm since then: a switch keeps the times of the
// pauses after a calm alone, but of each flow in an epoch when its packets came.
func (m *matching) metBefore(n int, closed time.Duration) bool {
	from, to := m.lead(n, closed)
	return slices.ContainsFunc(m.g.PassagesAt(n), func(p provenance.Passage) bool {
		_, last := m.joined(p)
		return p.Did.Paused > 0 && m.between(p, from, to) && last < m.g.Nodes[n].Pauses.BurstStart
	})
}

// deepBefore tells whether a queue was deep by itself in the lead-up to
// something so long ago, and not for a moment only, of which nobody can tell what
// else it met. Where it was once more since then, the epoch of that time must
// tell.
func (m *matching) deepBefore(n int, closed time.Duration) bool {
	from, to := m.lead(n, closed)
	if wave := &m.g.Nodes[n].Wave; wave.MaxBytes > 0 && wave.First <= to {
		return wave.Last >= from && wave.Last.Sub(wave.First) >= m.apart && float64(wave.MaxBytes) >= m.bytesIn(n, m.cfg.Deep)
	}
	return m.deepIn(n, from, to)
}

// deepSince tells whether a queue became deep only after something so long ago.
func (m *matching) deepSince(n int, closed time.Duration) bool {
	wave := &m.g.Nodes[n].Wave
	return wave.MaxBytes > 0 && m.ago(n, wave.First) < closed-m.apart
}

// lead is the time of a queue's switch in which something so long ago came
// about.
func (m *matching) lead(n int, closed time.Duration) (from, to model.Time) {
	to = m.g.Nodes[n].Asked.Add(-closed)
	return to.Add(-leadUp), to
}

// beginners returns the flows that overfilled a queue in the lead-up to
// something so long ago; none if no epoch of that time is told. What is in it
// now need not be theirs.
func (m *matching) beginners(n int, closed time.Duration) []Culprit {
	from, to := m.lead(n, closed)
	return m.list(m.waitedIn(n, func(p provenance.Passage) float64 { return m.part(p, from, to) }))
}

// pausedByHost tells whether a host paused a queue, as far as is told.
func (m *matching) pausedByHost(n int) bool {
	node := &m.g.Nodes[n]
	return node.ToHost && (node.Pauses.Pauses > 0 || node.Paused > 0 || node.PauseFrames > 0)
}

// began looks in the epochs for what made a loop wait first, when nothing of it
// is left at the snapshots: along queues that were paused shortly before the
// loop closed.
func (m *matching) began(loop []int) end {
	best := end{node: -1}
	depth := 0.0
	closed := m.closing(loop)
	past := m.pastRelation()
	waits := past.waits
	past.waits = func(n int) bool { return waits(n) && m.pausedBefore(n, closed) }
	past.out = func(n int) []provenance.Edge {
		return slices.DeleteFunc(slices.Clone(provenance.Out(m.g.PortPort, n)), func(e provenance.Edge) bool { return m.overBefore(e.To, n, closed) })
	}
	for _, e := range past.beyond(loop) {
		node := &m.g.Nodes[e.node]
		switch {
		case m.pausedByHost(e.node) && m.pausedBefore(e.node, closed):
			if m.stoppedBy(loop, e) {
				return e
			}
		case m.filledBefore(e.node, closed) && !m.later(e) && node.Depth > depth:
			best, depth = e, node.Depth
		}
	}
	return best
}

// filledBefore tells whether a queue was overfull by itself in the lead-up to
// something so long ago, and not paused as well, in the epochs or after it was
// last deep: then what it waited for is not told any more.
func (m *matching) filledBefore(n int, closed time.Duration) bool {
	node := &m.g.Nodes[n]
	waited := node.Paused > 0 || node.Pauses.LastEnd > node.Wave.Last && m.pausedBefore(n, closed)
	return !waited && m.wasDeep(n) && m.deepBefore(n, closed)
}

// overBefore tells whether all that is told of a queue was over when the pauses of
// another began, of which that led up to something so long ago: it was not the
// reason for them.
func (m *matching) overBefore(n, other int, closed time.Duration) bool {
	first := m.ago(other, m.g.Nodes[other].Pauses.BurstStart)
	node := &m.g.Nodes[n]
	if node.Stands() || first < closed-m.apart || node.Pauses.Pauses == 0 && node.Wave.MaxBytes == 0 {
		return false
	}
	return m.ago(n, max(node.Pauses.LastEnd, node.Wave.Last)) > first+m.apart
}

// stoppedBy tells whether a host's pauses may have stopped a loop. One pause that
// stands keeps all that came since: where none of it is the loop's, nothing of
// the loop has met it.
func (m *matching) stoppedBy(loop []int, e end) bool {
	if node := &m.g.Nodes[e.node]; !node.Stands() || node.Pauses.BurstStart != node.Pauses.LastStart {
		return true
	}
	return slices.ContainsFunc(m.g.Held, func(h provenance.Edge) bool {
		return h.To == e.node && (slices.Contains(loop, h.From) || slices.Contains(e.via, h.From))
	})
}
