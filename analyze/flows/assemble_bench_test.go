package flows

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// BenchmarkAssemble assembles the flowset of one slot from chunks as an MTU of 1500
// bytes gives them, slot after slot.
func BenchmarkAssemble(b *testing.B) {
	for _, flows := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("flows=%d", flows), func(b *testing.B) {
			recorded := slotOf(b, 1, flows)
			var slots [8][][]byte
			for i := range slots {
				recorded.header.Slot = uint32(i)
				slots[i] = recorded.chunks(b, 1472)
			}
			a, err := NewAssembler(DefaultConfig())
			if err != nil {
				b.Fatal(err)
			}
			var out []*Flowset
			bytes := 0
			for _, c := range slots[0] {
				bytes += len(c)
			}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			meter := newCPUMeter(1)
			for n := 0; b.Loop(); n++ {
				// The ring of finished slots is as long as slots: every round begins anew.
				if n%len(slots) == 0 {
					if a, err = NewAssembler(DefaultConfig()); err != nil {
						b.Fatal(err)
					}
				}
				now := model.Time(n) * model.Time(10*time.Millisecond)
				for _, c := range slots[n%len(slots)] {
					if out, err = a.AddChunk(now, c, out[:0]); err != nil {
						b.Fatal(err)
					}
				}
				if len(out) != 1 {
					b.Fatalf("%d flowsets of all chunks; want 1", len(out))
				}
				meter.endRound()
			}
			meter.report(b)
		})
	}
}
