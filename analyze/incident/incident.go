package incident

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Incident is one fault and all evidence of it.
type Incident struct {
	ID         uint64
	Begin      model.Time // when the fault started
	Found      model.Time // first evidence
	Last       model.Time // newest evidence of the cause; its consequences may continue
	Closed     bool       // no evidence for QuietPeriod, or part of MergedInto
	Verified   bool       // closed because a check showed that the fault is gone
	MergedInto uint64     // the incident that absorbed it; 0: none
	Parts      []uint64   // incidents that it absorbed, ascending, at most maxParts

	Cause     anomaly.Cause
	Confirmed bool // at least one source of the cause rules out harmless explanations
	Minor     bool // no evidence yet of more than normal background congestion
	// Location and what follows, up to Remedy, are those of the evidence
	// that names the cause.
	Location    model.Port
	NextHop     model.NodeID // downstream of Location, if HasNextHop
	HasNextHop  bool
	Receiver    model.NodeID // that all culprits send to, if HasReceiver
	HasReceiver bool
	AtReceiver  bool // Location is the port that Receiver is attached to
	Text        string
	Remedy      string

	// Related are incidents with causes of their own that share consequences with
	// this one.
	Related []uint64

	Nodes    []model.NodeID  // affected, ascending
	Flows    []model.FlowKey // affected, up to MaxFlows
	Culprits []model.FlowKey
	Sources  [anomaly.NumSources]int // evidence of each that supports the cause, or follows from it

	// Doubts say why a source is not relied on; empty: it is.
	Doubts [anomaly.NumSources]string

	// LostPackets of SentPackets were lost so far, by the evidence of the cause.
	LostPackets, SentPackets uint64

	Timeline []Evidence // the first evidence of each cause and source, in order
	Omitted  int        // evidence that was counted and not kept

	root root
	// interval is the longest of counters that show it.
	interval time.Duration
	source   anomaly.Source // of Text
	scale    uint64         // of Text
	changed  bool
}

// Severity returns the cause's severity, or Notice while the incident is minor.
func (in *Incident) Severity() anomaly.Severity {
	if in.Minor {
		return anomaly.Notice
	}
	return in.Cause.Severity()
}

// AgreeingSources returns the sources with evidence.
func (in *Incident) AgreeingSources() (list []anomaly.Source) {
	for s := range anomaly.NumSources {
		if in.Sources[s] > 0 {
			list = append(list, s)
		}
	}
	return list
}

// Confidence returns how likely the cause is: each source that agrees halves
// the remaining doubt. With one source, an unconfirmed cause has 0.5 and a
// confirmed one 0.9. A source that is doubted itself confirms nothing, and removes a
// quarter of the doubt: alone it has 0.25.
func (in *Incident) Confidence() float64 {
	doubt := 0.2
	if !in.Confirmed || !in.confirmedWithoutDoubts() {
		doubt = 1
	}
	for _, s := range in.AgreeingSources() {
		if in.Doubts[s] != "" {
			doubt *= 0.75
		} else {
			doubt /= 2
		}
	}
	return 1 - doubt
}

// confirmedWithoutDoubts reports whether a source that is not doubted confirms the incident.
func (in *Incident) confirmedWithoutDoubts() bool {
	if in.Doubts == [anomaly.NumSources]string{} {
		return true
	}
	return slices.ContainsFunc(in.Timeline, func(e Evidence) bool { return e.Confirmed && in.Doubts[e.Source] == "" })
}

// MissingSources returns the sources that could show the cause and have not.
func (in *Incident) MissingSources() (list []anomaly.Source) {
	for _, s := range in.Cause.Sources() {
		if in.Sources[s] == 0 {
			list = append(list, s)
		}
	}
	return list
}

// maxRelated and maxParts are how many related and absorbed incidents are listed.
const (
	maxRelated = 16
	maxParts   = 64
)

// relate links two incidents.
func relate(a, b *Incident) {
	for _, pair := range [...][2]*Incident{{a, b}, {b, a}} {
		before := len(pair[0].Related)
		pair[0].Related = insertSorted(pair[0].Related, pair[1].ID, cmp.Compare[uint64], maxRelated)
		pair[0].changed = pair[0].changed || len(pair[0].Related) != before
	}
}

// Limits of one incident. Flows beyond MaxFlows are not listed.
const (
	maxTimeline = 32
	maxPerKind  = 4 // evidence of one source and cause that is kept
	MaxFlows    = 64
	maxNodes    = 1 << 12
)

