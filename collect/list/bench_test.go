package list

import (
	"fmt"
	"testing"
)

// BenchmarkAppend is batches of entries of 4 bytes, into a ring that stays in
// the cache.
func BenchmarkAppend(b *testing.B) {
	for _, entries := range []int{1, 2, 4, 16} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			tab := open(b, DefaultConfig(1, 1<<10))
			defer tab.Region().Close()
			w, batch := tab.Writer(0), make([]byte, 4*entries)
			for b.Loop() {
				if err := w.Append(0, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*entries)/b.Elapsed().Seconds()/1e6, "Mentries/s")
		})
	}
}
