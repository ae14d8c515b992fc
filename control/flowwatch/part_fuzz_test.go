package flowwatch

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/slowslot"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
)

// FuzzParts: whatever arrives as a slot or as a result of a partition is refused, or analysed
// and merged, and results of slots can be read.
func FuzzParts(f *testing.F) {
	const slots, parts = 3, 2
	n := slowslot.NewNetwork(1, slots, 8, 0.1)
	cfg := DefaultConfig(n.Intent)
	split := NewSplitter(&cfg, parts)
	analyzer, err := NewPartAnalyzer(cfg, parts)
	if err != nil {
		f.Fatal(err)
	}
	for i := range slots {
		r := n.Slot(i)
		d := DecodedSlot{Index: int64(i)}
		for _, set := range r.Sets {
			d.Sets = append(d.Sets, *set)
		}
		buffers := make([][]byte, parts)
		split.Split(&d, slowslot.SlotLength, i == slots-1, buffers)
		var s PartSlot
		c := fieldcodec.NewReader(buffers[0])
		if s.Code(c); c.End() != nil {
			f.Fatal(c.Err())
		}
		result := fieldcodec.NewWriter(nil)
		analyzer.Observe(&s).Code(result)
		f.Add(buffers[0], result.Written())
	}
	f.Fuzz(func(t *testing.T, slot, result []byte) {
		analyzer, err := NewPartAnalyzer(cfg, parts)
		if err != nil {
			t.Fatal(err)
		}
		merger, err := NewResultMerger(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var s PartSlot
		c := fieldcodec.NewReader(slot)
		if s.Code(c); c.End() == nil {
			w := fieldcodec.NewWriter(nil)
			analyzer.Observe(&s).Code(w)
			c = fieldcodec.NewReader(w.Written())
			r := NewPartResult(merger.Ports())
			if r.Code(c); c.End() != nil {
				t.Fatalf("the result of a slot cannot be read: %v", c.Err())
			}
			merger.Merge([]*PartResult{r})
		}
		r := NewPartResult(merger.Ports())
		c = fieldcodec.NewReader(result)
		if r.Code(c); c.End() == nil {
			merger.Merge([]*PartResult{r})
			merger.TakeLinks()
			merger.TakeImbalances()
		}
	})
}
