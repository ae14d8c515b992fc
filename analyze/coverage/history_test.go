package coverage

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

func sampleAt(t model.Time, mark int) *Sample {
	return &Sample{Item: label.Item{Time: t, EnqueueDepth: model.Bytes(mark)}}
}

// sortedHistory is a slower history: a sorted list.
type sortedHistory []Sample

func (h *sortedHistory) insert(s *Sample, limit int) bool {
	at, found := slices.BinarySearchFunc(*h, s.Time, func(x Sample, t model.Time) int { return cmp.Compare(x.Time, t) })
	if found {
		return false
	}
	*h = slices.Insert(*h, at, *s)
	if len(*h) > limit {
		*h = slices.Delete(*h, 0, 1)
	}
	return true
}

// TestHistoryEqualsList compares with a sorted list on labels in order, late by a few
// places, of any time and repeated, in histories of all sizes.
func TestHistoryEqualsList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 70).Draw(rt, "limit")
		var h history
		var want sortedHistory
		newest := model.Time(1000)
		for i := range rapid.IntRange(0, 300).Draw(rt, "labels") {
			at := newest + model.Time(rapid.Int64Range(1, 3).Draw(rt, "step"))
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				at = newest - model.Time(rapid.Int64Range(0, 9).Draw(rt, "late by"))
			case 1:
				at = model.Time(rapid.Int64Range(0, 1500).Draw(rt, "time"))
			}
			newest = max(newest, at)
			s := sampleAt(at, i)
			if got, want := h.insert(s, limit), want.insert(s, limit); got != want {
				rt.Fatalf("label at %d is new: %v; want %v", at, got, want)
			}
			if len(h.ring) > limit {
				rt.Fatalf("room for %d samples; want %d at most", len(h.ring), limit)
			}
		}
		from := model.Time(rapid.Int64Range(0, 2000).Draw(rt, "from"))
		to := from + model.Time(rapid.Int64Range(-9, 2000).Draw(rt, "length"))
		var between []Sample
		for _, s := range want {
			if s.Time >= from && s.Time <= to {
				between = append(between, s)
			}
		}
		if got := h.between(0, 1<<60); !slices.Equal(got, want) {
			rt.Fatalf("samples %v; want %v", got, want)
		}
		if got := h.between(from, to); !slices.Equal(got, between) {
			rt.Fatalf("samples from %d to %d: %v; want %v", from, to, got, between)
		}
	})
}

// TestFullHistoryAllocatesNothing holds a label at a full history to no allocation.
func TestFullHistoryAllocatesNothing(t *testing.T) {
	const limit = 64
	var h history
	now := model.Time(0)
	add := func() {
		now += 10
		h.insert(sampleAt(now, 0), limit)
		h.insert(sampleAt(now-35, 0), limit)
	}
	for range 2 * limit {
		add()
	}
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("insert allocates %v times; want 0", n)
	}
}

// BenchmarkHistory inserts labels into a full history, late by a number of places.
func BenchmarkHistory(b *testing.B) {
	for _, late := range []model.Time{0, 4} {
		b.Run(fmt.Sprintf("late=%d", late), func(b *testing.B) {
			var h history
			now := model.Time(0)
			for b.Loop() {
				now += 10
				h.insert(&Sample{Item: label.Item{Time: now - now/10%2*(10*late+5)}}, 4096)
			}
		})
	}
}
