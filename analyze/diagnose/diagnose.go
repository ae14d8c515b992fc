package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Config says what counts.
type Config struct {
	Intent *topo.Intent
	// Deep is what a queue must hold to be a reason to wait, as the time that
	// its link takes to send it. Queues of a few packets end many a way, and
	// delay nobody.
	Deep time.Duration
	// Least is the share of the waiting that must end at a place for it to be
	// called a cause, beside the heaviest one.
	Least float64
	// Part is the share of the heaviest flow's part that makes a flow a
	// culprit, too.
	Part float64
	// Imbalance is how many times the mean of equal paths a port must carry to
	// be called overloaded by a bad spread.
	Imbalance float64
}

// DefaultConfig holds what `weft repro hawkeye` was measured with.
func DefaultConfig(in *topo.Intent) Config {
	return Config{Intent: in, Deep: 4 * time.Microsecond, Least: 0.2, Part: 0.03, Imbalance: 1.6}
}

// Check complains about what cannot work.
func (c *Config) Check() error {
	switch {
	case c.Intent == nil:
		return errors.New("diagnose: no intended routes, want a topo.Intent")
	case c.Deep <= 0:
		return fmt.Errorf("diagnose: queues are deep from %v, want more than 0", c.Deep)
	case !(c.Least > 0 && c.Least <= 1) || !(c.Part > 0 && c.Part <= 1):
		return fmt.Errorf("diagnose: least share %v, part %v; want both above 0 and at most 1", c.Least, c.Part)
	case !(c.Imbalance > 1):
		return fmt.Errorf("diagnose: imbalance %v, want above 1", c.Imbalance)
	}
	return nil
}

// Complaint is what a host says about a flow of its own.
type Complaint struct {
	Event  poll.Event
	Victim model.FlowKey
	// Paused is set if the host's own port was: then the flow may wait in the
	// host for what its other flows wait for.
	Paused bool
	// Took is how long the packet took that it is about, or has taken if it is
	// Underway still; 0: nobody knows. What was over before does not matter.
	Took     time.Duration
	Underway bool
}

// Diagnoser matches graphs. It keeps nothing between them.
type Diagnoser struct {
	cfg    Config
	fabric *topo.Fabric
}

// New makes a diagnoser.
func New(cfg Config) (*Diagnoser, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Diagnoser{cfg: cfg, fabric: cfg.Intent.At(0).Fabric()}, nil
}

// Diagnose says what a complaint's graph means: one verdict for each cause, the
// heaviest first, and at least one: that of None says that nothing was found,
// or what is missing to find it.
func (d *Diagnoser) Diagnose(c Complaint, e *provenance.Evidence, g *provenance.Graph) []Verdict {
	m := &matching{Diagnoser: d, complaint: c, evidence: e, g: g, routes: d.cfg.Intent.At(g.To)}
	m.findVictim()
	m.present()
	if len(m.verdicts) == 0 && len(m.gaps) == 0 {
		m.past()
	}
	if len(m.verdicts) == 0 {
		m.nothing()
	}
	m.account()
	return m.verdicts
}

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
	for n := range m.g.Nodes {
		waits := slices.ContainsFunc(m.g.WaitingAt(n), func(w provenance.Waiting) bool { return w.Flow == flow })
		went := waits || slices.ContainsFunc(m.g.PassagesAt(n), func(p provenance.Passage) bool { return p.Flow == flow })
		if went && flow >= 0 {
			m.victim = append(m.victim, n)
		}
		if waits && flow >= 0 {
			m.holding = append(m.holding, n)
		}
	}
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

// present matches what held at the snapshots: exact, however long epochs are.
func (m *matching) present() {
	m.now = true
	m.rel = relation{
		nodes: len(m.g.Nodes),
		waits: func(n int) bool { return m.g.Nodes[n].Stands() && !m.g.Nodes[n].ToHost },
		out:   func(n int) []provenance.Edge { return provenance.Out(m.g.Held, n) },
	}
	starts := m.starts(func(n int) bool { return m.g.Nodes[n].Stands() })
	loops := len(starts) > 0 && slices.ContainsFunc(m.rel.trace(starts).loops, m.stood)
	if !loops {
		m.rel.waits = m.lately
		starts = m.starts(func(n int) bool { return m.g.Nodes[n].Stands() || m.lately(n) })
	}
	if len(starts) > 0 {
		t := m.rel.trace(starts)
		if !loops {
			t = m.unroll(t)
		}
		m.pauses(t)
	}
	for _, n := range m.holding {
		if m.g.Nodes[n].Stands() || m.lately(n) || !m.deep(n) || m.named(n) {
			continue
		}
		switch m.kind(n) {
		case hostEnd:
			m.add(m.storm(end{node: n, blame: 1, via: []int{n}}))
		case flowEnd:
			m.contention(n)
		case openEnd:
			m.gap(n)
		}
	}
	m.rank()
}

// stood tells whether the queues of a loop were all paused at one instant.
// Snapshots are apart: where pauses go round, each queue may be paused when it
// is looked at, and the circle never was.
func (m *matching) stood(loop cycle) bool {
	return !slices.ContainsFunc(loop.nodes, func(n int) bool { return m.ago(n, m.g.Nodes[n].Pauses.Began) < apart })
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
		return true
	}
	return m.released(n) && slices.ContainsFunc(provenance.Out(m.g.Held, n), func(e provenance.Edge) bool {
		return m.g.Nodes[e.To].Stands() || m.deep(e.To)
	})
}

