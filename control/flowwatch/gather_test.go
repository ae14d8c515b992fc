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
		g := gather{length: slot, wait: 3}
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
			n, sets := g.take()
			if n != next {
				rt.Fatalf("slot %d given out; want %d", n, next)
			}
			next++
			given += len(sets)
		}
		for _, it := range items {
			g.add(it.fs)
			for g.ready() {
				take()
			}
		}
		for g.left() {
			take()
		}
		total := 0
		for _, n := range want {
			total += n
		}
		// A slot is given out early only if the sources of the one before are
		// all there: what one of them lost last time may come late now.
		if given+int(g.late) != total || g.odd != 0 {
			rt.Fatalf("%d flowsets given out, %d late, %d odd; want %d in all", given, g.late, g.odd, total)
		}
	})
}

func TestGatherCountsWhatItCannotPlace(t *testing.T) {
	g := gather{length: slot, wait: 1}
	at := func(n int64) model.Time { return model.Time(n * int64(slot)) }
	g.add(set(1, at(5), slot))
	g.add(set(1, at(7), slot))
	for g.ready() {
		g.take()
	}
	g.add(set(2, at(5), slot))
	g.add(set(1, at(8), slot/2))
	g.add(set(1, at(8+far), slot))
	if g.late != 1 || g.odd != 2 {
		t.Errorf("%d late, %d odd; want 1 and 2", g.late, g.odd)
	}
}
