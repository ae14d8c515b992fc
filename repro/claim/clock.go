package claim

import (
	"runtime"
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

// BestOfEach is Best for works that are compared. Rounds alternate between them:
// a disturbance that lasts for seconds slows rounds of all of them, and not all rounds of one.
func BestOfEach(rounds int, works ...Timed) []time.Duration {
	best := make([]time.Duration, len(works))
	for round := range rounds {
		for i, w := range works {
			took := Best(1, w.Prepare, w.Work)
			if round == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best
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
