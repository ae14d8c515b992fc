package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
)

// compareCores runs the same fabric on one core and on two, and two fabrics on one
// core each at the same time, in turn. The latter share nothing: what they gain over
// one is the most that two cores of this machine can.
func compareCores(ctx context.Context, k int, programs programs) ([]Result, error) {
	what := fmt.Sprintf("k=%d", k)
	if programs != nil {
		what += ", telemetry on"
	}
	name, unit, peer := "packet-hops per second, two cores, "+what, "M/s", "Weft on one core"
	if runtime.GOMAXPROCS(0) < 2 {
		return []Result{skipped(name, unit, peer, twoCoresGoal, "this process has one core")}, nil
	}
	var runs [3]*simRun
	for i, cores := range []int{1, 2, 1} {
		r, err := newSimRun(k, programs)
		if err != nil {
			return nil, err
		}
		if err := r.net.SetCores(cores); err != nil {
			return nil, err
		}
		runs[i] = r
	}
	alone, shared, beside := inTurn{runs: runs[:1]}, inTurn{runs: runs[1:2]}, inTurn{runs: []*simRun{runs[0], runs[2]}}
	// Equal steps of simulated time, in turn, so that other load slows all.
	for alone.wall < 2*time.Second {
		for _, t := range []*inTurn{&alone, &shared, &beside} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t.step(20 * engine.Microsecond)
		}
	}
	speedup := higherIsBetter(name, shared.perWall(), unit, peer, alone.perWall(), twoCoresGoal)
	speedup.Note = fmt.Sprintf("two simulations side by side are %.2f times as fast as one, the most that this machine allows; "+
		"CPU time per packet-hop is %.2f times that of one core; %.2f cores were used",
		beside.perWall()/alone.perWall(), alone.perCPU()/shared.perCPU(), shared.cpu.Seconds()/shared.wall.Seconds())
	return []Result{speedup}, nil
}

// inTurn adds up what simulations that run at the same time take.
type inTurn struct {
	runs      []*simRun
	hops      int64
	wall, cpu time.Duration
}

// step runs each simulation for some simulated time.
func (t *inTurn) step(long engine.Time) {
	hops, cpu, start := t.count(), cpuTime(), time.Now()
	var others sync.WaitGroup
	for _, r := range t.runs[1:] {
		others.Go(func() { r.net.Run(r.net.Now() + long) })
	}
	first := t.runs[0].net
	first.Run(first.Now() + long)
	others.Wait()
	t.wall += time.Since(start)
	t.cpu += cpuTime() - cpu
	t.hops += t.count() - hops
}

func (t *inTurn) count() (hops int64) {
	for _, r := range t.runs {
		hops += r.net.Counts.Hops
	}
	return hops
}

// perWall and perCPU return millions of packet-hops per second.
func (t *inTurn) perWall() float64 { return float64(t.hops) / t.wall.Seconds() / 1e6 }
func (t *inTurn) perCPU() float64  { return float64(t.hops) / t.cpu.Seconds() / 1e6 }

// twoCoresGoal is how much faster two cores must be.
const twoCoresGoal = 1.7
