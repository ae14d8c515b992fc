package control

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// TestMeterAgainstAList adds pauses and discards of ports over spans of time, and asks
// for spans of slots; a plain list of everything added must give the same.
func TestMeterAgainstAList(t *testing.T) {
	const slot = 10 * time.Millisecond
	type added struct {
		from, to model.Time
		port     model.Port
		paused   time.Duration
		lost     uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newPortMeter(slot, minMeterSlots)
		var all []added
		now := model.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			span := time.Duration(rapid.IntRange(1, 30).Draw(t, "ms")) * time.Millisecond
			now = now.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "step")) * time.Millisecond)
			n := added{
				from: max(now.Add(-span), 0), to: now,
				port: model.Port{Node: model.NodeID(rapid.IntRange(0, 2).Draw(t, "node")), Port: model.PortID(rapid.IntRange(1, 2).Draw(t, "port"))},
				lost: uint64(rapid.IntRange(0, 3).Draw(t, "lost")),
			}
			n.paused = time.Duration(rapid.IntRange(0, 10).Draw(t, "tenths")) * n.to.Sub(n.from) / 10
			m.addCounters(n.from, n.to, n.port, n.paused, n.lost)
			all = append(all, n)
		}
		slotOf := func(n *added) (first, last int64) {
			return int64(n.from) / int64(slot), (int64(n.to) - 1) / int64(slot)
		}
		_, last := slotOf(&all[len(all)-1])
		first := last - int64(rapid.IntRange(0, minMeterSlots/2).Draw(t, "back"))
		ask := model.Port{Node: model.NodeID(rapid.IntRange(0, 2).Draw(t, "whose")), Port: model.PortID(rapid.IntRange(0, 2).Draw(t, "which"))}
		var lost uint64
		share, across := 0.0, 0.0
		before := map[model.Port]float64{} // in the slot before
		for number := first; number <= last; number++ {
			paused := map[model.Port]float64{}
			for i := range all {
				n := &all[i]
				if n.port.Node != ask.Node || ask.Port != 0 && n.port.Port != ask.Port {
					continue
				}
				inSlot := min(n.to, model.Time(number+1)*model.Time(slot)) - max(n.from, model.Time(number)*model.Time(slot))
				paused[n.port] += float64(n.paused) * float64(max(inSlot, 0)) / float64(n.to-n.from)
			}
			for p, d := range paused {
				share, across = max(share, d/float64(slot)), max(across, (before[p]+d)/float64(slot))
			}
			before = paused
		}
		// Discards of a switch that were read in one slot are one number: they happened
		// from the start of the first span that ended there.
		type reading struct {
			lost uint64
			from int64
		}
		read := map[int64]reading{}
		for i := range all {
			from, to := slotOf(&all[i])
			if r, known := read[to]; all[i].port.Node == ask.Node && all[i].lost > 0 {
				if !known {
					r.from = from
				}
				read[to] = reading{r.lost + all[i].lost, min(r.from, from)}
			}
		}
		for to, r := range read {
			if to >= first && r.from <= last {
				lost += r.lost
			}
		}
		if got := m.pausedIn(ask, first, last); math.Abs(got-share) > 1e-6 {
			t.Fatalf("%v paused for %v of a slot from %d to %d, want %v", ask, got, first, last, share)
		}
		if got := m.pausedAcross(ask.Node, first, last); ask.Port == 0 && math.Abs(got-across) > 1e-6 {
			t.Fatalf("switch %d paused for %v of a slot in two from %d to %d, want %v", ask.Node, got, first, last, across)
		}
		if got := m.discardedIn(ask.Node, first, last); got != lost {
			t.Fatalf("switch %d discarded %d from %d to %d, want %d", ask.Node, got, first, last, lost)
		}
	})
}

// TestMeterBoundsASpan: counters of a switch that was silent for an hour are added to
// the slots that are remembered, in no more time than others.
func TestMeterBoundsASpan(t *testing.T) {
	m := newPortMeter(time.Microsecond, minMeterSlots)
	port := model.Port{Node: 1, Port: 2}
	to := model.Time(time.Hour)
	m.addCounters(0, to, port, time.Hour/2, 7)
	last := int64(to)/int64(time.Microsecond) - 1
	if got := m.pausedIn(port, last, last); got != 0.5 {
		t.Errorf("paused for %v of the last slot, want 0.5", got)
	}
	if got := m.discardedIn(1, last-3, last-2); got != 7 {
		t.Errorf("%d packets may have been discarded just before the end, want 7", got)
	}
}
