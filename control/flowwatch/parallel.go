package flowwatch

import (
	"sync"
	"sync/atomic"
)

// inParallel calls do for 0 to n-1 on some goroutines and waits for all. It gives do the number
// of the worker, too, whose calls come one after the other. A panic of one becomes one of the
// caller, who may have means against it.
func inParallel(workers, n int, do func(worker, i int)) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			do(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[any]
	for worker := range workers {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					failed.CompareAndSwap(nil, &p)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(worker, i)
			}
		})
	}
	wg.Wait()
	if p := failed.Load(); p != nil {
		panic(*p)
	}
}
