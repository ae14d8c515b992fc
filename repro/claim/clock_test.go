package claim

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Sleeping takes no CPU time; a round that sleeps is not slower than one that
// does not, and one that works is.
func TestCPUIsWorkAlone(t *testing.T) {
	spin := func(n int) func() {
		return func() {
			x := 1.0
			for i := range n {
				x = x*1.0000001 + float64(i)
			}
			if x == 0 {
				t.Error("unreachable: x grows")
			}
		}
	}
	work := spin(30_000_000)
	took := Best(3, nil, work)
	idle := Best(3, nil, func() { time.Sleep(2 * took) })
	if idle >= took {
		t.Errorf("sleeping took %v, working %v", idle, took)
	}
	if half := Best(3, nil, spin(3_000_000)); half >= took {
		t.Errorf("a tenth of the work took %v, all of it %v", half, took)
	}
}

// Rounds alternate, each after its preparation, and the least time of each work counts.
func TestBestOfEachAlternates(t *testing.T) {
	var order string
	x := 1.0
	work := func(name string, n int) Timed {
		return Timed{func() { order += name }, func() {
			for i := range n {
				x = x*1.0000001 + float64(i)
			}
		}}
	}
	best := BestOfEach(3, work("a", 30_000_000), work("b", 3_000_000))
	if order != "ababab" || best[1] >= best[0] || best[1] <= 0 {
		t.Errorf("order %s, times %v; want ababab, and the second less than the first", order, best)
	}
}

// What other goroutines do, and sleep, is not the thread's work.
func TestThreadIsItsOwnWorkAlone(t *testing.T) {
	var stop atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for !stop.Load() {
			runtime.Gosched()
		}
	}()
	const nap = 50 * time.Millisecond
	if took := Thread(func() { time.Sleep(nap) }); took >= nap/2 {
		t.Errorf("sleeping beside work for %v took %v of the thread; want nearly nothing", nap, took)
	}
	stop.Store(true)
	<-stopped
	x := 1.0
	took := Thread(func() {
		for i := range 10_000_000 {
			x = x*1.0000001 + float64(i)
		}
	})
	if took <= 0 || x == 0 {
		t.Errorf("working took %v of the thread; want more than nothing", took)
	}
}
