package hpcc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/sim/engine"
)

// sixteenToOne is 16 hosts that send 500 KB to a 17th over one switch at once, under DCQCN
// without windows.
func sixteenToOne() map[string]string {
	var topology, flows strings.Builder
	fmt.Fprintf(&topology, "18 1 17\n17\n")
	fmt.Fprintln(&flows, 16)
	for h := range 17 {
		fmt.Fprintf(&topology, "%d 17 100Gbps 1us 0\n", h)
	}
	for h := range 16 {
		fmt.Fprintf(&flows, "%d 16 3 100 500000 2.0\n", h)
	}
	return map[string]string{
		"config.txt": `TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
SIMULATOR_STOP_TIME 2.1
HAS_WIN 0
BUFFER_SIZE 32
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 900
FAST_RECOVERY_TIMES 1
KMIN_MAP 1 100000000000 400
KMAX_MAP 1 100000000000 1600
PMAX_MAP 1 100000000000 0.2
`,
		"topology.txt": topology.String(), "flow.txt": flows.String(),
	}
}

// TestIncastSpreadsAsTheOriginal compares the completion times of an incast over 30 seeds
// with the reference implementation's over 30 others: the slowest flow, the median, and
// their ratio are distributed alike, and no flow straggles in either.
func TestIncastSpreadsAsTheOriginal(t *testing.T) {
	race.LeaveToPlainRun(t)
	const seeds = 30
	files := sixteenToOne()
	spread := func(run func(seed uint64) []float64) (slowest, median, ratio []float64) {
		for seed := range uint64(seeds) {
			took := run(seed)
			if len(took) != 16 {
				t.Fatalf("seed %d: %d flows finished; want 16", seed, len(took))
			}
			slices.Sort(took)
			slowest, median, ratio = append(slowest, took[15]), append(median, took[8]), append(ratio, took[15]/took[8])
			if took[15] > 1.1*took[14] {
				t.Errorf("seed %d: the slowest flow takes %.0f µs, the next %.0f; want no straggler", seed, took[15], took[14])
			}
		}
		return slowest, median, ratio
	}
	ours := [3][]float64{}
	ours[0], ours[1], ours[2] = spread(func(seed uint64) (took []float64) {
		s := setup(t, files)
		s.Sim.Seed = seed
		for _, r := range runSetup(t, s).Records() {
			took = append(took, float64(r.FCT())/float64(engine.Microsecond))
		}
		return took
	})
	theirs := [3][]float64{}
	theirs[0], theirs[1], theirs[2] = spread(func(seed uint64) (took []float64) {
		s := setup(t, files)
		o := newOriginal(s)
		o.rng = rand.New(rand.NewPCG(seed, 3))
		o.run()
		for _, q := range o.qps {
			took = append(took, float64(q.end-int64(s.Flows[q.flow].Start))/1000)
		}
		return took
	})
	for i, name := range []string{"slowest flow", "median", "slowest over median"} {
		// Two samples of 30 from one distribution are further apart once in 20.
		if d := kolmogorovSmirnov(ours[i], theirs[i]); d > 1.36*0.2582 {
			t.Errorf("%s: distance %.2f; want at most %.2f", name, d, 1.36*0.2582)
		}
	}
}

// kolmogorovSmirnov returns the largest difference of the distributions of two samples.
func kolmogorovSmirnov(a, b []float64) (most float64) {
	slices.Sort(a)
	slices.Sort(b)
	upTo := func(list []float64, v float64) float64 {
		n := 0
		for n < len(list) && list[n] <= v {
			n++
		}
		return float64(n) / float64(len(list))
	}
	for _, v := range slices.Concat(a, b) {
		most = max(most, upTo(a, v)-upTo(b, v), upTo(b, v)-upTo(a, v))
	}
	return most
}
