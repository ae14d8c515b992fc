package flowset

import (
	"testing"

	"github.com/weft-telemetry/weft/inswitch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// BenchmarkExport is what reading out, encoding and clearing costs, per cell
// of a table for 100K flows.
func BenchmarkExport(b *testing.B) {
	s, err := Plan(100_000, 0.99, Single)
	if err != nil {
		b.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.IPv4, cfg.IPv6 = Table{s.Geometry, Layout4}, Table{}
	p, err := New(inswitch.Device{ID: 1, MTU: 1500}, cfg)
	if err != nil {
		b.Fatal(err)
	}
	var act inswitch.Actions
	bytes := 0
	for b.Loop() {
		p.out.start(0, slot{})
		for p.out.active {
			act.Reset()
			p.out.sendBurst(&act)
			for _, r := range act.Reports {
				bytes += len(r.Data)
			}
		}
	}
	cells := float64(b.N) * float64(p.out.header.Units(wire.Cells))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/cells, "ns/cell")
	b.SetBytes(int64(bytes / b.N))
}
