package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
)

// compareCores runs the same fabric on one core and on two, in turn.
func compareCores(ctx context.Context, k int, programs programs) ([]Result, error) {
	what := fmt.Sprintf("k=%d", k)
	if programs != nil {
		what += ", telemetry on"
	}
	name, unit, peer := "packet-hops per second, two cores, "+what, "M/s", "Weft on one core"
	if runtime.GOMAXPROCS(0) < 2 {
		return []Result{skipped(name, unit, peer, twoCoresGoal, "this process has one core")}, nil
	}
	var runs [2]*simRun
	for i := range runs {
		r, err := newSimRun(k, programs)
		if err != nil {
			return nil, err
		}
		if err := r.net.SetCores(i + 1); err != nil {
			return nil, err
		}
		runs[i] = r
	}
	var wall [2]time.Duration
	// Equal steps of simulated time, in turn, so that other load slows both.
	for wall[0] < 2*time.Second {
		for i, r := range runs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			hops, cpu, start := r.net.Counts.Hops, cpuTime(), time.Now()
			r.net.Run(r.net.Now() + 20*engine.Microsecond)
			wall[i] += time.Since(start)
			r.cpu += cpuTime() - cpu
			r.hops += r.net.Counts.Hops - hops
		}
	}
	perWall := func(i int) float64 { return float64(runs[i].hops) / wall[i].Seconds() / 1e6 }
	speedup := higherIsBetter(name, perWall(1), unit, peer, perWall(0), twoCoresGoal)
	speedup.Note = fmt.Sprintf("CPU time per packet-hop is %.2f times that of one core; %.2f cores were used",
		runs[0].rate()/runs[1].rate(), runs[1].cpu.Seconds()/wall[1].Seconds())
	return []Result{speedup}, nil
}

// twoCoresGoal is how much faster two cores must be.
const twoCoresGoal = 1.7
