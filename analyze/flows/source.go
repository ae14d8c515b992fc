package flows

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// source identifies one sequence of flowsets.
type source struct {
	sw    model.NodeID
	scope model.PortID
	key   uint8 // length, which determines the family
}

type slotID struct {
	seed uint64
	slot uint32
}

// openSets holds the open flowsets of one source.
type openSets struct {
	source
	open []*pending // oldest first
	// done holds the last flowsets emitted, so that a late chunk does not
	// open one of them again. It is a ring.
	done []slotID
	at   int

	last          model.Time // arrival of the last chunk
	before, after *openSets  // in the order of last
}

// close removes p from the open flowsets.
func (s *openSets) close(p *pending) {
	if i := slices.Index(s.open, p); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
	id := slotID{p.Seed, p.Slot}
	if len(s.done) < cap(s.done) {
		s.done = append(s.done, id)
	} else {
		s.done[s.at] = id
		s.at = (s.at + 1) % len(s.done)
	}
}

// maxSources bounds the distinct switches, ports and families where Config.Accept
// does not; silentAfter is after how long without a chunk a source is forgotten.
const (
	maxSources  = 1 << 16
	silentAfter = 10 * time.Second
)

// sourceTable finds sources, and forgets those that are silent.
type sourceTable struct {
	all  map[source]*openSets
	ends openSets // of a ring in the order of last: after is the one silent for longest
}

func newSourceTable() sourceTable { return sourceTable{all: map[source]*openSets{}} }

// find returns a source that a chunk has arrived of, nil if it is new.
func (t *sourceTable) find(id source, now model.Time) *openSets {
	s := t.all[id]
	if s != nil {
		s.last = now
		if s.after != &t.ends {
			s.unlink()
			t.link(s)
		}
	}
	return s
}

// add adds a source that remembers the last done flowsets.
func (t *sourceTable) add(id source, now model.Time, done int) *openSets {
	s := &openSets{source: id, done: make([]slotID, 0, done), last: now}
	t.all[id] = s
	t.link(s)
	return s
}

// link puts a source behind all others.
func (t *sourceTable) link(s *openSets) {
	if t.ends.after == nil {
		t.ends.before, t.ends.after = &t.ends, &t.ends
	}
	s.before, s.after = t.ends.before, &t.ends
	s.before.after, t.ends.before = s, s
}

func (s *openSets) unlink() { s.before.after, s.after.before = s.after, s.before }

// longestSilent returns the source that has to be forgotten for a new one, nil if
// there is capacity.
func (t *sourceTable) longestSilent() *openSets {
	if len(t.all) < maxSources {
		return nil
	}
	return t.ends.after
}

func (t *sourceTable) forget(s *openSets) {
	s.unlink()
	delete(t.all, s.source)
}

// forgetSilent forgets the sources without open flowsets that have been silent for
// long. It looks at one more than it forgets.
func (t *sourceTable) forgetSilent(now model.Time) {
	for s := t.ends.after; s != nil && s != &t.ends && len(s.open) == 0 && now.Sub(s.last) >= silentAfter; s = t.ends.after {
		t.forget(s)
	}
}
