package control

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestMeterAgainstAList notes pauses and full queues of ports, and asks for
// spans of slots; a plain list of everything noted must give the same.
func TestMeterAgainstAList(t *testing.T) {
	const slot = 10 * time.Millisecond
	type noted struct {
		slot   int64
		port   model.Port
		paused time.Duration
		lost   uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newPortMeter(slot)
		var all []noted
		now := model.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			now = now.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "ms")) * time.Millisecond)
			n := noted{
				slot:   (int64(now) - 1) / int64(slot),
				port:   model.Port{Node: model.NodeID(rapid.IntRange(0, 2).Draw(t, "node")), Port: model.PortID(rapid.IntRange(1, 2).Draw(t, "port"))},
				paused: time.Duration(rapid.IntRange(0, 3).Draw(t, "paused")) * time.Millisecond,
				lost:   uint64(rapid.IntRange(0, 3).Draw(t, "lost")),
			}
			m.addCounters(now, n.port, n.paused, n.lost)
			all = append(all, n)
		}
		last := all[len(all)-1].slot
		first := last - int64(rapid.IntRange(0, meterSlots/2).Draw(t, "back"))
		ask := model.Port{Node: model.NodeID(rapid.IntRange(0, 2).Draw(t, "whose")), Port: model.PortID(rapid.IntRange(0, 2).Draw(t, "which"))}
		bySlot := map[int64]map[model.Port]time.Duration{}
		var lost uint64
		for _, n := range all {
			if n.slot < first || n.slot > last || n.port.Node != ask.Node {
				continue
			}
			lost += n.lost
			if bySlot[n.slot] == nil {
				bySlot[n.slot] = map[model.Port]time.Duration{}
			}
			bySlot[n.slot][n.port] += n.paused
		}
		share := 0.0
		for _, ports := range bySlot {
			for p, d := range ports {
				if ask.Port == 0 || p.Port == ask.Port {
					share = max(share, float64(d)/float64(slot))
				}
			}
		}
		if got := m.pausedIn(ask, first, last); got != share {
			t.Fatalf("%v paused for %v of a slot from %d to %d, want %v", ask, got, first, last, share)
		}
		if got := m.discardedIn(ask.Node, first, last); got != lost {
			t.Fatalf("switch %d discarded %d from %d to %d, want %d", ask.Node, got, first, last, lost)
		}
	})
}
