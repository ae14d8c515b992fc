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

// matching is the work on one graph.
type matching struct {
	*Diagnoser
	complaint Complaint
	evidence  *provenance.Evidence
	g         *provenance.Graph
	routes    *topo.Routes
	now       bool // the relation at hand is that of the snapshots
	atHost    bool // waiting begins in the victim's host, whose port is paused
	rel       relation

	victim   []int         // queues on the victim's way
	holding  []int         // of them: those that hold packets of it, or may
	stopped  map[int][]int // by queue: paused ones that it holds packets of
	gaps     []string
	verdicts []Verdict
}

// findVictim finds the victim's queues: where its packets wait or went. A
// switch that keeps no flows is taken to follow its intended routes.
func (m *matching) findVictim() {
	flow := m.g.Flow(m.complaint.Victim)
	for i := range m.g.Waitings {
		if w := &m.g.Waitings[i]; w.Flow == flow {
			m.holding = append(m.holding, w.Node)
		}
	}
	m.victim = slices.Clone(m.holding)
	for i := range m.g.Passages {
		if p := &m.g.Passages[i]; p.Flow == flow {
			m.victim = append(m.victim, p.Node)
		}
	}
	slices.Sort(m.victim)
	m.holding, m.victim = slices.Compact(m.holding), slices.Compact(m.victim)
	source, ok := m.fabric.ByAddr(m.complaint.Victim.Src)
	if !ok {
		return
	}
	m.onTheWay(source)
	for _, n := range m.victim {
		m.onTheWay(m.g.Nodes[n].Peer.Node)
	}
	hops, _ := m.routes.Path(m.complaint.Victim, source)
	for _, h := range hops {
		t, _ := m.g.Teller(h.Node)
		for class := range model.Priority(8) {
			n := m.g.Node(provenance.Queue{Port: model.Port{Node: h.Node, Port: h.Out}, Priority: class})
			if n >= 0 && t.NoFlows && !slices.Contains(m.victim, n) {
				m.victim = append(m.victim, n)
				if m.g.Nodes[n].State.Queued > 0 {
					m.holding = append(m.holding, n)
				}
			}
		}
	}
}

// onTheWay notes if a node that must have been asked has not answered: the
// switch of the victim's host, or one that it was seen on its way to.
func (m *matching) onTheWay(id model.NodeID) {
	if node := m.fabric.Node(id); !node.Role.IsSwitch() {
		if len(node.Ports) != 1 || id != m.source() {
			return
		}
		id = node.Ports[0].Peer.Node
	}
	if _, told := m.g.Teller(id); !told {
		m.gaps = append(m.gaps, fmt.Sprintf("%s, on the flow's way, did not answer", nodeName(m.fabric, id)))
	}
}

// source is the victim's host.
func (m *matching) source() model.NodeID {
	id, _ := m.fabric.ByAddr(m.complaint.Victim.Src)
	return id
}

// name prints a queue's port.
func (m *matching) name(n int) string { return portName(m.fabric, m.g.Nodes[n].Port).String() }

// deep tells whether a queue holds enough to make others wait.
func (m *matching) deep(n int) bool {
	return float64(m.g.Nodes[n].State.Queued) >= m.bytesIn(n, m.cfg.Deep)
}

// bytesIn is what a queue's link carries in a time.
func (m *matching) bytesIn(n int, d time.Duration) float64 {
	p := m.fabric.Port(m.g.Nodes[n].Port)
	rate := m.fabric.Links()[p.Link].Rate
	return float64(rate) / 8 * d.Seconds()
}

// stood tells whether the queues of a loop were all paused at one instant.
// Snapshots are apart: where pauses go round, each queue may be paused when it
// is looked at, and the circle never was.
func (m *matching) stood(loop cycle) bool {
	return !slices.ContainsFunc(loop.nodes, func(n int) bool { return m.aged(n, m.g.Nodes[n].Pauses.LastStart) < m.apart })
}

// lately tells whether a queue waits for its neighbour, now or a moment ago.
// PFC lets a queue go and stops it again every few microseconds; one that is
// deep because of that, not by itself, still waits for what stops it.
func (m *matching) lately(n int) bool {
	node := &m.g.Nodes[n]
	if node.ToHost {
		return false
	}
	if node.Stands() {
		return !m.itself(n)
	}
	return m.released(n) && slices.ContainsFunc(provenance.Out(m.g.Held, n), func(e provenance.Edge) bool {
		return m.g.Nodes[e.To].Stands() || m.deep(e.To)
	})
}

