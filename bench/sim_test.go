package bench

import (
	"testing"

	"github.com/weft-telemetry/weft/sim/engine"
)

// BenchmarkSim simulates what the suite simulates. Its profile is what make build
// compiles bin/weft with: see scripts/pgo.
func BenchmarkSim(b *testing.B) {
	b.Run("hpcc", func(b *testing.B) {
		for b.Loop() {
			rate, err := measureHPCC(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(1e3/rate, "cpu-ns/hop")
		}
	})
	for _, side := range []struct {
		name     string
		programs programs
	}{{"telemetry=off", nil}, {"telemetry=on", everyProgram}} {
		b.Run(side.name, func(b *testing.B) {
			r, err := newSimRun(4, side.programs)
			if err != nil {
				b.Fatal(err)
			}
			hops, cpu := r.net.Counts.Hops, cpuTime()
			for b.Loop() {
				r.net.Run(r.net.Now() + 10*engine.Microsecond)
			}
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(r.net.Counts.Hops-hops), "cpu-ns/hop")
		})
	}
}
