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

// BenchmarkAppendEntry is reports of 150 bytes in entries as long as a datagram.
func BenchmarkAppendEntry(b *testing.B) {
	s, err := NewScheme(Config{Layout: Weft, Batch: 16, Classes: []Class{{Lists: 1, Entry: 1472, Capacity: 1024, Sized: true}}})
	if err != nil {
		b.Fatal(err)
	}
	data, batch := make([]byte, 150), make([]byte, 0, 1474)
	for b.Loop() {
		if batch, err = s.AppendEntry(batch[:0], 0, data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReport is a report in an entry as long as a datagram, from its batch into
// the ring and out of it.
func BenchmarkReport(b *testing.B) {
	for _, size := range []int{150, 1414} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			tab := open(b, Config{Layout: Weft, Batch: 16, Classes: []Class{{Lists: 1, Entry: 1472, Capacity: 16 << 10, Sized: true}}})
			defer tab.Region().Close()
			w, data, c := tab.Writer(0), make([]byte, size), Cursor{}
			var batch, raw []byte
			for range 16 {
				batch, _ = tab.AppendEntry(batch, 0, data)
			}
			for b.Loop() {
				_ = w.Append(0, batch)
				raw, _ = tab.Read(raw[:0], &c, 16)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/report")
		})
	}
}
