package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Config says what belongs together.
type Config struct {
	// QuietPeriod is how long after its last evidence an incident is over.
	QuietPeriod time.Duration
	// TimeTolerance is how far the beginnings of two statements may lie from the life
	// of an incident for them to be of one: sources see trouble at the pace of
	// their slots, epochs and polls.
	TimeTolerance time.Duration
	MaxOpen  int // most that are open at a time; the quietest is closed early for one more
	// LastID is the number of the last incident of an earlier joiner, whose numbers
	// go on here.
	LastID uint64
}

// DefaultConfig suits slots of 10 ms and polls that take a tenth of a second.
func DefaultConfig() Config {
	return Config{QuietPeriod: 150 * time.Millisecond, TimeTolerance: 50 * time.Millisecond, MaxOpen: 256}
}

// Check complains about what cannot work.
func (c *Config) Check() error {
	switch {
	case c.QuietPeriod <= 0:
		return fmt.Errorf("incident: quiet %v, want above 0", c.QuietPeriod)
	case c.TimeTolerance < 0:
		return fmt.Errorf("incident: apart %v, want 0 or more", c.TimeTolerance)
	case c.MaxOpen < 1:
		return fmt.Errorf("incident: %d open, want 1 or more", c.MaxOpen)
	}
	return nil
}

// Correlator keeps the incidents that are open. One goroutine uses it.
type Correlator struct {
	cfg  Config
	nextID uint64
	open []*Incident
	closedChanges []*Incident // closed, or added to afterwards, since Changed was asked
	remembered []*Incident // closed ones that late evidence may still be about
	matches []*Incident // that a statement belongs to; its memory is used again

	// ClosedEarly counts incidents that were closed for want of room.
	ClosedEarly uint64
}

// New makes a joiner that has heard nothing.
func New(cfg Config) (*Correlator, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Correlator{cfg: cfg, nextID: cfg.LastID + 1}, nil
}

// AddEvidence files a statement and returns its incident, which may be new. Where it
// connects two that were apart, what explains less becomes part of what explains
// more, and of equals the younger part of the older.
func (j *Correlator) AddEvidence(e Evidence) *Incident {
	home := j.findIncident(&e)
	if home == nil {
		home = &Incident{ID: j.nextID}
		j.nextID++
		if len(j.open) >= j.cfg.MaxOpen {
			j.closeStalest()
		}
		j.open = append(j.open, home)
	}
	home.addEvidence(&e)
	return home
}

// AddSupporting files a statement if an open incident speaks of the same, and returns
// it; else nil.
func (j *Correlator) AddSupporting(e Evidence) *Incident {
	home := j.findIncident(&e)
	if home != nil {
		home.addEvidence(&e)
	}
	return home
}

// FindExplanation returns the open incident that explains a statement best, or nil. The
// statement is not filed.
func (j *Correlator) FindExplanation(e Evidence) (best *Incident) {
	for _, in := range j.open {
		if j.isAbout(in, &e) && (best == nil || explains(in, best)) {
			best = in
		}
	}
	return best
}

// findIncident finds the incident that e belongs to, or nil: of several the one that
// explains most. Those that e shows to be one become one.
func (j *Correlator) findIncident(e *Evidence) (home *Incident) {
	list := j.matches[:0]
	for _, in := range j.open {
		if j.isAbout(in, e) {
			list = append(list, in)
			if home == nil || explains(in, home) {
				home = in
			}
		}
	}
	j.matches = list
	for _, in := range list {
		if in == home || in.Closed || !j.canMerge(home, in, e) {
			continue
		}
		part := in
		if !explains(home, in) && in.ID < home.ID {
			part, home = home, in
		}
		home.absorb(part)
		part.MergedInto = home.ID
		j.closeAt(slices.Index(j.open, part))
	}
	if home != nil {
		return home
	}
	// Some sources speak late: a switch's processor takes its time.
	for _, in := range slices.Backward(j.remembered) {
		if e.From <= in.Last && j.isAbout(in, e) {
			if !in.changed {
				j.closedChanges = append(j.closedChanges, in)
			}
			return in
		}
	}
	return nil
}

// explains tells whether the cause of a says more than that of b.
func explains(a, b *Incident) bool {
	return a.Confirmed && !b.Confirmed || a.Confirmed == b.Confirmed && a.Cause > b.Cause
}

// MaxRemembered is how many closed incidents late evidence may join.
const MaxRemembered = 64

