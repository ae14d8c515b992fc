package diagnose

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
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

// deepIn is wasDeep in one of some epochs.
func (m *matching) deepIn(n int, first, last uint32) bool {
	if t, _ := m.g.Teller(m.g.Nodes[n].Node); t.NoFlows {
		return m.wasDeep(n) // its epochs are not told apart
	}
	depth, packets := map[uint32]float64{}, map[uint32]float64{}
	for _, p := range m.g.PassagesAt(n) {
		if within(p.Did.Epoch, first, last) {
			depth[p.Did.Epoch] += float64(p.Did.Depth)
			packets[p.Did.Epoch] += float64(p.Did.Packets - min(p.Did.Paused, p.Did.Packets))
		}
	}
	for e := range depth {
		if packets[e] > 0 && depth[e]*packet >= packets[e]*m.bytesIn(n, m.cfg.Deep) {
			return true
		}
	}
	return false
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
	first, last := m.recent(n)
	return slices.ContainsFunc(m.g.PassagesAt(n), func(p provenance.Passage) bool {
		free := float64(p.Did.Packets - min(p.Did.Paused, p.Did.Packets))
		return p.Flow == flow && within(p.Did.Epoch, first, last) && free > 0 && float64(p.Did.Depth)*packet >= free*enough
	})
}

// share is what the victim's packets lately found in a queue, of the most that
// they found in any: of several deep queues the deepest held it up.
func (m *matching) share(n int) float64 {
	if t, _ := m.g.Teller(m.g.Nodes[n].Node); t.NoFlows {
		return 1
	}
	most := 0.0
	for _, o := range m.victim {
		most = max(most, m.foundBy(o))
	}
	if most == 0 {
		return 1
	}
	return m.foundBy(n) / most
}

// foundBy is the sum of what the victim's packets lately found in a queue.
func (m *matching) foundBy(n int) (depth float64) {
	flow := m.g.Flow(m.complaint.Victim)
	first, last := m.recent(n)
	for _, p := range m.g.PassagesAt(n) {
		if p.Flow == flow && within(p.Did.Epoch, first, last) {
			depth += float64(p.Did.Depth)
		}
	}
	return depth
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
		first, last := m.recent(n)
		if !m.waited(n) && m.deepIn(n, first, last) && m.metDepth(n) && !m.named(n) {
			m.contention(n)
		}
	}
	m.rank()
}
