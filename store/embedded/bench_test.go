package embedded_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// BenchmarkAppend stores batches of a slot: half flows of three hops, half ports.
func BenchmarkAppend(b *testing.B) {
	for _, rows := range []int{100, 10_000} {
		b.Run("rows="+strconv.Itoa(rows), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "weft.duckdb"), testConfig())
			defer mustClose(b, s)
			var batch record.Batch
			for i := range rows / 2 {
				flow := model.FlowKey{Src: model.Addr4(0x0a000002), Dst: model.Addr4(uint32(0x0a000102 + i)), SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
				batch.Flows = append(batch.Flows, record.FlowSlot{
					Time: base, Slot: 10 * time.Millisecond, Flow: flow, Src: "h1", Dst: "h" + strconv.Itoa(i%128), Packets: uint64(i), Bytes: uint64(1000 * i), Exact: true,
					Path: []record.FlowHop{{Switch: "e1", Packets: uint64(i)}, {Switch: "a1", Packets: uint64(i)}, {Switch: "e2", Packets: uint64(i)}},
				})
				batch.Ports = append(batch.Ports, record.PortSample{Time: base, Node: "s" + strconv.Itoa(i%20), Port: model.PortID(i % 48), Queue: model.Bytes(i), Samples: 1})
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				for i := range batch.Flows {
					batch.Flows[i].Time = base.Add(time.Duration(n) * 10 * time.Millisecond)
					batch.Ports[i].Time = batch.Flows[i].Time
				}
				if err := s.Append(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
