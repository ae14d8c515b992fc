package api

import (
	"math"
	"sync"
	"time"
)

// stateFeed publishes changes of the fabric's state while there are clients.
type stateFeed struct {
	snapshots *snapshots
	hub       *EventHub

	mu   sync.Mutex
	base *fullState // the state that clients have; nil: no clients
	idle time.Time  // when the last client left
}

// fullState is a snapshot with which clients begin. They share its text.
type fullState struct {
	*State
	id   string
	text func() *eventText
}

func newFullState(st *State, id string) *fullState {
	return &fullState{State: st, id: id, text: sync.OnceValue(func() *eventText {
		own := *st
		own.Snapshot = id
		t, _ := newEventText("", StateEvent{}.event(), encodeEvent(StateEvent{State: own, Full: true}))
		return t
	})}
}

// resumeWindow is how long changes are still published after the last client has
// left, so that it can reconnect and resume.
const resumeWindow = 30 * time.Second

// subscribe adds a client, which either resumes after its last event or starts
// with a full state. Nothing is published in between.
func (f *stateFeed) subscribe(last string) (c *client, missed []message, full *fullState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, missed, resumed := f.hub.subscribe(last)
	if f.base == nil {
		f.base = newFullState(f.snapshots.newest())
		resumed = false
	}
	if resumed {
		return c, missed, nil
	}
	return c, nil, f.base
}

// tick publishes what has changed since the previous tick.
func (f *stateFeed) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.base == nil {
		return
	}
	if clients, _, _ := f.hub.stats(); clients > 0 {
		f.idle = now
	} else if now.Sub(f.idle) > resumeWindow {
		f.base = nil
		f.hub.invalidateIDs() // later changes are in no event
		return
	}
	next, changes := f.snapshots.changes(f.base.id)
	if next == f.base.State {
		return
	}
	f.base = newFullState(next, changes.Snapshot)
	f.hub.Publish(StateEvent{State: changes, Full: changes.Since == ""}) // full: the topology changed
}

// changed reports whether a port has reported between two snapshots, ms milliseconds
// apart: more than its age differs.
func (p *PortState) changed(next *PortState, ms float64) bool {
	return p.withAge(ms) != next.withAge(0)
}

// withAge returns the state of a port that has not reported for another ms
// milliseconds: only the age differs. Without this every port would change at
// every tick. Ages are rounded to 1 µs, so that sums of floats compare equal.
func (p PortState) withAge(ms float64) PortState {
	if p.AgeMs >= 0 {
		p.AgeMs = math.Round((p.AgeMs+ms)*1000) / 1000
	}
	return p
}
