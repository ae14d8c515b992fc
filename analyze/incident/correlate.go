package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Config sets which evidence belongs together.
type Config struct {
	// QuietPeriod is how long after its last evidence an incident is closed.
	QuietPeriod time.Duration
	// TimeTolerance is how far the start of evidence may lie outside the life of
	// an incident for it to belong to it: sources detect faults at the pace of
	// their slots, epochs and polls.
	TimeTolerance time.Duration
	MaxOpen       int // limit of open incidents; beyond it the one with the oldest evidence is closed early
	// LastID is the number of the last incident of an earlier correlator, whose
	// numbers continue here.
	LastID uint64
}

// DefaultConfig suits slots of 10 ms and polls that take 100 ms.
func DefaultConfig() Config {
	return Config{QuietPeriod: 150 * time.Millisecond, TimeTolerance: 50 * time.Millisecond, MaxOpen: 256}
}

// Check returns an error for settings that cannot work.
func (c *Config) Check() error {
	switch {
	case c.QuietPeriod <= 0:
		return fmt.Errorf("incident: quiet period %v, want above 0", c.QuietPeriod)
	case c.TimeTolerance < 0:
		return fmt.Errorf("incident: time tolerance %v, want 0 or more", c.TimeTolerance)
	case c.MaxOpen < 1:
		return fmt.Errorf("incident: limit of %d open incidents, want at least 1", c.MaxOpen)
	}
	return nil
}

// Correlator keeps the open incidents. One goroutine uses it.
type Correlator struct {
	cfg           Config
	nextID        uint64
	open          []*Incident
	closedChanges []*Incident // closed, or changed after that, since TakeChanged
	remembered    []*Incident // closed ones that late evidence may still join
	matches       []*Incident // scratch memory: the incidents that evidence belongs to

	// ClosedEarly counts incidents that were closed to keep to MaxOpen.
	ClosedEarly uint64
}

// New returns a correlator without incidents.
func New(cfg Config) (*Correlator, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Correlator{cfg: cfg, nextID: cfg.LastID + 1}, nil
}

// AddEvidence adds evidence and returns its incident, which may be new. If it
// connects two incidents, the one that explains less becomes part of the one
// that explains more, and among equals the younger part of the older.
func (c *Correlator) AddEvidence(e Evidence) *Incident {
	e.keepOrder()
	match := c.findIncident(&e)
	if match == nil {
		match = &Incident{ID: c.nextID}
		c.nextID++
		if len(c.open) >= c.cfg.MaxOpen {
			c.closeStalest()
		}
		c.open = append(c.open, match)
	}
	match.addEvidence(&e)
	return match
}

// AddSupporting adds evidence if it belongs to an existing incident, and
// returns that; otherwise nil.
func (c *Correlator) AddSupporting(e Evidence) *Incident {
	e.keepOrder()
	match := c.findIncident(&e)
	if match != nil {
		match.addEvidence(&e)
	}
	return match
}

// FindExplanation returns the open incident that explains evidence best, or
// nil. The evidence is not added.
func (c *Correlator) FindExplanation(e Evidence) (best *Incident) {
	e.keepOrder()
	for _, in := range c.open {
		if c.isAbout(in, &e) && (best == nil || explains(in, best)) {
			best = in
		}
	}
	return best
}

// findIncident finds the incident that e belongs to, or nil: of several the one
// that explains most. It merges those that e shows to be one.
func (c *Correlator) findIncident(e *Evidence) (match *Incident) {
	list := c.matches[:0]
	for _, in := range c.open {
		if c.isAbout(in, e) {
			list = append(list, in)
			if match == nil || in.pauses(e) || !match.pauses(e) && explains(in, match) {
				match = in
			}
		}
	}
	c.matches = list
	for _, in := range list {
		if in == match || in.Closed {
			continue
		}
		if !c.canMerge(match, in, e) {
			if match.hasRoot() && in.hasRoot() {
				relate(match, in)
			}
			continue
		}
		part := in
		if !explains(match, in) && in.ID < match.ID {
			part, match = match, in
		}
		match.absorb(part)
		part.MergedInto = match.ID
		c.closeAt(slices.Index(c.open, part))
	}
	if match != nil {
		return match
	}
	// Some sources report late: a switch CPU takes 80 ms to read its telemetry, and few
	// losses of many packets take a second to show.
	for _, in := range slices.Backward(c.remembered) {
		if (e.From <= in.Last || in.continuesIn(e)) && c.isAbout(in, e) {
			c.markChanged(in)
			return in
		}
	}
	return nil
}

// explains reports whether the cause of a explains more than that of b.
func explains(a, b *Incident) bool {
	return a.Confirmed && !b.Confirmed || a.Confirmed == b.Confirmed && a.Cause > b.Cause
}

// pauses reports whether e shows a port that the host of an incident pauses: whatever else
// pauses reach, that port stays paused for as long as the host pauses it.
func (in *Incident) pauses(e *Evidence) bool {
	return (in.Cause == anomaly.Storm || in.Cause == anomaly.SlowReceiver) && e.Cause == anomaly.Stall && e.HasNextHop && e.NextHop == in.Location.Node
}

// MaxRemembered is how many closed incidents late evidence may join.
const MaxRemembered = 64

