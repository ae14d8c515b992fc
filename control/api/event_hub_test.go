package api

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestHubDropsSlowClients counts disconnected clients exactly.
func TestHubDropsSlowClients(t *testing.T) {
	h := NewEventHub(4, 8)
	slow, _, _ := h.subscribe("")
	for range 5 {
		h.Publish(Mark{})
	}
	n := 0
	for range slow.events {
		n++
	}
	if clients, published, dropped := h.stats(); n != 4 || !slow.slow || clients != 0 || published != 5 || dropped != 1 {
		t.Errorf("%d events, %d clients, %d published, %d dropped; want 4, 0, 5, 1", n, clients, published, dropped)
	}
	h.unsubscribe(slow) // twice is harmless
	h.close()
	c, _, _ := h.subscribe("")
	if _, open := <-c.events; open {
		t.Error("a closed hub accepts clients")
	}
}

// TestHubResumes: after any number of events, a client that reconnects receives
// exactly those after its last, or must start again.
func TestHubResumes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := rapid.IntRange(1, 10).Draw(rt, "history")
		n := rapid.IntRange(0, 30).Draw(rt, "events")
		h := NewEventHub(4, history)
		for range n {
			h.Publish(Mark{})
		}
		last := rapid.IntRange(0, n+2).Draw(rt, "last")
		c, missed, ok := h.subscribe(fmt.Sprintf("%s-%d", h.run, last))
		if want := last <= n && n-last <= min(history, n); ok != want {
			rt.Fatalf("resumed %v, want %v", ok, want)
		}
		if !ok {
			return
		}
		if len(missed) != n-last {
			rt.Fatalf("%d missed, want %d", len(missed), n-last)
		}
		for i, m := range missed {
			if m.seq != uint64(last+i+1) {
				rt.Fatalf("missed %d is event %d", i, m.seq)
			}
		}
		h.unsubscribe(c)
	})
}