// held tells whether a queue is held up by its neighbour, now or a moment ago.
func (m *matching) held(n int) bool {
	return m.g.Nodes[n].Stands() && !m.itself(n) || m.lately(n)
}

// itself tells whether a queue was overfull before it was paused, which it was
// only after the host complained: it waited for itself.
func (m *matching) itself(n int) bool {
	return m.pausedSince(n) && m.full(n)
}

// pausedSince tells whether a queue is paused, by a switch, and was not when the
// host complained.
func (m *matching) pausedSince(n int) bool {
	node := &m.g.Nodes[n]
	return !node.ToHost && node.Stands() && m.ago(n, node.Pauses.BurstStart) < m.arrives
}

// filledSince tells whether a queue was not deep when the host complained.
func (m *matching) filledSince(n int) bool {
	wave := &m.g.Nodes[n].Wave
	return wave.MaxBytes > 0 && m.ago(n, wave.First) < m.arrives
}

// keeps tells whether a queue is a reason to wait by itself: it sends, and is
// deep.
func (m *matching) keeps(n int) bool { return !m.held(n) && m.deep(n) }

// released tells whether a queue was let go a moment ago and may wait again in
// the next.
func (m *matching) released(n int) bool {
	just := m.g.Nodes[n].Pauses.Pauses > 0 && m.aged(n, m.g.Nodes[n].Pauses.LastEnd) <= m.apart
	return just && !m.full(n) || m.fitful(n)
}

// full tells whether a queue was overfull before its pauses began, and they were
// shorter together than what it takes to send that: it waits for itself.
func (m *matching) full(n int) bool {
	p := &m.g.Nodes[n].Pauses
	paused := p.LastEnd.Sub(p.BurstStart)
	if m.g.Nodes[n].Stands() {
		paused = m.aged(n, p.BurstStart)
	}
	if p.PausedTime > 0 {
		paused = min(paused, p.PausedTime) // of all pauses ever: at least theirs
	}
	return float64(p.BytesAtBurstStart) >= max(m.bytesIn(n, m.cfg.Deep), m.bytesIn(n, paused))
}

// fitful tells whether a queue was paused a moment ago, and not overfull before
// that fit of pauses began.
func (m *matching) fitful(n int) bool {
	node := &m.g.Nodes[n]
	p := &node.Pauses
	return p.Pauses > 0 && m.aged(n, p.LastEnd) <= epoch.PauseBurstGap && float64(p.BytesAtBurstStart) < m.bytesIn(n, m.cfg.Deep)
}

// mine is what a queue holds of the victim, in bytes.
func (m *matching) mine(n int) (bytes float64) {
	flow := m.g.Flow(m.complaint.Victim)
	for _, w := range m.g.WaitingAt(n) {
		if w.Flow == flow {
			bytes += float64(w.Bytes)
		}
	}
	return bytes
}

// open tells whether the answer of a queue's neighbour is missing, or a part of
// it.
func (m *matching) open(n int) bool {
	t, told := m.g.Teller(m.g.Nodes[n].Peer.Node)
	return !told || !t.Complete
}

func (m *matching) gap(n int) {
	m.gaps = append(m.gaps, fmt.Sprintf("%s was paused by %s, which did not answer in full", m.name(n), nodeName(m.fabric, m.g.Nodes[n].Peer.Node)))
}

// named tells whether a verdict begins at a queue already.
func (m *matching) named(n int) bool {
	return slices.ContainsFunc(m.verdicts, func(v Verdict) bool { return v.Initial == m.g.Nodes[n].Port })
}

// add keeps a verdict.
func (m *matching) add(v Verdict) { m.verdicts = append(m.verdicts, v) }

// rank orders verdicts by weight, which stands in Confidence until account, and
// drops what is far lighter than the heaviest.
func (m *matching) rank() {
	slices.SortStableFunc(m.verdicts, func(a, b Verdict) int { return cmp.Compare(b.Confidence, a.Confidence) })
	for i := range m.verdicts {
		if i > 0 && m.verdicts[i].Confidence < m.cfg.Least*m.verdicts[0].Confidence {
			m.verdicts = m.verdicts[:i]
			break
		}
	}
}