// isAbout reports whether e belongs to an incident: its time fits, its cause
// can be the same fault, and it shares a node or a flow.
func (c *Correlator) isAbout(in *Incident, e *Evidence) bool {
	tolerance := max(c.cfg.TimeTolerance, e.Interval, in.interval)
	later := tolerance
	if in.continuesIn(e) {
		later = max(tolerance, c.quietPeriod(in))
	}
	if e.From > in.Last.Add(later) || e.At < in.Begin.Add(-tolerance) {
		return false
	}
	if !in.Cause.Related(e.Cause) && !in.hasSameEvidence(e) {
		return false
	}
	if e.Cause > in.Cause && e.From > in.Begin.Add(tolerance) {
		return false // what started that much later cannot be the cause
	}
	if !e.Confirmed && e.Cause > in.Cause && e.Cause.Family() != in.Cause.Family() {
		return false // an unconfirmed larger cause supports nothing
	}
	if in.isBackgroundOf(e) {
		return false
	}
	if in.Cause == e.Cause && in.Cause.FabricWide() {
		return true // many switches with the same hash function are one fault
	}
	if in.Cause == e.Cause && in.Cause.PerPort() && in.Location != e.Location {
		return false // each congested queue is separate; otherwise all queues of a fabric would be connected
	}
	if in.hasRoot() && e.isRoot() {
		return in.isSameFault(e)
	}
	return in.isNear(e)
}

// continuesIn reports whether e shows the cause of an incident at a place where it was
// seen. A fault that comes in bursts is one for as long as its incident is open.
func (in *Incident) continuesIn(e *Evidence) bool {
	return e.Confirmed && in.Cause == e.Cause && (in.Location == e.Location || in.hasSameEvidence(e))
}

// isNear reports whether e shares a node or a flow with an incident.
func (in *Incident) isNear(e *Evidence) bool {
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

// hasSameEvidence reports whether an incident has the same evidence of the same
// location already, perhaps from when it had another cause: what continues
// there is no second fault. A suspicion that it supported says nothing about what is
// confirmed.
func (in *Incident) hasSameEvidence(e *Evidence) bool {
	return slices.ContainsFunc(in.Timeline, func(t Evidence) bool {
		return t.Source == e.Source && t.Cause == e.Cause && t.Location == e.Location && (t.Confirmed || !e.Confirmed)
	})
}

// canMerge reports whether two incidents that e belongs to are one: e is
// confirmed, and their causes are related, or both are consequences of e.
func (c *Correlator) canMerge(a, b *Incident, e *Evidence) bool {
	if !e.Confirmed {
		return false
	}
	if a.hasRoot() && b.hasRoot() && !(e.isRoot() && e.Cause > a.Cause && e.Cause > b.Cause) {
		// What both may lead to does not make them one fault.
		if other := b.asEvidence(); !a.isSameFault(&other) {
			return false
		}
	}
	if e.Cause > a.Cause && e.Cause > b.Cause {
		return true
	}
	if b.Cause > a.Cause {
		a, b = b, a
	}
	if a.Cause > b.Cause && a.Begin > b.Begin.Add(max(c.cfg.TimeTolerance, a.interval, b.interval)) {
		return false // what started that much later cannot be the cause
	}
	return a.Cause.Related(b.Cause)
}

// absorb takes over all evidence of another incident.
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
	in.Parts = insertSorted(in.Parts, o.ID, cmp.Compare[uint64], maxParts)
	in.Related = slices.DeleteFunc(in.Related, func(id uint64) bool { return id == o.ID })
}

// closeStalest closes the incident with the oldest evidence.
func (c *Correlator) closeStalest() {
	at := 0
	for i, in := range c.open {
		if in.Last < c.open[at].Last {
			at = i
		}
	}
	c.ClosedEarly++
	c.closeAt(at)
}

// closeAt closes the open incident at an index.
func (c *Correlator) closeAt(i int) {
	in := c.open[i]
	in.Closed, in.changed = true, true
	c.closedChanges = append(c.closedChanges, in)
	if in.MergedInto == 0 {
		if len(c.remembered) == MaxRemembered {
			c.remembered = slices.Delete(c.remembered, 0, 1)
		}
		c.remembered = append(c.remembered, in)
	}
	c.open = slices.Delete(c.open, i, i+1)
}

// quietPeriod is how long after its last evidence an incident is closed: QuietPeriod, or two
// intervals of the counters that show it.
func (c *Correlator) quietPeriod(in *Incident) time.Duration {
	return max(c.cfg.QuietPeriod, 2*in.interval)
}

// CloseQuiet closes incidents without evidence for their quiet period.
func (c *Correlator) CloseQuiet(now model.Time) {
	for i := 0; i < len(c.open); {
		if now > c.open[i].Last.Add(c.quietPeriod(c.open[i])) {
			c.closeAt(i)
			continue
		}
		i++
	}
}

// TakeChanged returns the incidents that are new, changed or closed since the
// last call, the oldest first. They stay the correlator's: late evidence may be
// added even to a closed one.
func (c *Correlator) TakeChanged() (list []*Incident) {
	list = append(list, c.closedChanges...)
	c.closedChanges = nil
	for _, in := range c.open {
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

// MarkChanged has TakeChanged return an incident once more: something about it is
// new that the correlator does not know.
func (c *Correlator) MarkChanged(id uint64) {
	if in := c.Find(id); in != nil {
		c.markChanged(in)
	}
}

func (c *Correlator) markChanged(in *Incident) {
	if in.Closed && !in.changed {
		c.closedChanges = append(c.closedChanges, in)
	}
	in.changed = true
}

// OpenIncidents returns the open incidents, the oldest first.
func (c *Correlator) OpenIncidents() []*Incident { return c.open }

// Doubt notes why an incident does not rely on a source. It does nothing if the source has no
// part in it.
func (c *Correlator) Doubt(in *Incident, s anomaly.Source, why string) {
	if in.Sources[s] > 0 && in.Doubts[s] == "" {
		in.Doubts[s] = why
		c.markChanged(in)
	}
}
