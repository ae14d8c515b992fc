package embedded_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// BenchmarkPage reads pages of 100 flows from the table, at several depths, and of
// one flow.
func BenchmarkPage(b *testing.B) {
	cfg := testConfig()
	cfg.CacheSize, cfg.MaxPage = 0, 1000
	s := open(b, filepath.Join(b.TempDir(), "weft.duckdb"), cfg)
	defer mustClose(b, s)
	const flows, slots = 10_000, 40
	key := func(i int) model.FlowKey {
		return model.FlowKey{Src: model.Addr4(uint32(i)), Dst: model.Addr4(uint32(7 * i)), SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
	}
	for n := range slots {
		batch := &record.Batch{}
		for i := range flows {
			packets := uint64(i%97 + n%13)
			batch.Flows = append(batch.Flows, record.FlowSlot{
				Time: base.Add(time.Duration(n) * 10 * time.Millisecond), Flow: key(i), Src: fmt.Sprint("h", i%1024), Dst: fmt.Sprint("h", 7*i%1024), Packets: packets,
				Path: []record.FlowHop{{Switch: fmt.Sprint("e", i%32), Packets: packets}, {Switch: fmt.Sprint("a", i%16), Packets: packets}, {Switch: fmt.Sprint("e", 7*i%32), Packets: packets}},
			})
		}
		mustAppend(b, s, batch)
	}
	if _, err := s.Maintain(context.Background(), base); err != nil {
		b.Fatal(err)
	}
	for name, query := range map[string]func(n int) record.Query{
		"all":  func(n int) record.Query { return record.Query{} },
		"flow": func(n int) record.Query { return record.Query{Flow: key(n * 37 % flows)} },
		"node": func(n int) record.Query { return record.Query{Node: "e3"} },
		"ends": func(n int) record.Query { return record.Query{Ends: record.FlowEnds{Src: key(n * 37 % flows).Src}} },
	} {
		b.Run(name, func(b *testing.B) {
			before := cpuTime(b)
			for n := 0; b.Loop(); n++ {
				q := query(n)
				q.Limit, q.To = 100, base.Add(time.Duration(slots-n*7%(slots/2))*10*time.Millisecond)
				if p, err := s.Flows(context.Background(), q); err != nil || len(p.Items) == 0 {
					b.Fatal(len(p.Items), err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
}

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
