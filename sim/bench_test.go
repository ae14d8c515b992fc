package sim

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// BenchmarkFatTree runs four paced RDMA flows from every host with PFC, ECN,
// DCQCN and ECMP on. Its unit is the field's: packets crossing links.
func BenchmarkFatTree(b *testing.B) {
	for _, size := range []struct{ k, cores int }{{4, 1}, {8, 1}, {16, 1}, {4, 2}, {8, 2}, {16, 2}} {
		b.Run(fmt.Sprintf("k=%d/cores=%d", size.k, size.cores), func(b *testing.B) {
			n := fatTree(b, size.k, DefaultConfig())
			if err := n.SetCores(size.cores); err != nil {
				b.Fatal(err)
			}
			hosts := n.fabric.Hosts()
			var flows []traffic.Flow
			for i, src := range hosts {
				for j := range 4 {
					dst := hosts[(i+1+(j*2+1)*len(hosts)/8)%len(hosts)]
					flows = append(flows, traffic.Flow{Src: src, Dst: dst, Stop: 1e12, Priority: 3, Rate: 10 * model.Gbps, Start: model.Time(100*j + i)})
				}
			}
			n.add(b, flows...)
			n.run(100 * time.Microsecond)
			start, cpu := n.Counts.Hops, cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				n.Run(n.Now() + 10*engine.Microsecond)
			}
			b.ReportMetric(float64(n.Counts.Hops-start)/b.Elapsed().Seconds()/1e6, "Mhop/s")
			b.ReportMetric(float64(n.Counts.Hops-start)/(cpuTime()-cpu).Seconds()/1e6, "Mhop/cpu-s")
			b.ReportMetric(float64(n.Counts.Events)/float64(n.Counts.Hops), "events/hop")
		})
	}
}

// cpuTime is what the process has used: on a shared machine it says more than
// the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
