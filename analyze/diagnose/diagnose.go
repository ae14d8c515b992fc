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

// Config holds the thresholds of a diagnosis.
type Config struct {
	Intent *topo.Intent
	// CongestedAt is the backlog from which on a queue delays packets, as the
	// time that its link takes to send it. Many wait-for paths end at queues of a
	// few packets, which delay no flow.
	CongestedAt time.Duration
	// MinCauseShare is the share of the waiting, relative to the largest one,
	// that must end at a queue for the queue to be called a cause.
	MinCauseShare float64
	// MinCulpritShare is the share of the largest culprit's weight that makes a
	// flow a culprit, too.
	MinCulpritShare float64
	// ImbalanceRatio is how many times the mean load of equal-cost paths a port
	// must carry to be called overloaded by ECMP imbalance.
	ImbalanceRatio float64
}

// DefaultConfig returns the thresholds that `weft repro hawkeye` was measured
// with.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, CongestedAt: 4 * time.Microsecond,
		MinCauseShare: 0.2, MinCulpritShare: 0.03, ImbalanceRatio: 1.6,
	}
}

// Check returns an error for settings that cannot work.
func (c *Config) Check() error {
	switch {
	case c.Intent == nil:
		return errors.New("diagnose: no intended routes, want a topo.Intent")
	case c.CongestedAt <= 0:
		return fmt.Errorf("diagnose: congestion threshold %v, want above 0", c.CongestedAt)
	case !(c.MinCauseShare > 0 && c.MinCauseShare <= 1) || !(c.MinCulpritShare > 0 && c.MinCulpritShare <= 1):
		return fmt.Errorf("diagnose: minimum cause share %v, culprit share %v; want both above 0 and at most 1",
			c.MinCauseShare, c.MinCulpritShare)
	case !(c.ImbalanceRatio > 1):
		return fmt.Errorf("diagnose: imbalance ratio %v, want above 1", c.ImbalanceRatio)
	}
	return nil
}

// Detection is a host's report that one of its flows is slow.
type Detection struct {
	Event  poll.Event
	Victim model.FlowKey
	// HostPaused is set if the host's NIC port was paused: then the flow may wait
	// in the host for what the host's other flows wait for.
	HostPaused bool
	// Latency is the round-trip time of the slow packet, or its age so far if it
	// is InFlight; 0 if unknown. What ended before the packet was sent does not
	// matter.
	Latency  time.Duration
	InFlight bool
}

// Diagnoser finds the causes of slow flows in provenance graphs. It keeps no
// state between diagnoses.
type Diagnoser struct {
	cfg    Config
	fabric *topo.Fabric
	// snapshotSkew is how far apart the snapshots of one poll are: a queue that
	// was paused within this time before its snapshot may have been paused when
	// its neighbour took its own.
	snapshotSkew time.Duration
	// pollDelay is how long a poll takes along a flow's path. A younger pause
	// started after the detection.
	pollDelay time.Duration
}

// New returns a diagnoser.
func New(cfg Config) (*Diagnoser, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	d := &Diagnoser{cfg: cfg, fabric: cfg.Intent.At(0).Fabric()}
	hop := 2 * time.Microsecond // a generous bound for what switches add to a short link
	for i := range d.fabric.Links() {
		hop = max(hop, d.fabric.Links()[i].Delay)
	}
	// Polls take five hops across a tree, and five more along pauses.
	d.pollDelay, d.snapshotSkew = 5*hop, min(10*hop, epoch.PauseBurstGap)
	return d, nil
}

// Diagnose returns the verdicts on a detection: one for each cause, the
// heaviest first, and at least one. A verdict of type None says that nothing
// was found, or what evidence is missing.
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

