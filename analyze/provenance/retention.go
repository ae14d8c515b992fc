package provenance

import (
	"container/list"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// addDetection adds a detection, and evicts others if there are too many.
func (c *Collector) addDetection(ev poll.Event, expected bool) *detection {
	if len(c.events) == c.cfg.Detections {
		c.evictDetection()
	}
	d := &detection{event: ev, answers: map[model.NodeID][]snapshotRef{}, expected: expected, held: detectionSize}
	c.link(d)
	c.events[ev] = d
	c.usedByEvents += d.held
	return d
}

// order returns the list that a detection is in.
func (c *Collector) order(d *detection) *list.List {
	if d.expected {
		return c.expected
	}
	return c.unexpected
}

func (c *Collector) link(d *detection)   { d.element = c.order(d).PushBack(d) }
func (c *Collector) unlink(d *detection) { c.order(d).Remove(d.element) }

// addReference notes that a snapshot answers the poll of a detection.
func (c *Collector) addReference(ev poll.Event, by snapshotRef) error {
	d := c.events[ev]
	if d != nil && slices.ContainsFunc(d.answers[by.sw], by.sameSnapshot) {
		return nil
	}
	if d == nil {
		d = c.addDetection(ev, false)
	}
	if answers := d.answers[by.sw]; len(answers) == maxAnswers {
		oldest := 0
		for i := range answers {
			if answers[i].at < answers[oldest].at {
				oldest = i
			}
		}
		c.stats.Excess++
		if by.at < answers[oldest].at {
			return ErrExcess
		}
		c.release(answers[oldest].snapshotID)
		d.answers[by.sw] = append(slices.Delete(answers, oldest, oldest+1), by)
	} else {
		d.answers[by.sw] = append(answers, by)
		d.held += answerSize
		c.usedByEvents += answerSize
	}
	s := c.snapshots[by.snapshotID]
	if s == nil {
		s = &snapshot{id: by.snapshotID}
		c.snapshots[by.snapshotID] = s
	}
	s.refs++
	for c.usedByEvents > c.cfg.Memory/4 && c.evictOther(d) {
	}
	return nil
}

// sameSnapshot reports whether two references name one snapshot.
func (a snapshotRef) sameSnapshot(o snapshotRef) bool { return a.snapshotID == o.snapshotID }

// evictDetection evicts the oldest detection, one that is expected only if there is
// no other.
func (c *Collector) evictDetection() {
	c.evictOther(nil)
}

// evictOther evicts the oldest detection beside one, and reports whether there was
// any.
func (c *Collector) evictOther(keep *detection) bool {
	for _, order := range []*list.List{c.unexpected, c.expected} {
		e := order.Front()
		if e != nil && e.Value == keep {
			e = e.Next()
		}
		if e != nil {
			c.stats.Evicted++
			c.remove(e.Value.(*detection))
			return true
		}
	}
	return false
}

// remove drops a detection and the snapshots that no other refers to.
func (c *Collector) remove(d *detection) {
	delete(c.events, d.event)
	c.unlink(d)
	c.usedByEvents -= d.held
	for _, answers := range d.answers {
		for i := range answers {
			c.release(answers[i].snapshotID)
		}
	}
}

// release removes one reference to a snapshot, and with the last one the snapshot.
func (c *Collector) release(id snapshotID) {
	s := c.snapshots[id]
	if s == nil {
		return
	}
	if s.refs--; s.refs == 0 {
		c.free(s)
		delete(c.snapshots, id)
	}
}

// free frees the report of a snapshot.
func (c *Collector) free(s *snapshot) {
	if s.report == nil {
		return
	}
	h := c.holders[s.id.sw]
	h.used -= s.held
	c.used -= s.held
	if i := slices.Index(h.list, s); i >= 0 {
		h.list = slices.Delete(h.list, i, i+1)
	}
	if len(h.list) == 0 {
		delete(c.holders, s.id.sw)
	}
	s.report, s.held = nil, 0
}

// keep accounts for a report that has grown, and drops others of the switch that
// holds most if there is too little memory. It reports false if that is this one
// and the report had to be dropped.
func (c *Collector) keep(s *snapshot, r *Report) bool {
	h := c.holders[s.id.sw]
	if h == nil {
		h = &holder{}
		c.holders[s.id.sw] = h
	}
	if s.report == nil {
		h.list = append(h.list, s)
	}
	s.report = r
	grown := r.memory() - s.held
	s.held += grown
	h.used += grown
	c.used += grown
	for c.used > c.cfg.Memory*3/4 {
		most := h
		for _, o := range c.holders {
			if o.used > most.used {
				most = o
			}
		}
		victim := most.list[0]
		if victim == s && len(most.list) > 1 {
			victim = most.list[1]
		}
		c.stats.Dropped++
		c.free(victim)
		if victim == s {
			return false
		}
	}
	return true
}
