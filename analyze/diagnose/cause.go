package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
)

// cause is one or more terms of the account that go back to the same flows or
// host.
type cause struct {
	kind     attribution.Kind   // Contention or HostInjection; Unexplained: of a deadlock without a trigger
	place    *attribution.Place // where it began; nil: unknown
	culprits []attribution.Culprit
	deadlock *attribution.DeadlockCycle // nil: none
	term     *attribution.Term          // the longest
	time     time.Duration              // of all its terms
	queued   time.Duration              // of it: at the place itself, not paused
}

// causes returns the causes of the lateness, the longest first: none if they explain
// too little of it, and those that matter beside the longest.
func (m *analysis) causes() (list []cause) {
	a := m.account
	if a.Late <= 0 || a.Confidence() < m.cfg.MinExplainedShare {
		return nil
	}
	if m.detection.Latency <= 0 && a.Late < m.packet.Base {
		return nil // no packet can have taken twice its time: the queues do not make the flow slow
	}
	for i := range a.Terms {
		t := &a.Terms[i]
		if t.Kind == attribution.Unexplained {
			continue
		}
		c := cause{kind: t.Kind, place: t.Place, culprits: t.Culprits, term: t, time: t.Time, queued: t.Queued}
		if t.Kind == attribution.Deadlock {
			c.deadlock = &a.Deadlocks[t.Deadlock]
			c.kind, c.place, c.culprits = c.deadlock.TriggerKind, c.deadlock.Trigger, c.deadlock.TriggerCulprits
		}
		if same := slices.IndexFunc(list, func(o cause) bool { return (o.deadlock == nil) == (c.deadlock == nil) && o.sameAs(&c) }); same >= 0 {
			list[same].absorb(&c)
		} else {
			list = append(list, c)
		}
	}
	list = m.addTriggers(list)
	slices.SortStableFunc(list, func(a, b cause) int { return cmp.Compare(b.time, a.time) })
	for i := range list {
		if float64(list[i].time) < m.cfg.MinCauseShare*float64(list[0].time) {
			return list[:i]
		}
	}
	return list
}

// addTriggers adds to each deadlock that matters what its trigger delayed the packet
// beside it: both end when the trigger does.
func (m *analysis) addTriggers(list []cause) []cause {
	for i := range list {
		c := &list[i]
		if c.deadlock == nil || c.place == nil || float64(c.time) < m.cfg.MinCauseShare*float64(m.account.Late) {
			continue
		}
		for j := range list {
			if o := &list[j]; o.deadlock == nil && o.sameAs(c) {
				c.absorb(o)
				o.time = 0
			}
		}
	}
	return slices.DeleteFunc(list, func(c cause) bool { return c.time == 0 })
}

// sameAs reports whether two causes go back to the same host, or to contention of
// the same flows: in one queue or, as they travel together, in several.
func (c *cause) sameAs(o *cause) bool {
	if c.deadlock != nil && o.deadlock != nil && !samePlaces(c.deadlock.Cycle, o.deadlock.Cycle) {
		return false
	}
	switch {
	case c.kind != o.kind:
		return false
	case c.place == nil || o.place == nil:
		return c.place == o.place
	case c.place.Port == o.place.Port:
		return true
	}
	return c.kind == attribution.Contention && !c.term.Later && !o.term.Later && attribution.CommonShare(c.culprits, o.culprits) > 0.5
}

// absorb adds the time of another cause.
func (c *cause) absorb(o *cause) {
	c.time += o.time
	c.queued += o.queued
	if len(c.culprits) == 0 && !o.term.Later {
		c.culprits = o.culprits
	}
}

func samePlaces(a, b []attribution.Place) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p attribution.Place) bool { return !slices.Contains(b, p) })
}