// analyzeSnapshots diagnoses from the state at the snapshots, which is exact
// whatever the length of epochs.
func (m *analysis) analyzeSnapshots() {
	m.atSnapshot = true
	m.waitFor = waitForGraph{
		nodes:    len(m.g.Nodes),
		blocked:  func(n int) bool { return m.g.Nodes[n].PausedAtSnapshot() && !m.g.Nodes[n].ToHost },
		blockers: func(n int) []provenance.Edge { return provenance.EdgesFrom(m.g.Held, n) },
	}
	starts := m.victimStarts(func(n int) bool { return m.g.Nodes[n].PausedAtSnapshot() })
	recent := waitForGraph{nodes: m.waitFor.nodes, blocked: m.recentlyBlocked, blockers: m.recentBlockers}
	if t := m.waitFor.trace(starts); slices.ContainsFunc(t.cycles, m.pausedTogether) {
		// Cycles consist of queues that are paused at the snapshots. What they
		// wait for outside may have been resumed just before.
		m.concludePauses(recent.extend(t))
	} else if starts = m.victimStarts(m.isBlocked); len(starts) > 0 {
		m.waitFor = recent
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

// recentBlockers returns the downstream queues that can explain a queue's
// pauses. For a resumed queue it skips those that were paused or congested only
// after the resume; if none is left, the times are no guide, and it returns
// all.
func (m *analysis) recentBlockers(n int) []provenance.Edge {
	all := provenance.EdgesFrom(m.g.Held, n)
	if m.g.Nodes[n].PausedAtSnapshot() {
		return all
	}
	var list []provenance.Edge
	resumed := m.ageAtPoll(n, m.g.Nodes[n].Pauses.LastEnd)
	for _, e := range all {
		to := &m.g.Nodes[e.To]
		start, known := to.Episode.First, to.Episode.MaxBytes > 0
		if m.recentlyBlocked(e.To) {
			start, known = to.Pauses.BurstStart, true
		}
		if !known || m.ageAtPoll(e.To, start) >= resumed+m.snapshotSkew {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// breakTransientCycles replaces cycles whose queues were not paused at the same
// time: by what they waited for outside, which is among the terminals, or, if
// there is none, by the queue of the cycle that held most when it was paused.
func (m *analysis) breakTransientCycles(t traceResult) traceResult {
	for _, c := range t.cycles {
		if len(c.terminals) == 0 {
			n, _ := m.deepestAtPause(c.nodes)
			t.terminals = append(t.terminals, terminal{node: n, share: c.share, path: c.entry})
		}
	}
	t.cycles = nil
	return t
}

// victimStarts returns the blocked queues of the victim, weighted by the
// victim's bytes in them. If no queue holds packets of the victim and its host
// is paused, it returns the queues where the first switch holds packets of the
// host.
func (m *analysis) victimStarts(blocked func(int) bool) (starts []provenance.Edge) {
	all := 0.0
	for _, n := range m.victimHolders {
		all += m.victimBytes(n)
	}
	for _, n := range m.victimHolders {
		// A queue that was paused just now holds a packet or two of what waits
		// elsewhere. One that was paused only after the detection, or for less than
		// CongestedAt, is not the cause where there is another bottleneck.
		if (m.pausedAfterDetection(n) || m.pausedBriefly(n)) && slices.ContainsFunc(m.victimHolders, m.isBottleneck) {
			continue
		}
		mine := m.victimBytes(n) // 0: its switch keeps no flows
		if blocked(n) && (mine == 0 || mine >= m.cfg.MinCulpritShare*all) {
			starts = append(starts, provenance.Edge{From: -1, To: n, Weight: 1 + mine})
		}
	}
	if m.detection.HostPaused && len(m.victimHolders) == 0 {
		starts, m.startsAtHost = slices.Clone(m.g.FromVictimHost), true
	}
	return starts
}

// concludePauses adds the verdicts on the terminals and cycles that paused
// queues wait for.
func (m *analysis) concludePauses(t traceResult) {
	for _, c := range t.cycles {
		m.addDeadlock(c)
	}
	if len(t.cycles) > 0 {
		// addDeadlock has dealt with what a cycle waits for.
		t.terminals = slices.DeleteFunc(t.terminals, func(e terminal) bool {
			return slices.ContainsFunc(t.cycles, func(c cycle) bool {
				return len(c.entry) > 0 && slices.Contains(e.path, c.entry[len(c.entry)-1])
			})
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

// addPrePauseContention adds a verdict on a queue that was congested by itself
// when its host paused it, so recently that it could not have sent that backlog
// since: both delay the flow.
func (m *analysis) addPrePauseContention(e terminal) {
	p := &m.g.Nodes[e.node].Pauses
	sendable := m.linkBytes(e.node, m.ageAtSnapshot(e.node, p.BurstStart))
	if !m.atSnapshot || float64(p.BytesAtBurstStart) < max(m.linkBytes(e.node, m.cfg.CongestedAt), sendable) {
		return
	}
	if slices.Contains(m.victimHolders, e.node) {
		m.addContention(e.node)
	} else {
		m.addVerdict(m.backpressureVerdict(e))
	}
}

// causeTooLate reports whether a queue on the path to a congested one was
// resumed before the next was paused, or before the last became congested, as
// far as times of several switches can be compared: then it was paused for
// another reason. The victim may wait in the congested queue by now.
func (m *analysis) causeTooLate(e terminal) bool {
	if !m.atSnapshot {
		return false
	}
	resumed := time.Duration(0) // age of the earliest resume so far
	for i, n := range e.path {
		node := &m.g.Nodes[n]
		start, known := node.Pauses.BurstStart, true
		if i == len(e.path)-1 {
			start, known = node.Episode.First, node.Episode.MaxBytes > 0
		}
		if resumed > 0 && known && m.ageAtPoll(n, start) < resumed+m.snapshotSkew {
			return true
		}
		if i < len(e.path)-1 && !node.PausedAtSnapshot() {
			resumed = max(resumed, m.ageAtPoll(n, node.Pauses.LastEnd))
		}
	}
	return resumed > 0 && slices.Contains(m.victimHolders, e.node) && m.queuedBytes(e.node) < m.linkBytes(e.node, resumed)
}

// terminalKind is what a wait-for path ends at.
type terminalKind uint8

const (
	transientTerminal terminalKind = iota // the pause is over, or about to be
	hostTerminal                          // a host pauses it
	flowTerminal                          // it sends at line rate: its flows contend
	unknownTerminal                       // the report of its neighbour is missing
)

// classify returns what a wait-for path that ends at a queue ends at.
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
		return unknownTerminal // the missing report may show what paused it
	case m.atSnapshot && m.isCongested(n) && !m.congestedAfterDetection(n), !m.atSnapshot && m.congestedInWindow(n):
		return flowTerminal
	}
	return transientTerminal
}
