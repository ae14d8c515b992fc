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
	// CongestedAt is what a queue must hold to be a reason to wait, as the time that
	// its link takes to send it. Queues of a few packets end many a way, and
	// delay nobody.
	CongestedAt time.Duration
	// MinCauseShare is the share of the waiting that must end at a place for it to be
	// called a cause, beside the heaviest one.
	MinCauseShare float64
	// MinCulpritShare is the share of the heaviest flow's part that makes a flow a
	// culprit, too.
	MinCulpritShare float64
	// ImbalanceRatio is how many times the mean of equal paths a port must carry to
	// be called overloaded by a bad spread.
	ImbalanceRatio float64
}

// DefaultConfig holds what `weft repro hawkeye` was measured with.
func DefaultConfig(in *topo.Intent) Config {
	return Config{Intent: in, CongestedAt: 4 * time.Microsecond, MinCauseShare: 0.2, MinCulpritShare: 0.03, ImbalanceRatio: 1.6}
}

// Check complains about what cannot work.
func (c *Config) Check() error {
	switch {
	case c.Intent == nil:
		return errors.New("diagnose: no intended routes, want a topo.Intent")
	case c.CongestedAt <= 0:
		return fmt.Errorf("diagnose: queues are deep from %v, want more than 0", c.CongestedAt)
	case !(c.MinCauseShare > 0 && c.MinCauseShare <= 1) || !(c.MinCulpritShare > 0 && c.MinCulpritShare <= 1):
		return fmt.Errorf("diagnose: least share %v, part %v; want both above 0 and at most 1", c.MinCauseShare, c.MinCulpritShare)
	case !(c.ImbalanceRatio > 1):
		return fmt.Errorf("diagnose: imbalance %v, want above 1", c.ImbalanceRatio)
	}
	return nil
}

// Detection is what a host says about a flow of its own.
type Detection struct {
	Event  poll.Event
	Victim model.FlowKey
	// HostPaused is set if the host's own port was: then the flow may wait in the
	// host for what its other flows wait for.
	HostPaused bool
	// Latency is how long the packet took that it is about, or has taken if it is
	// InFlight still; 0: nobody knows. What was over before does not matter.
	Latency     time.Duration
	InFlight bool
}

// Diagnoser matches graphs. It keeps nothing between them.
type Diagnoser struct {
	cfg    Config
	fabric *topo.Fabric
	// snapshotSkew is how far snapshots of one poll are: what was paused so short a time
	// ageAtPoll may have been when its neighbour was looked at.
	snapshotSkew time.Duration
	// pollDelay is how long a poll takes along a flow's way. A pause that is younger
	// findTrigger after the complaint.
	pollDelay time.Duration
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
	d.pollDelay, d.snapshotSkew = 5*hop, min(10*hop, epoch.PauseBurstGap) // five switches to the other end of a tree, and as many again along pauses
	return d, nil
}

// Diagnose says what a complaint's graph means: one verdict for each cause, the
// heaviest first, and at least one: that of None says that nothing was found,
// or what is missing to find it.
func (d *Diagnoser) Diagnose(c Detection, e *provenance.Evidence, g *provenance.Graph) []Verdict {
	m := &analysis{Diagnoser: d, detection: c, evidence: e, g: g, routes: d.cfg.Intent.At(g.To)}
	m.findVictimQueues()
	m.analyzeSnapshots()
	if len(m.verdicts) == 0 && len(m.gaps) == 0 {
		m.analyzeEpochs()
	}
	if len(m.verdicts) == 0 {
		m.concludeNothing()
	}
	m.setConfidences()
	return m.verdicts
}

