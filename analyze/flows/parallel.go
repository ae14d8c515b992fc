package flows

import (
	"sync"
	"sync/atomic"
)

// parallelFor calls do for 0 to n-1 on the given number of goroutines and waits
// for all. Calls must not depend on each other; then the result does not depend
// on the number of goroutines either.
func parallelFor(workers, n int, do func(i int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
