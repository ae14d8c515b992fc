package serve

import (
	"os"
	"runtime"
)

// minProcs is the least GOMAXPROCS, however few cores there are. Analyses use all
// cores; with a thread for each runnable goroutine, the kernel prioritises threads
// that have used little CPU, which are those that answer the API. Go itself lets
// them wait for up to 10 ms at each turn, and an answer takes several. On two cores
// under full load the median latency of answers fell from 20 ms to 2 (weft bench
// serve).
const minProcs = 8

// RaiseGOMAXPROCS prepares the process for serving, unless the environment sets
// GOMAXPROCS, and returns a function that undoes it.
func RaiseGOMAXPROCS() (undo func()) {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) >= minProcs {
		return func() {}
	}
	before := runtime.GOMAXPROCS(minProcs)
	return func() { runtime.GOMAXPROCS(before) }
}
