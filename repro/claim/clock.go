package claim

import (
	"runtime"
	"slices"
	"time"
)

// Best returns the shortest time that work took in a number of rounds: what
// disturbs a round only makes it longer. prepare runs before each, untimed, and
// may be nil.
func Best(rounds int, prepare, work func()) time.Duration {
	times := make([]time.Duration, 0, rounds)
	for range rounds {
		if prepare != nil {
			prepare()
		}
		runtime.GC() // what earlier rounds left behind is not this one's cost
		start := time.Now()
		work()
		times = append(times, time.Since(start))
	}
	return slices.Min(times)
}
