package embedded_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

// sumRows and sumStore are about the store that BenchmarkFlowSums queries.
var (
	sumRows  = flag.Int("sumrows", 200_000, "flow rows of BenchmarkFlowSums")
	sumStore = flag.String("sumstore", "", "keep the store of BenchmarkFlowSums in this file; one that exists is queried as it is")
)

// BenchmarkRecentFlowSums lists the flows of the last minutes, of which memory has the
// sums by second: 320 flows in slots of 10 ms, as weft bench serve has them.
func BenchmarkRecentFlowSums(b *testing.B) {
	const flows, seconds = 320, 30
	s := open(b, filepath.Join(b.TempDir(), "weft.duckdb"), embedded.DefaultConfig())
	defer mustClose(b, s)
	for n := range seconds * 10 {
		batch := &record.Batch{}
		for slot := range 10 {
			for f := range flows {
				batch.Flows = append(batch.Flows, record.FlowSlot{
					Time: base.Add(time.Duration(10*n+slot) * 10 * time.Millisecond), Slot: 10 * time.Millisecond,
					Flow: model.FlowKey{Src: model.Addr4(uint32(f)), Dst: model.Addr4(1), DstPort: 4791, Proto: model.UDP}, Packets: uint64(f), Bytes: uint64(1000 * f),
					Path: []record.FlowHop{{Switch: "e1", Packets: uint64(f)}},
				})
			}
		}
		mustAppend(b, s, batch)
	}
	for name, from := range map[string]time.Time{"whole seconds": base.Add(5 * time.Second), "a second cut": base.Add(5300 * time.Millisecond)} {
		b.Run(name, func(b *testing.B) {
			before := cpuTime(b)
			for b.Loop() {
				a, err := s.FlowSums(context.Background(), record.FlowSumQuery{From: from, To: base.Add(time.Hour), Sort: record.ByBytes, Limit: 100})
				if err != nil || a.Totals.Flows != flows {
					b.Fatalf("%d flows, %v", a.Totals.Flows, err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkFlowSums lists the flows of an hour with the most losses, bytes, and so on,
// and reports the 95th percentile of the times. It compares the losses with those that
// were stored. docs/store.md has the figures and the command for 10 million rows.
func BenchmarkFlowSums(b *testing.B) {
	const slots = 1000
	perSlot := max(*sumRows/slots, 1)
	flows := 20 * perSlot
	key := func(i int) model.FlowKey {
		return model.FlowKey{Src: model.Addr4(0x0a000000 + uint32(i)), Dst: model.Addr4(0x0a800000 + uint32(7*i)), SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
	}
	cfg := embedded.DefaultConfig()
	cfg.CacheSize, cfg.QueryTime = 0, time.Minute // a busy machine is slow, not wrong
	path := *sumStore
	if path == "" {
		path = filepath.Join(b.TempDir(), "weft.duckdb")
	}
	_, err := os.Stat(path)
	stored := err == nil
	s := open(b, path, cfg)
	defer mustClose(b, s)
	lost := map[model.FlowKey]uint64{}
	for n := range slots {
		batch := &record.Batch{}
		at := base.Add(time.Duration(n) * 3600 * time.Millisecond)
		for i := range perSlot {
			f := (n*perSlot/50 + i*13) % flows
			packets := uint64(i%97 + n%13 + 1)
			batch.Flows = append(batch.Flows, record.FlowSlot{
				Time: at, Slot: 10 * time.Millisecond, Flow: key(f), Src: fmt.Sprint("h", f%1024), Dst: fmt.Sprint("h", 7*f%1024), Packets: packets, Bytes: 1000 * packets, Exact: true,
				Path: []record.FlowHop{{Switch: fmt.Sprint("e", f%32), Packets: packets}, {Switch: fmt.Sprint("a", f%16), Packets: packets}, {Switch: fmt.Sprint("e", 7*f%32), Packets: packets}},
			})
			if i%100 == 0 {
				batch.Losses = append(batch.Losses, record.Loss{Time: at, Flow: key(f), From: "e1", To: "a1", Packets: packets, Sent: packets})
				lost[key(f)] += packets
			}
		}
		if !stored {
			mustAppend(b, s, batch)
		}
	}
	if !stored {
		if _, err := s.Maintain(context.Background(), base); err != nil {
			b.Fatal(err)
		}
	}
	most := slices.Sorted(maps.Values(lost))
	slices.Reverse(most)
	measure := func(name string, query func() error) {
		b.Run(name, func(b *testing.B) {
			before := cpuTime(b)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if err := query(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1e3, "p95-ms")
			b.ReportMetric(float64(cpuTime(b)-before)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
	for _, sort := range []record.FlowSort{record.ByLost, record.ByBytes, record.ByRate} {
		measure("sort="+string(sort), func() error {
			a, err := s.FlowSums(context.Background(), record.FlowSumQuery{From: base, To: base.Add(time.Hour), Sort: sort, Limit: 5})
			if err != nil || len(a.Items) != 5 || a.Totals.Slots != uint64(slots*perSlot) {
				return fmt.Errorf("%d flows, totals %+v, %w", len(a.Items), a.Totals, err)
			}
			for i := range a.Items {
				if sort == record.ByLost && (a.Items[i].Lost != most[i] || lost[a.Items[i].Flow] != most[i]) {
					return fmt.Errorf("flow %d lost %d, want %d", i, a.Items[i].Lost, most[i])
				}
			}
			return nil
		})
	}
	for _, by := range []record.FlowGrouping{record.GroupByHost, record.GroupByLink} {
		measure("group="+string(by), func() error {
			g, err := s.FlowGroups(context.Background(), record.FlowGroupQuery{
				From: base, To: base.Add(time.Hour), Sort: record.ByBytes, GroupBy: by, Limit: 10, Step: time.Minute,
			})
			if err == nil && len(g.Groups) != 10 {
				err = fmt.Errorf("%d groups", len(g.Groups))
			}
			return err
		})
	}
}