// analyzeSnapshots matches what held at the snapshots: exact, however long epochs are.
func (m *analysis) analyzeSnapshots() {
	m.atSnapshot = true
	m.waitFor = waitForGraph{
		nodes: len(m.g.Nodes),
		blocked: func(n int) bool { return m.g.Nodes[n].PausedAtSnapshot() && !m.g.Nodes[n].ToHost },
		blockers:   func(n int) []provenance.Edge { return provenance.EdgesFrom(m.g.Held, n) },
	}
	starts := m.victimStarts(func(n int) bool { return m.g.Nodes[n].PausedAtSnapshot() })
	lately := waitForGraph{nodes: m.waitFor.nodes, blocked: m.recentlyBlocked, blockers: m.recentBlockers}
	if t := m.waitFor.trace(starts); slices.ContainsFunc(t.cycles, m.pausedTogether) {
		// What stands for longer decides of circles; what they wait for outside
		// may have been let go this instant.
		m.concludePauses(lately.extend(t))
	} else if starts = m.victimStarts(m.isBlocked); len(starts) > 0 {
		m.waitFor = lately
		m.concludePauses(m.breakTransientCycles(m.waitFor.trace(starts)))
	}
	for _, n := range m.victimHolders {
		if m.isBlocked(n) || !m.isCongested(n) || m.hasVerdictAt(n) {
			continue
		}
		switch m.classify(n) {
		case hostTerminal:
			m.addVerdict(m.stormVerdict(terminal{node: n, share: 1, path: []int{n}}))
		case flowTerminal:
			m.addContention(n)
		case unknownTerminal:
			m.addGap(n)
		}
	}
	m.rankVerdicts()
}