// released tells whether a queue was let go a moment ago and may wait again in
// the next.
func (m *matching) released(n int) bool {
	just := m.g.Nodes[n].Pauses.Pauses > 0 && m.ago(n, m.g.Nodes[n].Pauses.Ended) <= apart
	return just && !m.full(n) || m.fitful(n)
}

// full tells whether a queue was overfull before its pauses began, and they were
// shorter than what it takes to send that: it waits for itself.
func (m *matching) full(n int) bool {
	p := &m.g.Nodes[n].Pauses
	return float64(p.Behind) >= max(m.bytesIn(n, m.cfg.Deep), m.bytesIn(n, p.Ended.Sub(p.First)))
}

// apart is how far snapshots of one poll are: what was paused so short a time
// ago may have been when its neighbour was looked at.
const apart = 20 * time.Microsecond

// fitful tells whether a queue was paused a moment ago, and not overfull before
// that fit of pauses began.
func (m *matching) fitful(n int) bool {
	node := &m.g.Nodes[n]
	p := &node.Pauses
	return p.Pauses > 0 && node.Snapshot.Sub(p.Ended) <= epoch.Calm && float64(p.Behind) < m.bytesIn(n, m.cfg.Deep)
}

// unroll takes circles apart that did not stand at one time: what they waited
// for outside, which is among the ends, or their queue that was overfull by
// itself is the end.
func (m *matching) unroll(t tracing) tracing {
	for _, l := range t.loops {
		if n, depth := m.overfull(l.nodes); len(l.ends) == 0 || depth >= m.bytesIn(n, m.cfg.Deep) {
			t.ends = append(t.ends, end{node: n, blame: l.blame, via: l.entry})
		}
	}
	t.loops = nil
	return t
}

// starts are the queues of the victim that wait, by how much of it waits there;
// if nothing of it is in any queue, and its host is paused, what the first
// switch holds of the host.
func (m *matching) starts(waits func(int) bool) (starts []provenance.Edge) {
	all := 0.0
	for _, n := range m.holding {
		all += m.mine(n)
	}
	for _, n := range m.holding {
		// A queue that was stopped this instant holds a packet or two of what
		// waits elsewhere.
		if mine := m.mine(n); waits(n) && (mine == 0 || mine >= m.cfg.Part*all) { // 0: its switch keeps no flows
			starts = append(starts, provenance.Edge{From: -1, To: n, Weight: 1 + mine})
		}
	}
	if m.complaint.Paused && len(m.holding) == 0 {
		starts, m.atHost = slices.Clone(m.g.First), true
	}
	return starts
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

// pauses makes verdicts of where the waiting of paused queues ends.
func (m *matching) pauses(t tracing) {
	for _, loop := range t.loops {
		m.deadlock(loop)
	}
	if len(t.loops) > 0 {
		// What a loop waits for was looked at with it.
		t.ends = slices.DeleteFunc(t.ends, func(e end) bool {
			return slices.ContainsFunc(t.loops, func(l cycle) bool { return len(l.entry) > 0 && slices.Contains(e.via, l.entry[len(l.entry)-1]) })
		})
	}
	for _, e := range t.ends {
		switch m.kind(e.node) {
		case hostEnd:
			m.add(m.storm(e))
			m.before(e)
		case flowEnd:
			if !m.meets(e) {
				m.add(m.backpressure(e))
			}
		case openEnd:
			m.gap(e.node)
		}
	}
}

// before adds a verdict about a queue that was overfull by itself when its host
// paused it, not so long ago that it could have sent that: both hold it up.
func (m *matching) before(e end) {
	p := &m.g.Nodes[e.node].Pauses
	if !m.now || float64(p.Behind) < max(m.bytesIn(e.node, m.cfg.Deep), m.bytesIn(e.node, m.ago(e.node, p.First))) {
		return
	}
	if slices.Contains(m.holding, e.node) {
		m.contention(e.node)
	} else {
		m.add(m.backpressure(e))
	}
}

// meets tells whether an overfull queue rather holds the victim up by itself
// than by pauses: it waits in it, and all that is in it has come since the queue
// before was let go. What that one was paused for is another queue then.
func (m *matching) meets(e end) bool {
	if !m.now || len(e.via) < 2 || !slices.Contains(m.holding, e.node) {
		return false
	}
	before := e.via[len(e.via)-2]
	node := &m.g.Nodes[before]
	return !node.Stands() && m.queued(e.node) < m.bytesIn(e.node, m.ago(before, node.Pauses.Ended))
}

// endKind is what an end of waiting is.
type endKind uint8

const (
	fadingEnd endKind = iota // the pause is over, or will be in a moment
	hostEnd                  // a host pauses it
	flowEnd                  // it sends as fast as its link does
	openEnd                  // its neighbour's answer is missing
)

func (m *matching) kind(n int) endKind {
	node := &m.g.Nodes[n]
	waits := node.Stands()
	if !m.now {
		waits = m.waited(n)
	}
	switch {
	case node.ToHost && (waits || m.now && m.fitful(n)):
		return hostEnd
	case waits:
		if m.open(n) {
			return openEnd
		}
		return fadingEnd
	case m.now && m.released(n) && m.open(n):
		return openEnd // what it was paused for may be there
	case m.now && m.deep(n), !m.now && m.deepThen(n):
		return flowEnd
	}
	return fadingEnd
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
