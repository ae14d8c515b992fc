package flowwatch

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/flowset"
)

const slot = 10 * ms

func set(sw model.NodeID, start model.Time, length time.Duration) *flows.Flowset {
	return &flows.Flowset{Header: flowset.Header{Switch: sw, Start: start, Length: length}}
}

// TestGatherGivesEverySlotOnceInOrder shuffles flowsets within the wait, and
// loses some: every one that comes is in its slot.
func TestGatherGivesEverySlotOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := slotGatherer{length: slot, wait: 3}
		type item struct {
			at   int64
			slot int64
			fs   *flows.Flowset
		}
		var items []item
		want := map[int64]int{}
		for n := range int64(20) {
			for sw := range model.NodeID(3) {
				if n > 0 && rapid.IntRange(0, 9).Draw(rt, "lost") == 0 {
					continue
				}
				skew := time.Duration(rapid.IntRange(-4000, 4000).Draw(rt, "skew")) * time.Microsecond
				items = append(items, item{10*n + rapid.Int64Range(0, 9).Draw(rt, "delay"), n, set(sw, model.Time(n*int64(slot)).Add(skew), slot)})
				want[n]++
			}
		}
		slices.SortStableFunc(items, func(a, b item) int { return int(a.at - b.at) })
		next, given := int64(0), 0
		take := func() {
			n, sets := g.takeSlot()
			if n != next {
				rt.Fatalf("slot %d given out; want %d", n, next)
			}
			next++
			given += len(sets)
		}
		for _, it := range items {
			g.addFlowset(0, it.fs)
			for g.complete() {
				take()
			}
			for g.overdue() {
				take()
			}
			g.tick(model.Time(it.at) * model.Time(ms))
		}
		for g.hasSlot() {
			take()
		}
		total := 0
		for _, n := range want {
			total += n
		}
		// No switch is missing long enough that none of its flowsets is expected.
		if given != total || g.late != 0 || g.odd != 0 {
			rt.Fatalf("%d flowsets given out, %d late, %d odd; want all %d", given, g.late, g.odd, total)
		}
	})
}

// TestGatherLooksAtAllBeforeItJudges: a collector that did not look for long
// finds many slots of one switch before the first of the next.
func TestGatherLooksAtAllBeforeItJudges(t *testing.T) {
	g := slotGatherer{length: slot, wait: 3}
	const slots, switches = 20, 5
	given := 0
	for look := range 2 {
		first := g.newest + 1
		for sw := range model.NodeID(switches) {
			for n := range int64(slots) {
				g.addFlowset(0, set(sw, model.Time((first+n)*int64(slot)), slot))
			}
		}
		for again := range 3 { // finds nothing new
			g.tick(model.Time(10*look+again) * model.Time(slot))
			for g.complete() || g.overdue() {
				_, sets := g.takeSlot()
				given += len(sets)
			}
		}
	}
	for g.hasSlot() {
		_, sets := g.takeSlot()
		given += len(sets)
	}
	if given != 2*slots*switches || g.late != 0 {
		t.Errorf("%d flowsets given out, %d late; want all %d", given, g.late, 2*slots*switches)
	}
}

// TestGatherMissesWhatANewReporterCountedBefore: a collector that starts while the
// fabric runs hears of some switches first in later slots. Their silence in the
// slots before says nothing about flows.
func TestGatherMissesWhatANewReporterCountedBefore(t *testing.T) {
	at := func(n int64) model.Time { return model.Time(n * int64(slot)) }
	for _, given := range []bool{false, true} {
		g := slotGatherer{length: slot, wait: 2}
		g.addFlowset(0, set(1, at(0), slot))
		first := int64(0)
		if given { // the new reporter is heard of between two slots
			g.addFlowset(0, set(1, at(1), slot))
			g.takeSlot()
			first = 1
		}
		g.addFlowset(0, set(2, at(first+1), slot))
		g.addFlowset(0, set(1, at(first+1), slot))
		if g.complete() {
			t.Errorf("after another slot %v: slot %d is complete without switch 2", given, first)
		}
		if got := g.missing(); len(got) != 1 || got[0].sw != 2 {
			t.Errorf("after another slot %v: slot %d misses %v; want switch 2", given, first, got)
		}
		g.takeSlot()
		if got := g.missing(); len(got) != 0 || !g.complete() {
			t.Errorf("after another slot %v: slot %d misses %v; want none", given, first+1, got)
		}
	}
}

func TestGatherCountsWhatItCannotPlace(t *testing.T) {
	g := slotGatherer{length: slot, wait: 1}
	at := func(n int64) model.Time { return model.Time(n * int64(slot)) }
	g.addFlowset(0, set(1, at(5), slot))
	g.addFlowset(0, set(1, at(7), slot))
	for n := range int64(3) {
		g.tick(at(8 + n))
	}
	for g.overdue() {
		g.takeSlot()
	}
	g.addFlowset(0, set(2, at(5), slot))
	g.addFlowset(0, set(1, at(8), slot/2))
	g.addFlowset(0, set(1, at(8+far), slot))
	if g.late != 1 || g.odd != 2 {
		t.Errorf("%d late, %d odd; want 1 and 2", g.late, g.odd)
	}
}

// TestGatherGoesByTheCollectorsClock: neither a clock that is ahead nor one that
// was never set, nor a long silence, makes flowsets of the others useless.
func TestGatherGoesByTheCollectorsClock(t *testing.T) {
	g := slotGatherer{length: slot, wait: 1, skew: slot}
	const now = model.Time(1_800_000_000 * time.Second)
	add := func(sw model.NodeID, at model.Time, of model.Time) { g.addFlowset(at, set(sw, of, slot)) }
	add(9, now, now.Add(time.Second)) // ahead
	add(8, now, 0)                    // counts from its start
	given := 0
	turn := func(from model.Time) {
		for i := range 10 {
			at := from.Add(time.Duration(i) * slot)
			for sw := range model.NodeID(3) {
				add(sw, at, at.Add(-slot))
			}
			add(9, at, at.Add(time.Second))
			add(8, at, model.Time(i)*model.Time(slot))
			for g.complete() || g.overdue() {
				_, sets := g.takeSlot()
				given += len(sets)
			}
			g.tick(at)
		}
	}
	turn(now)
	turn(now.Add(time.Hour))
	for g.hasSlot() {
		_, sets := g.takeSlot()
		given += len(sets)
	}
	// One slot of three switches is open when the hour of silence ends.
	if given+int(g.late) != 2*30+1+20 || given < 2*30-6 || g.odd != 21 {
		t.Errorf("%d flowsets given out, %d late, %d odd; want nearly all of the 60 of good clocks", given, g.late, g.odd)
	}
}