// recentBlockers returns what a queue waits for, now or a moment ago. Of one that was let
// go, not what was stopped, or became deep, only after that; if that is all, the
// times tell nothing.
func (m *analysis) recentBlockers(n int) []provenance.Edge {
	all := provenance.EdgesFrom(m.g.Held, n)
	if m.g.Nodes[n].PausedAtSnapshot() {
		return all
	}
	var list []provenance.Edge
	free := m.ageAtPoll(n, m.g.Nodes[n].Pauses.LastEnd)
	for _, e := range all {
		to := &m.g.Nodes[e.To]
		began, known := to.Episode.First, to.Episode.MaxBytes > 0
		if m.recentlyBlocked(e.To) {
			began, known = to.Pauses.BurstStart, true
		}
		if !known || m.ageAtPoll(e.To, began) >= free+m.snapshotSkew {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// breakTransientCycles takes circles apart that did not stand at one time: what they waited
// for outside, which is among the ends, or, if there is nothing, their queue that
// isBlocked most when it was paused is the end.
func (m *analysis) breakTransientCycles(t traceResult) traceResult {
	for _, l := range t.cycles {
		if len(l.terminals) == 0 {
			n, _ := m.deepestAtPause(l.nodes)
			t.terminals = append(t.terminals, terminal{node: n, share: l.share, path: l.entry})
		}
	}
	t.cycles = nil
	return t
}

// victimStarts are the queues of the victim that wait, by how much of it waits there;
// if nothing of it is in any queue, and its host is paused, what the first
// switch holds of the host.
func (m *analysis) victimStarts(waits func(int) bool) (starts []provenance.Edge) {
	all := 0.0
	for _, n := range m.victimHolders {
		all += m.victimBytes(n)
	}
	for _, n := range m.victimHolders {
		// A queue that was stopped this instant holds a packet or two of what
		// blocked elsewhere. One that was only since the complaint, or for a moment,
		// is no reason for it where there is another.
		if (m.pausedAfterDetection(n) || m.pausedBriefly(n)) && slices.ContainsFunc(m.victimHolders, m.isBottleneck) {
			continue
		}
		if mine := m.victimBytes(n); waits(n) && (mine == 0 || mine >= m.cfg.MinCulpritShare*all) { // 0: its switch keeps no flows
			starts = append(starts, provenance.Edge{From: -1, To: n, Weight: 1 + mine})
		}
	}
	if m.detection.HostPaused && len(m.victimHolders) == 0 {
		starts, m.startsAtHost = slices.Clone(m.g.FromVictimHost), true
	}
	return starts
}

// concludePauses makes verdicts of where the waiting of paused queues ends.
func (m *analysis) concludePauses(t traceResult) {
	for _, loop := range t.cycles {
		m.addDeadlock(loop)
	}
	if len(t.cycles) > 0 {
		// What a loop waits for was looked at with it.
		t.terminals = slices.DeleteFunc(t.terminals, func(e terminal) bool {
			return slices.ContainsFunc(t.cycles, func(l cycle) bool { return len(l.entry) > 0 && slices.Contains(e.path, l.entry[len(l.entry)-1]) })
		})
	}
	for _, e := range t.terminals {
		switch m.classify(e.node) {
		case hostTerminal:
			m.addVerdict(m.stormVerdict(e))
			m.addPrePauseContention(e)
		case flowTerminal:
			if !m.causeTooLate(e) {
				m.addVerdict(m.backpressureVerdict(e))
			}
		case unknownTerminal:
			m.addGap(e.node)
		}
	}
}

// addPrePauseContention adds a verdict about a queue that was overfull by itself when its host
// paused it, not so long ago that it could have sent that: both hold it up.
func (m *analysis) addPrePauseContention(e terminal) {
	p := &m.g.Nodes[e.node].Pauses
	if !m.atSnapshot || float64(p.BytesAtBurstStart) < max(m.linkBytes(e.node, m.cfg.CongestedAt), m.linkBytes(e.node, m.ageAtSnapshot(e.node, p.BurstStart))) {
		return
	}
	if slices.Contains(m.victimHolders, e.node) {
		m.addContention(e.node)
	} else {
		m.addVerdict(m.backpressureVerdict(e))
	}
}

// causeTooLate tells whether a queue on the way to an overfull one was let go before the
// blockersOf was stopped, or before that one became deep, as far as times of several
// switches tell: then it was paused for another. The victim may wait in the
// deepestAtPause queue by now.
func (m *analysis) causeTooLate(e terminal) bool {
	if !m.atSnapshot {
		return false
	}
	free := time.Duration(0) // how long ago the first of those was let go
	for i, n := range e.path {
		node := &m.g.Nodes[n]
		began, known := node.Pauses.BurstStart, true
		if i == len(e.path)-1 {
			began, known = node.Episode.First, node.Episode.MaxBytes > 0
		}
		if free > 0 && known && m.ageAtPoll(n, began) < free+m.snapshotSkew {
			return true
		}
		if i < len(e.path)-1 && !node.PausedAtSnapshot() {
			free = max(free, m.ageAtPoll(n, node.Pauses.LastEnd))
		}
	}
	return free > 0 && slices.Contains(m.victimHolders, e.node) && m.queuedBytes(e.node) < m.linkBytes(e.node, free)
}

// terminalKind is what an end of waiting is.
type terminalKind uint8

const (
	transientTerminal terminalKind = iota // the pause is over, or will be in a moment
	hostTerminal                  // a host pauses it
	flowTerminal                  // it sends as fast as its link does
	unknownTerminal                  // its neighbour's answer is missing
)

func (m *analysis) classify(n int) terminalKind {
	node := &m.g.Nodes[n]
	waits := node.PausedAtSnapshot() && !m.selfCongested(n)
	if !m.atSnapshot {
		waits = m.blockedByPauses(n)
	}
	switch {
	case node.ToHost && (waits || m.atSnapshot && m.inPauseBurst(n)):
		return hostTerminal
	case waits:
		if m.peerMissing(n) {
			return unknownTerminal
		}
		return transientTerminal
	case m.atSnapshot && m.justResumed(n) && m.peerMissing(n):
		return unknownTerminal // what it was paused for may be there
	case m.atSnapshot && m.isCongested(n) && !m.congestedAfterDetection(n), !m.atSnapshot && m.congestedInWindow(n):
		return flowTerminal
	}
	return transientTerminal
}
