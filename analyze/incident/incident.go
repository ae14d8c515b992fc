package incident

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Incident is what is known of one trouble.
type Incident struct {
	ID     uint64
	Begin  model.Time // of what it is about
	Found  model.Time // first evidence
	Last   model.Time // newest evidence of the cause; its consequences may go on
	Closed bool       // nothing was heard of it for long enough, or it is part of Into
	MergedInto   uint64     // the incident that took it in; 0: none

	Cause anomaly.Cause
	Confirmed  bool // at least one source of the cause excludes what is harmless
	Minor bool // nothing was said yet that costs more than ordinary life does
	Location model.Port
	NextHop  model.NodeID // behind Place, where HasNextHop
	// HasNextHop, Text and Remedy are of the evidence that names the cause.
	HasNextHop bool
	Text    string
	Remedy  string

	Nodes    []model.NodeID  // it touches, ascending
	Flows    []model.FlowKey // that suffer, the first ones
	Culprits []model.FlowKey
	Sources  [anomaly.NumSources]int // statements of each that support the cause, or follow from it

	Timeline []Evidence // the first statements of each kind and source, in order
	Omitted  int        // statements that were counted and not kept

	changed bool
}

// Severity is the cause's, if it costs something.
func (in *Incident) Severity() anomaly.Severity {
	if in.Minor {
		return anomaly.Notice
	}
	return in.Cause.Severity()
}

// AgreeingSources lists the sources that have spoken.
func (in *Incident) AgreeingSources() (list []anomaly.Source) {
	for s := range anomaly.NumSources {
		if in.Sources[s] > 0 {
			list = append(list, s)
		}
	}
	return list
}

// Confidence is how much to believe the cause: each source that agrees leaves
// half of the doubt that was left. A cause that nobody is sure of stays below a
// half.
func (in *Incident) Confidence() float64 {
	doubt := 0.2
	if !in.Confirmed {
		doubt = 1
	}
	for range in.AgreeingSources() {
		doubt /= 2
	}
	return 1 - doubt
}

// MissingSources lists the sources that could have spoken and have not.
func (in *Incident) MissingSources() (list []anomaly.Source) {
	for _, s := range in.Cause.Sources() {
		if in.Sources[s] == 0 {
			list = append(list, s)
		}
	}
	return list
}

// Bounds of one incident. Flows beyond MaxFlows are not named.
const (
	maxTimeline = 32
	maxPerKind     = 4 // statements of one source and cause that are kept
	MaxFlows    = 64
	maxNodes    = 1 << 12
)

func (in *Incident) addEvidence(e *Evidence) {
	in.changed = true
	first := len(in.Timeline)+in.Omitted == 0
	minor := e.Minor || e.Cause.Severity() == anomaly.Notice
	if first || in.Minor && !minor { // ordinary life before is not where it began
		in.Begin, in.Found = e.From, e.At
	} else if in.Minor == minor {
		in.Begin, in.Found = min(in.Begin, e.From), min(in.Found, e.At)
	}
	in.Minor = (first || in.Minor) && minor
	in.Sources[e.Source]++
	if in.adoptCause(e) || e.Cause.Family() == in.Cause.Family() && in.Minor == minor {
		in.Last = max(in.Last, e.At) // ordinary life goes on when it is over
	}
	e.anyNode(func(n model.NodeID) bool {
		in.Nodes = insertSorted(in.Nodes, n, cmp.Compare[model.NodeID], maxNodes)
		return false
	})
	for _, k := range e.Flows {
		in.Flows = insertSorted(in.Flows, k, model.FlowKey.Compare, MaxFlows)
	}
	for _, k := range e.Culprits {
		in.Culprits = insertSorted(in.Culprits, k, model.FlowKey.Compare, MaxFlows)
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

// adoptCause takes over the cause of e if it says more than what is known: what is
// sure before what is not, then what explains more. Of equals the first stays,
// unless it did not know where. It tells whether it did.
func (in *Incident) adoptCause(e *Evidence) bool {
	first := len(in.Timeline)+in.Omitted == 0
	better := e.Confirmed && !in.Confirmed || e.Confirmed == in.Confirmed && (e.Cause > in.Cause || e.Cause == in.Cause && in.Text == "")
	if !first && !better {
		return false
	}
	if !first && e.Cause != in.Cause {
		in.Culprits = nil // of a cause that was none
	}
	in.Cause, in.Confirmed, in.Location, in.NextHop, in.HasNextHop = e.Cause, e.Confirmed, e.Location, e.NextHop, e.HasNextHop
	in.Text, in.Remedy = e.Text, cmp.Or(e.Remedy, e.Cause.Remedy())
	return true
}

// insertSorted keeps an ascending list without repeats, up to a length.
func insertSorted[T any](list []T, v T, order func(a, b T) int, most int) []T {
	i, found := slices.BinarySearchFunc(list, v, order)
	if found || len(list) >= most {
		return list
	}
	return slices.Insert(list, i, v)
}
