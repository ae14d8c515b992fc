package provenance

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Evidence is all reports on one detection.
type Evidence struct {
	Event   poll.Event
	Reports []*Report // by switch, the newest snapshot of each
	// PolledAt is when the poll came, for switches whose snapshot is older: it was
	// taken for another detection.
	PolledAt map[model.NodeID]model.Time
	// Returning are switches whose poll came on the path of the acknowledgements.
	Returning map[model.NodeID]bool
	// Pending are switches whose report refers to a snapshot that has not arrived.
	Pending []model.NodeID
}

// setPoll notes when a switch was polled, if that was not when it took its snapshot,
// and on which path.
func (e *Evidence) setPoll(by snapshotRef) {
	delete(e.PolledAt, by.sw)
	delete(e.Returning, by.sw)
	if by.polledAt > by.at {
		if e.PolledAt == nil {
			e.PolledAt = map[model.NodeID]model.Time{}
		}
		e.PolledAt[by.sw] = by.polledAt
	}
	if by.returning {
		if e.Returning == nil {
			e.Returning = map[model.NodeID]bool{}
		}
		e.Returning[by.sw] = true
	}
}

// Complete reports whether every switch that reported did so in full.
func (e *Evidence) Complete() bool {
	return len(e.Pending) == 0 && !slices.ContainsFunc(e.Reports, func(r *Report) bool { return !r.Complete() })
}

// Evidence returns what has arrived about a detection.
func (c *Collector) Evidence(ev poll.Event) *Evidence {
	e := &Evidence{Event: ev}
	d := c.events[ev]
	if d == nil {
		return e
	}
	for _, answers := range d.answers {
		for _, by := range answers {
			c.addAnswer(e, by)
		}
	}
	slices.Sort(e.Pending)
	return e
}

// addAnswer adds a report to the evidence, if it is the newest of its switch.
func (c *Collector) addAnswer(e *Evidence, by snapshotRef) {
	s := c.snapshots[by.snapshotID]
	if s == nil || s.report == nil {
		e.Pending = append(e.Pending, by.sw)
		return
	}
	r := s.report
	i, found := slices.BinarySearchFunc(e.Reports, by.sw,
		func(r *Report, sw model.NodeID) int { return int(r.Switch) - int(sw) })
	switch {
	case !found:
		e.Reports = slices.Insert(e.Reports, i, r)
	case r.Snapshot > e.Reports[i].Snapshot:
		e.Reports[i] = r
	default:
		return
	}
	e.setPoll(by)
}

// Memory returns what the reports take.
func (e *Evidence) Memory() (n model.Bytes) {
	for _, r := range e.Reports {
		n += r.memory()
	}
	return n
}
