package flowwatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
)

// BenchmarkParts divides slots among partitions, encodes and decodes them, analyses them, and
// encodes, decodes and merges the results, as a cluster does.
func BenchmarkParts(b *testing.B) {
	for _, n := range []int{150, 10_000} {
		b.Run(fmt.Sprintf("flows=%d", n), func(b *testing.B) { benchmarkParts(b, n) })
	}
}

func benchmarkParts(b *testing.B, perSwitch int) {
	const parts = 4
	s := newSteady(b, perSwitch)
	cfg := s.config(parts)
	split := NewSplitter(cfg, parts)
	merger, err := NewResultMerger(*cfg)
	check(b, err)
	analyzers := make([]*PartAnalyzer, parts)
	for i := range analyzers {
		analyzers[i], err = NewPartAnalyzer(*cfg, parts)
		check(b, err)
	}
	buffers := make([][]byte, parts)
	var divide, read, analyse, merge time.Duration
	var toParts, toLeader int
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		slot := s.slot(n)
		n++
		for i := range buffers {
			buffers[i] = buffers[i][:0]
		}
		at := [5]time.Duration{0: cpuTime()}
		split.Split(&DecodedSlot{Index: slot.Index, Sets: slot.Decoded}, slot.Length, n%10 == 0, buffers)
		at[1] = cpuTime()
		var results []*PartResult
		for i, a := range analyzers {
			toParts += len(buffers[i])
			began := cpuTime()
			var one PartSlot
			c := fieldcodec.NewReader(buffers[i])
			one.Code(c)
			check(b, c.End())
			got := cpuTime()
			w := fieldcodec.NewWriter(nil)
			a.Observe(&one).Code(w)
			done := cpuTime()
			toLeader += len(w.Written())
			r := NewPartResult(merger.Ports())
			c = fieldcodec.NewReader(w.Written())
			r.Code(c)
			check(b, c.End())
			results = append(results, r)
			read, analyse, merge = read+got-began, analyse+done-got, merge+cpuTime()-done
		}
		at[2] = cpuTime()
		if m := merger.Merge(results); m.Len() != s.flows {
			b.Fatalf("%d flows; want %d", m.Len(), s.flows)
		}
		divide, merge = divide+at[1]-at[0], merge+cpuTime()-at[2]
	}
	per := func(d time.Duration) float64 { return float64(d) / float64(b.N) / float64(s.hops) }
	b.ReportMetric(per(divide), "divide-ns/hop")
	b.ReportMetric(per(read), "read-ns/hop")
	b.ReportMetric(per(analyse), "analyse-ns/hop")
	b.ReportMetric(per(merge), "lead-ns/hop")
	b.ReportMetric(float64(toParts)/float64(b.N)/float64(s.hops), "B-to-parts/hop")
	b.ReportMetric(float64(toLeader)/float64(b.N)/float64(s.hops), "B-to-leader/hop")
}
