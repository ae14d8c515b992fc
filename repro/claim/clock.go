package claim

import (
	"runtime"
	"slices"
	"time"
)

// CPU returns the CPU time that work took, including its goroutines and the
// garbage collector: on a busy machine it is more accurate than the wall clock.
// No other work may run in the process meanwhile.
func CPU(work func()) time.Duration {
	runtime.GC() // earlier garbage is not this work's cost
	start := cpuTime()
	work()
	return cpuTime() - start
}

// Best returns the least CPU time that work took in a number of rounds: a
// disturbance only makes a round longer. prepare runs before each, untimed, and
// may be nil.
func Best(rounds int, prepare, work func()) (best time.Duration) {
	for i := range rounds {
		if prepare != nil {
			prepare()
		}
		if took := CPU(work); i == 0 || took < best {
			best = took
		}
	}
	return best
}

// Timed is work whose time is compared with that of other work. Prepare runs before
// it, untimed, and may be nil.
type Timed struct{ Prepare, Work func() }

// Alternate returns the CPU times of works that are compared, by work and round. Rounds
// alternate between them: a disturbance that lasts for seconds slows all works of a round,
// and not all rounds of one.
func Alternate(rounds int, works ...Timed) [][]time.Duration {
	times := make([][]time.Duration, len(works))
	for range rounds {
		for i, w := range works {
			times[i] = append(times[i], Best(1, w.Prepare, w.Work))
		}
	}
	return times
}

// TimesFaster returns how many times the time of b that of a is: the median of the rounds
// of Alternate.
func TimesFaster(a, b []time.Duration) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = float64(b[i]) / float64(max(a[i], 1))
	}
	slices.Sort(ratios)
	n := len(ratios)
	return (ratios[(n-1)/2] + ratios[n/2]) / 2
}

// Thread returns the CPU time that work took on its own thread. It is for work
// that runs beside other goroutines; work must start none.
func Thread(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	work()
	return threadTime() - start
}
