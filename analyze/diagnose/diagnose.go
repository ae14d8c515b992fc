package diagnose

import (
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
	// apart is how far snapshots of one poll are: what was paused so short a time
	// ago may have been when its neighbour was looked at.
	apart time.Duration
	// arrives is how long a poll takes along a flow's way. A pause that is younger
	// began after the complaint.
	arrives time.Duration
}

// New makes a diagnoser.
func New(cfg Config) (*Diagnoser, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	d := &Diagnoser{cfg: cfg, fabric: cfg.Intent.At(0).Fabric()}
	hop := 2 * time.Microsecond // what switches add to a short link, generously
	for i := range d.fabric.Links() {
		hop = max(hop, d.fabric.Links()[i].Delay)
	}
	d.arrives, d.apart = 5*hop, min(10*hop, epoch.PauseBurstGap) // five switches to the other end of a tree, and as many again along pauses
	return d, nil
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

// present matches what held at the snapshots: exact, however long epochs are.
func (m *matching) present() {
	m.now = true
	m.rel = relation{
		nodes: len(m.g.Nodes),
		waits: func(n int) bool { return m.g.Nodes[n].Stands() && !m.g.Nodes[n].ToHost },
		out:   func(n int) []provenance.Edge { return provenance.Out(m.g.Held, n) },
	}
	starts := m.starts(func(n int) bool { return m.g.Nodes[n].Stands() })
	lately := relation{nodes: m.rel.nodes, waits: m.lately, out: m.lateFor}
	if t := m.rel.trace(starts); slices.ContainsFunc(t.loops, m.stood) {
		// What stands for longer decides of circles; what they wait for outside
		// may have been let go this instant.
		m.pauses(lately.further(t))
	} else if starts = m.starts(m.held); len(starts) > 0 {
		m.rel = lately
		m.pauses(m.unroll(m.rel.trace(starts)))
	}
	for _, n := range m.holding {
		if m.held(n) || !m.deep(n) || m.named(n) {
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

// lateFor returns what a queue waits for, now or a moment ago. Of one that was let
// go, not what was stopped, or became deep, only after that; if that is all, the
// times tell nothing.
func (m *matching) lateFor(n int) []provenance.Edge {
	all := provenance.Out(m.g.Held, n)
	if m.g.Nodes[n].Stands() {
		return all
	}
	var list []provenance.Edge
	free := m.ago(n, m.g.Nodes[n].Pauses.LastEnd)
	for _, e := range all {
		to := &m.g.Nodes[e.To]
		began, known := to.Wave.First, to.Wave.MaxBytes > 0
		if m.lately(e.To) {
			began, known = to.Pauses.BurstStart, true
		}
		if !known || m.ago(e.To, began) >= free+m.apart {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// unroll takes circles apart that did not stand at one time: what they waited
// for outside, which is among the ends, or, if there is nothing, their queue that
// held most when it was paused is the end.
func (m *matching) unroll(t tracing) tracing {
	for _, l := range t.loops {
		if len(l.ends) == 0 {
			n, _ := m.overfull(l.nodes)
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
		// waits elsewhere. One that was only since the complaint, or for a moment,
		// is no reason for it where there is another.
		if (m.pausedSince(n) || m.brief(n)) && slices.ContainsFunc(m.holding, m.keeps) {
			continue
		}
		if mine := m.mine(n); waits(n) && (mine == 0 || mine >= m.cfg.Part*all) { // 0: its switch keeps no flows
			starts = append(starts, provenance.Edge{From: -1, To: n, Weight: 1 + mine})
		}
	}
	if m.complaint.Paused && len(m.holding) == 0 {
		starts, m.atHost = slices.Clone(m.g.First), true
	}
	return starts
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
			if !m.later(e) {
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
	if !m.now || float64(p.BytesAtBurstStart) < max(m.bytesIn(e.node, m.cfg.Deep), m.bytesIn(e.node, m.aged(e.node, p.BurstStart))) {
		return
	}
	if slices.Contains(m.holding, e.node) {
		m.contention(e.node)
	} else {
		m.add(m.backpressure(e))
	}
}

// later tells whether a queue on the way to an overfull one was let go before the
// next was stopped, or before that one became deep, as far as times of several
// switches tell: then it was paused for another. The victim may wait in the
// overfull queue by now.
func (m *matching) later(e end) bool {
	if !m.now {
		return false
	}
	free := time.Duration(0) // how long ago the first of those was let go
	for i, n := range e.via {
		node := &m.g.Nodes[n]
		began, known := node.Pauses.BurstStart, true
		if i == len(e.via)-1 {
			began, known = node.Wave.First, node.Wave.MaxBytes > 0
		}
		if free > 0 && known && m.ago(n, began) < free+m.apart {
			return true
		}
		if i < len(e.via)-1 && !node.Stands() {
			free = max(free, m.ago(n, node.Pauses.LastEnd))
		}
	}
	return free > 0 && slices.Contains(m.holding, e.node) && m.queued(e.node) < m.bytesIn(e.node, free)
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
	waits := node.Stands() && !m.itself(n)
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
	case m.now && m.deep(n) && !m.filledSince(n), !m.now && m.deepThen(n):
		return flowEnd
	}
	return fadingEnd
}
