package loss

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestLateIsTakenBack: packets that wait in a queue for three slots seem lost, until they
// arrive. They are not part of the loss map then, and hide no later loss, but for the one
// packet of slot 7: clocks may differ by a slot.
func TestLateIsTakenBack(t *testing.T) {
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[len(hosts)-1], 7)
	path := l.path(t, key)
	const each = time.Millisecond
	send := func(from, to time.Duration, wait func(time.Duration) time.Duration, lost func(n int) bool) {
		n := 0
		for at := from; at < to; at += each {
			cut := len(path)
			if lost(n) {
				cut = 2
			}
			l.send(path[:2], key, model.Time(at), time.Microsecond, cut)
			if cut > 2 {
				l.send(path[2:], key, model.Time(at+wait(at)), time.Microsecond, len(path))
			}
			n++
		}
	}
	none := func(int) bool { return false }
	const pause, open = 20 * time.Millisecond, 55 * time.Millisecond
	send(0, 70*time.Millisecond, func(at time.Duration) time.Duration {
		if at < pause || at >= open {
			return time.Microsecond
		}
		return open - at
	}, none)
	send(70*time.Millisecond, 71*time.Millisecond, func(time.Duration) time.Duration { return time.Microsecond }, none)
	send(80*time.Millisecond, 160*time.Millisecond, func(time.Duration) time.Duration { return time.Microsecond },
		func(n int) bool { return n%16 == 3 })
	tr, events := track(t, l)
	var early, later uint64
	for _, e := range events {
		if e.FirstSlot < 7 {
			early += e.Packets
		} else {
			later += e.Packets
		}
	}
	if early == 0 {
		t.Error("no packet seems lost while they wait: the test shows nothing")
	}
	if later != 4 {
		t.Errorf("events of %d packets lost after the pause, want 4: %+v", later, events)
	}
	var lost uint64
	for _, link := range tr.TakeLinks() {
		lost += link.Lost
	}
	if lost != 5 || tr.Stats().Late != early-1 {
		t.Errorf("%d packets lost by the loss map and %d late; want 5 and %d", lost, tr.Stats().Late, early-1)
	}
}