// addEvidence adds evidence to the incident.
func (in *Incident) addEvidence(e *Evidence) {
	in.changed = true
	in.interval = max(in.interval, e.Interval)
	first := len(in.Timeline)+in.Omitted == 0
	minor := e.isMinor()
	if first || in.Minor && !minor { // background congestion before is not the start of the fault
		in.Begin, in.Found = e.From, e.At
	} else if in.Minor == minor {
		in.Begin, in.Found = min(in.Begin, e.From), min(in.Found, e.At)
	}
	in.Minor = (first || in.Minor) && minor
	in.Sources[e.Source]++
	adopted := in.adoptCause(e)
	if e.Cause == in.Cause && e.Confirmed == in.Confirmed {
		in.root.add(e)
	}
	if e.Cause == in.Cause || e.Cause.Family() == anomaly.PacketLoss && in.Cause.Family() == anomaly.PacketLoss {
		in.LostPackets, in.SentPackets = in.LostPackets+e.LostPackets, in.SentPackets+e.SentPackets
	}
	if adopted || e.Cause.Family() == in.Cause.Family() && in.Minor == minor {
		last := e.At
		if in.Closed && e.Until != 0 {
			last = e.Until // what is reported late was not there until now
		}
		in.Last = max(in.Last, last) // background congestion continues after the fault has ended
	}
	e.anyNode(func(n model.NodeID) bool {
		in.Nodes = insertSorted(in.Nodes, n, cmp.Compare[model.NodeID], maxNodes)
		return false
	})
	for _, k := range e.Flows {
		in.Flows = insertSorted(in.Flows, k, model.FlowKey.Compare, MaxFlows)
	}
	if in.hasCulpritsOf(e) {
		for _, k := range e.Culprits {
			in.Culprits = insertSorted(in.Culprits, k, model.FlowKey.Compare, MaxFlows)
		}
	}
	same := 0
	for i := range in.Timeline {
		if t := &in.Timeline[i]; t.Source == e.Source && t.Cause == e.Cause && t.Confirmed == e.Confirmed {
			same++
		}
	}
	if same >= maxPerKind || len(in.Timeline) >= maxTimeline {
		in.Omitted++
		return
	}
	i, _ := slices.BinarySearchFunc(in.Timeline, e.At, func(t Evidence, at model.Time) int {
		if t.At <= at {
			return -1
		}
		return 1
	})
	in.Timeline = slices.Insert(in.Timeline, i, *e)
}

// adoptCause takes over the cause of e if it says more than what is known:
// confirmed before unconfirmed, then what explains more. Among equals of one source
// the larger scale counts, otherwise the first. It reports whether it took the cause over.
func (in *Incident) adoptCause(e *Evidence) bool {
	first := len(in.Timeline)+in.Omitted == 0
	more := e.Cause > in.Cause || e.Cause == in.Cause && (in.Text == "" || e.Source == in.source && e.Scale > in.scale)
	better := e.Confirmed && !in.Confirmed || e.Confirmed == in.Confirmed && more
	if !first && e.Cause == anomaly.Stall && in.hasRoot() {
		// Pauses are what it leads to. The switch of a congested queue that pauses its
		// neighbours makes contention an incast.
		if in.Cause == anomaly.Contention && e.Confirmed && e.HasNextHop && e.NextHop == in.Location.Node {
			in.Cause, in.Remedy = anomaly.Incast, anomaly.Incast.Remedy()
		}
		return false
	}
	if !first && in.Cause == anomaly.Incast && !in.AtReceiver && e.AtReceiver && in.isFedBy(e) && e.Cause <= anomaly.Incast {
		// PFC spreads from where the senders meet: that is the incast's place.
		in.Location, in.NextHop, in.HasNextHop, in.AtReceiver = e.Location, e.NextHop, e.HasNextHop, true
		in.Text, in.source, in.scale = e.Text, e.Source, e.Scale
		return true
	}
	if !first && in.Cause == anomaly.Incast && e.Cause == anomaly.Incast && in.AtReceiver && !e.AtReceiver {
		return false // another queue, which its pauses congest, however many flows that harms
	}
	if !first && !better {
		return false
	}
	if !first && e.Cause != in.Cause {
		in.Culprits, in.root = nil, root{} // they belong to the cause that is replaced
	}
	in.Cause, in.Confirmed = e.Cause, e.Confirmed
	in.Location, in.NextHop, in.HasNextHop = e.Location, e.NextHop, e.HasNextHop
	in.Receiver, in.HasReceiver, in.AtReceiver = e.Receiver, e.HasReceiver, e.AtReceiver
	in.Text, in.Remedy = e.Text, cmp.Or(e.Remedy, e.Cause.Remedy())
	in.source, in.scale = e.Source, e.Scale
	return true
}

// hasCulpritsOf reports whether the culprits of evidence are those of an incident: of the
// same cause, or of the contention that became its incast; and at a known receiver, flows
// to that alone.
func (in *Incident) hasCulpritsOf(e *Evidence) bool {
	if in.AtReceiver && in.HasReceiver && !in.isFedBy(e) {
		return false
	}
	return e.Cause == in.Cause || e.Cause == anomaly.Contention && in.Cause == anomaly.Incast && in.isFedBy(e)
}

// isFedBy reports whether the flows of evidence go to the receiver of an incident.
func (in *Incident) isFedBy(e *Evidence) bool {
	return in.HasReceiver && e.HasReceiver && in.Receiver == e.Receiver
}

// insertSorted inserts into an ascending list without duplicates, up to a
// length.
func insertSorted[T any](list []T, v T, order func(a, b T) int, limit int) []T {
	i, found := slices.BinarySearchFunc(list, v, order)
	if found || len(list) >= limit {
		return list
	}
	return slices.Insert(list, i, v)
}
