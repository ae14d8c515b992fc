package serve

import (
	"os"
	"runtime"
)

// leastProcs is how many goroutines run at one time at least, however few cores
// there are. Analyses take all the cores that they get; where there is a thread
// for each who wants to run, the kernel gives a core at once to who has used
// little, which is who answers the API. Go by itself lets them wait for up to
// 10 ms at each turn, and an answer takes several. On two cores under full load
// the median of answers fell from 20 ms to 2 (weft bench serve).
const leastProcs = 8

// Spread prepares the process for serving, unless GOMAXPROCS says otherwise in
// its environment, and returns what undoes it.
func Spread() (undo func()) {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) >= leastProcs {
		return func() {}
	}
	before := runtime.GOMAXPROCS(leastProcs)
	return func() { runtime.GOMAXPROCS(before) }
}
