package translate

import (
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Reporters is the table of reporters and their sequence numbers. All Intakes of a
// collector share one: the kernel gives datagrams from another port to another
// worker, where copies must be recognized as well. Each reporter has a lock, held
// while a datagram of it is handled.
type Reporters struct {
	most int

	mu     sync.RWMutex
	byID   map[model.NodeID]*sequence
	protos map[netip.Addr]*sequence
	// Reporters that are not authenticated, in a ring with places for most of
	// them. Anybody can invent them, so they are bounded and forgotten; those
	// that are authenticated are bounded by their keys.
	ring []trackedReporter
	hand int
	size int // authenticated ones included

	counted bool // an Intake counts the table in its Stats
}

// trackedReporter is a place in the ring.
type trackedReporter struct {
	id    model.NodeID
	proto netip.Addr // valid: a reporter of the prototype
	*sequence
}

// DefaultReporters is the default limit of tracked reporters: more than a large
// datacenter has switches. Each takes about 1 KiB, after a restart 2.
const DefaultReporters = 1 << 16

// forgetAfter is how long a reporter must have been silent to be forgotten for a
// new one, and forgetTries how many a new one looks at: a constant, so that
// invented reporters cost no more than others.
const (
	forgetAfter = time.Minute
	forgetTries = 8
)

// NewReporters returns a table of at most that number of reporters that are not
// authenticated.
func NewReporters(most int) *Reporters {
	return &Reporters{most: most, byID: map[model.NodeID]*sequence{}, protos: map[netip.Addr]*sequence{}}
}

// Len returns the number of reporters.
func (t *Reporters) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.size
}

// lock returns a reporter's sequence, locked; nil where the table is full. An
// authenticated reporter always has one.
func (t *Reporters) lock(now model.Time, id model.NodeID, signed bool) *sequence {
	for {
		t.mu.RLock()
		s := t.byID[id]
		t.mu.RUnlock()
		if s == nil {
			t.mu.Lock()
			if s = t.byID[id]; s == nil { // another Intake may have been faster
				if s = t.add(now, trackedReporter{id: id}, signed); s != nil {
					t.byID[id] = s
				}
			}
			t.mu.Unlock()
		}
		if s == nil || s.lock() {
			return s
		}
	}
}

// lockPrototype is lock for a reporter of the prototype, known by its address.
func (t *Reporters) lockPrototype(now model.Time, from netip.Addr) *sequence {
	for {
		t.mu.Lock()
		s := t.protos[from]
		if s == nil {
			if s = t.add(now, trackedReporter{proto: from}, false); s != nil {
				t.protos[from] = s
			}
		}
		t.mu.Unlock()
		if s == nil || s.lock() {
			return s
		}
	}
}

// lock locks a sequence and reports whether it is still in the table.
func (s *sequence) lock() bool {
	s.mu.Lock()
	if s.forgotten {
		s.mu.Unlock()
		return false
	}
	return true
}

// add makes a sequence for a new reporter, in the place of a silent one if all are
// taken. The table is locked.
func (t *Reporters) add(now model.Time, r trackedReporter, signed bool) *sequence {
	r.sequence = &sequence{received: now}
	switch {
	case signed:
	case len(t.ring) < t.most:
		t.ring = append(t.ring, r)
	default:
		place := t.forget(now)
		if place == nil {
			return nil
		}
		*place = r
	}
	t.size++
	return r.sequence
}

// forget removes a silent reporter and returns its place in the ring, or nil if
// the next ones are not silent.
func (t *Reporters) forget(now model.Time) *trackedReporter {
	for range min(forgetTries, len(t.ring)) {
		r := &t.ring[t.hand]
		t.hand = (t.hand + 1) % len(t.ring)
		if !r.mu.TryLock() {
			continue // a datagram is being handled
		}
		r.received = min(r.received, now) // the clock may have been set back
		// One that has authenticated since is not forgotten: its start must be
		// remembered. It keeps its place.
		if r.forgotten = r.start == 0 && now.Sub(r.received) >= forgetAfter; !r.forgotten {
			r.mu.Unlock()
			continue
		}
		r.mu.Unlock()
		if r.proto.IsValid() {
			delete(t.protos, r.proto)
		} else {
			delete(t.byID, r.id)
		}
		t.size--
		return r
	}
	return nil
}
