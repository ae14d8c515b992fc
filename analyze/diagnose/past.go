package diagnose

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// pastRelation is who waited for whom in the epochs before the snapshots.
func (m *matching) pastRelation() relation {
	return relation{
		nodes: len(m.g.Nodes),
		waits: func(n int) bool { return m.g.Nodes[n].Paused > 0 && !m.g.Nodes[n].ToHost },
		out:   func(n int) []provenance.Edge { return provenance.Out(m.g.PortPort, n) },
	}
}

// waited tells whether what filled a queue in the epochs was rather its pauses
// than its own traffic: packets found more before them while it was paused. An
// epoch in which it was both paused and overfull by itself does not tell which
// of the two a packet met; the nearer of two causes is the surer one.
func (m *matching) waited(n int) bool {
	node := &m.g.Nodes[n]
	if node.ToHost {
		return node.Paused > 0 // hosts do not pause for nothing
	}
	free := float64(node.Packets-min(node.Paused, node.Packets)) * node.Depth
	return node.Paused > 0 && float64(node.Paused)*node.PausedDepth >= free
}

// packet is the size of most, in bytes: depths are in packets.
const packet = 1000

// wasDeep tells whether a queue was deep in the epochs, without pauses.
func (m *matching) wasDeep(n int) bool {
	return m.g.Nodes[n].Depth*packet >= m.bytesIn(n, m.cfg.Deep)
}

// metDepth tells whether the victim's own packets lately found a queue deep. A
// queue of its way that was deep at another time did not hold it up.
//
// A mean over an epoch is thinned out by packets that met nothing. Where no
// pause can have held the flow up, queues are all that is left, and a part of
// the depth is enough.
func (m *matching) metDepth(n int) bool {
	if t, _ := m.g.Teller(m.g.Nodes[n].Node); t.NoFlows {
		return true // nobody can tell
	}
	flow := m.g.Flow(m.complaint.Victim)
	enough := m.bytesIn(n, m.cfg.Deep)
	if len(provenance.Out(m.g.FlowPort, flow)) == 0 && !m.complaint.Paused {
		enough *= m.cfg.Least
	}
	oldest := m.numberAt(n, m.g.Nodes[n].Snapshot.Add(-epoch.Calm))
	return slices.ContainsFunc(m.g.PassagesAt(n), func(p provenance.Passage) bool {
		free := float64(p.Did.Packets - min(p.Did.Paused, p.Did.Packets))
		return p.Flow == flow && int32(p.Did.Epoch-oldest) >= 0 && free > 0 && float64(p.Did.Depth)*packet >= free*enough
	})
}

// past matches what the epochs tell, as the paper does, where the wait was over
// when the switches read their state. Pauses that went round a loop in an epoch
// need not have stood all at one time: that is no deadlock, and what it waited
// for outside of itself, or its deepest queue, is named instead.
func (m *matching) past() {
	m.now, m.rel = false, m.pastRelation()
	m.rel.waits = func(n int) bool { return m.waited(n) && !m.g.Nodes[n].ToHost }
	flow := m.g.Flow(m.complaint.Victim)
	var starts []provenance.Edge
	if flow >= 0 {
		for _, e := range provenance.Out(m.g.FlowPort, flow) {
			if m.waited(e.To) {
				starts = append(starts, provenance.Edge{From: -1, To: e.To, Weight: e.Weight})
			}
		}
	}
	if len(starts) > 0 {
		t := m.rel.trace(starts)
		loops := t.loops
		t.loops = nil
		for _, l := range loops {
			t.ends = append(t.ends, l.ends...)
		}
		m.pauses(t)
		for _, l := range loops {
			for _, n := range l.nodes {
				if m.wasDeep(n) {
					m.add(m.backpressure(end{node: n, blame: l.blame / float64(len(l.nodes)), via: l.entry}))
				}
			}
		}
	}
	for _, n := range m.victim {
		if !m.waited(n) && m.wasDeep(n) && m.metDepth(n) && !m.named(n) {
			m.contention(n)
		}
	}
	m.rank()
}
