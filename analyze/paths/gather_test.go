package paths

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
)

// TestGatherGivesEverySlotOnceInOrder shuffles flowsets within the wait: every
// one is on the map of its slot.
func TestGatherGivesEverySlotOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, err := NewGather(slot, 3)
		if err != nil {
			t.Fatal(err)
		}
		type item struct {
			at int64
			d  *flows.Decoded
		}
		var items []item
		for n := range int64(20) {
			for sw := range model.NodeID(3) {
				skew := time.Duration(rapid.IntRange(-4000, 4000).Draw(rt, "skew")) * time.Microsecond
				items = append(items, item{
					at: 10*n + rapid.Int64Range(0, 9).Draw(rt, "delay"),
					d:  &flows.Decoded{Switch: sw, Slot: uint32(n), Start: model.Time(n * int64(slot)).Add(skew), Length: slot},
				})
			}
		}
		slices.SortStableFunc(items, func(a, b item) int { return int(a.at - b.at) })
		next := int64(0)
		check := func(m *Map) {
			if m.Slot != next || len(m.sets) != 3 {
				rt.Fatalf("map of slot %d with %d switches; want slot %d with 3", m.Slot, len(m.sets), next)
			}
			next++
		}
		for _, it := range items {
			g.Add(it.d)
			for m := g.Next(); m != nil; m = g.Next() {
				check(m)
			}
		}
		for m := g.Flush(); m != nil; m = g.Flush() {
			check(m)
		}
		if next != 20 || g.Late != 0 || g.Odd != 0 {
			rt.Fatalf("%d maps, %d late, %d odd; want 20, 0, 0", next, g.Late, g.Odd)
		}
	})
}

func TestGatherCountsWhatItCannotPlace(t *testing.T) {
	g, err := NewGather(slot, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int64, length time.Duration) *flows.Decoded {
		return &flows.Decoded{Start: model.Time(n * int64(slot)), Length: length}
	}
	g.Add(at(5, slot))
	g.Add(at(7, slot))
	for g.Next() != nil {
	}
	g.Add(at(5, slot))
	g.Add(at(8, slot/2))
	g.Add(at(8+far, slot))
	if g.Late != 1 || g.Odd != 2 {
		t.Errorf("%d late, %d odd; want 1 and 2", g.Late, g.Odd)
	}
}

func TestSlotOfRoundsDownBeforeTheEpoch(t *testing.T) {
	for start, want := range map[time.Duration]int64{0: 0, -slot: -1, slot + 4*time.Millisecond: 1, slot - 4*time.Millisecond: 1, -4 * time.Millisecond: 0} {
		if got := SlotOf(&flows.Decoded{Start: model.Time(start), Length: slot}); got != want {
			t.Errorf("SlotOf(start %v) = %d; want %d", start, got, want)
		}
	}
}
