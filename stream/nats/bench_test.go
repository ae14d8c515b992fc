package nats

import (
	"fmt"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// BenchmarkStream publishes messages, reads and acknowledges them, through a broker that
// writes files.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{200, 16 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			cfg := testConfig(8, model.MiB)
			cfg.Backlog = 4096
			s, err := Open(b.Context(), connect(b, shared.URL()), cfg)
			if err != nil {
				b.Fatal(err)
			}
			sub, err := s.Subscribe()
			if err != nil {
				b.Fatal(err)
			}
			data := make([]byte, size)
			accepted, got, key := 0, 0, uint64(0)
			poll := func() {
				n, err := sub.Poll(func(stream.Message) {})
				if err != nil {
					b.Fatal(err)
				}
				if got += n; n > 0 {
					if err := sub.Ack(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				for key++; s.Publish(key, stream.Message{Data: data}) != nil; {
					poll()
				}
				accepted++
			}
			for got < accepted {
				poll()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e3, "kmsg/s")
		})
	}
}
