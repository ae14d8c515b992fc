package claim

import (
	"runtime"
	"time"
)

// CPU returns the processor time that work took, of all its goroutines and of
// the garbage collector: on a busy machine it says more than the time of day.
// Other work of the process must rest meanwhile.
func CPU(work func()) time.Duration {
	runtime.GC() // what came before is not this work's cost
	start := cpuTime()
	work()
	return cpuTime() - start
}

// Best returns the least processor time that work took in a number of rounds:
// what disturbs a round only makes it longer. prepare runs before each, untimed,
// and may be nil.
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

// Thread returns the processor time that work took on its own thread. It is for
// work beside which other goroutines run; work must start none.
func Thread(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	work()
	return threadTime() - start
}
