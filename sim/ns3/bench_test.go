package ns3

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// BenchmarkRun is the figure Weft's simulator is held against: every host of
// the k=4 fat-tree sends four flows of 10 Gb/s to hosts near and far.
func BenchmarkRun(b *testing.B) {
	if err := Available(); err != nil {
		b.Skip(err)
	}
	c := Config{K: 4, Rate: 100 * model.Gbps, Delay: time.Microsecond, Payload: 1000, Stop: time.Millisecond}
	for i := range 64 {
		src := i % 16
		c.Flows = append(c.Flows, Flow{
			Src: src, Dst: (src + 1 + i/16*4 + i%3) % 16, Bytes: model.GB,
			Start: time.Duration(i) * 13 * time.Nanosecond, Rate: 10 * model.Gbps,
		})
	}
	var sum Result
	for b.Loop() {
		r, err := Run(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		sum.PacketHops += r.PacketHops
		sum.Events += r.Events
		sum.Wall += r.Wall
		sum.CPU += r.CPU
	}
	b.ReportMetric(float64(sum.PacketHops)/sum.CPU.Seconds(), "hops/cpu-s")
	b.ReportMetric(float64(sum.PacketHops)/sum.Wall.Seconds(), "hops/wall-s")
	b.ReportMetric(float64(sum.Events)/float64(sum.PacketHops), "events/hop")
}