// isAbout tells whether e speaks of an incident: its time fits, its cause can
// be the same trouble, and it shares the place or a flow.
func (j *Correlator) isAbout(in *Incident, e *Evidence) bool {
	if e.From > in.Last.Add(j.cfg.TimeTolerance) || e.At < in.Begin.Add(-j.cfg.TimeTolerance) {
		return false
	}
	if !in.Cause.Related(e.Cause) && !in.hasSameEvidence(e) {
		return false
	}
	if e.Cause > in.Cause && e.From > in.Begin.Add(j.cfg.TimeTolerance) {
		return false // what began so much later cannot have caused it
	}
	if !e.Confirmed && e.Cause > in.Cause && e.Cause.Family() != in.Cause.Family() {
		return false // a guess at more than what is known supports nothing
	}
	if in.Cause == e.Cause && in.Cause.FabricWide() {
		return true // switches that hash alike are many, and one trouble
	}
	if in.Cause == e.Cause && in.Cause.PerPort() && in.Location != e.Location {
		return false // every queue has its own; else all queues of a fabric would hang together
	}
	near := e.anyNode(func(n model.NodeID) bool {
		_, found := slices.BinarySearch(in.Nodes, n)
		return found
	})
	if near {
		return true
	}
	for _, k := range e.Flows {
		if _, found := slices.BinarySearchFunc(in.Flows, k, model.FlowKey.Compare); found {
			return true
		}
	}
	for _, k := range e.Culprits {
		if _, found := slices.BinarySearchFunc(in.Culprits, k, model.FlowKey.Compare); found {
			return true
		}
	}
	return false
}

// hasSameEvidence tells whether an incident heard the same of the same place before, when it
// had another cause perhaps: what goes on there is no second trouble.
func (in *Incident) hasSameEvidence(e *Evidence) bool {
	return slices.ContainsFunc(in.Timeline, func(t Evidence) bool {
		return t.Source == e.Source && t.Cause == e.Cause && t.Location == e.Location
	})
}

// canMerge tells whether two incidents that e belongs to are one: e is sure,
// and their causes fit together, or both are consequences of e.
func (j *Correlator) canMerge(a, b *Incident, e *Evidence) bool {
	if !e.Confirmed {
		return false
	}
	if e.Cause > a.Cause && e.Cause > b.Cause {
		return true
	}
	if b.Cause > a.Cause {
		a, b = b, a
	}
	if a.Cause > b.Cause && a.Begin > b.Begin.Add(j.cfg.TimeTolerance) {
		return false // what began so much later cannot have caused it
	}
	return a.Cause.Related(b.Cause)
}

// absorb takes over all of another incident.
func (in *Incident) absorb(o *Incident) {
	begin, found := in.Begin, in.Found
	if in.Minor && !o.Minor {
		begin, found = o.Begin, o.Found
	} else if in.Minor == o.Minor {
		begin, found = min(begin, o.Begin), min(found, o.Found)
	}
	for i := range o.Timeline {
		in.addEvidence(&o.Timeline[i])
		in.Sources[o.Timeline[i].Source]-- // counted below
	}
	for s, n := range o.Sources {
		in.Sources[s] += n
	}
	in.Omitted += o.Omitted
	in.Minor = in.Minor && o.Minor
	in.Begin, in.Found, in.Last = begin, found, max(in.Last, o.Last)
	for _, n := range o.Nodes {
		in.Nodes = insertSorted(in.Nodes, n, cmp.Compare[model.NodeID], maxNodes)
	}
}

func (j *Correlator) closeStalest() {
	at := 0
	for i, in := range j.open {
		if in.Last < j.open[at].Last {
			at = i
		}
	}
	j.ClosedEarly++
	j.closeAt(at)
}

func (j *Correlator) closeAt(i int) {
	in := j.open[i]
	in.Closed, in.changed = true, true
	j.closedChanges = append(j.closedChanges, in)
	if in.MergedInto == 0 {
		if len(j.remembered) == MaxRemembered {
			j.remembered = slices.Delete(j.remembered, 0, 1)
		}
		j.remembered = append(j.remembered, in)
	}
	j.open = slices.Delete(j.open, i, i+1)
}

// CloseQuiet closes incidents that have been quiet for long enough.
func (j *Correlator) CloseQuiet(now model.Time) {
	for i := 0; i < len(j.open); {
		if now > j.open[i].Last.Add(j.cfg.QuietPeriod) {
			j.closeAt(i)
			continue
		}
		i++
	}
}

// TakeChanged returns the incidents that are new, have changed, or were closed
// since it was last asked, the oldest first. They are the joiner's own: late
// evidence may be added even to one that is closed.
func (j *Correlator) TakeChanged() (list []*Incident) {
	list = append(list, j.closedChanges...)
	j.closedChanges = nil
	for _, in := range j.open {
		if in.changed {
			list = append(list, in)
		}
	}
	for _, in := range list {
		in.changed = false
	}
	slices.SortFunc(list, func(a, b *Incident) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// MarkChanged has Changed tell of an open incident once more: something about it is
// new that the joiner does not know.
func (j *Correlator) MarkChanged(id uint64) {
	for _, in := range j.open {
		in.changed = in.changed || in.ID == id
	}
}

// OpenIncidents returns the incidents that are open, the oldest first.
func (j *Correlator) OpenIncidents() []*Incident { return j.open }
