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

// Rounds alternate, each after its preparation, and less work is faster.
func TestRoundsAlternate(t *testing.T) {
	var order string
	x := 1.0
	work := func(name string, n int) Timed {
		return Timed{func() { order += name }, func() {
			for i := range n {
				x = x*1.0000001 + float64(i)
			}
		}}
	}
	times := Alternate(3, work("a", 30_000_000), work("b", 3_000_000))
	if order != "ababab" || len(times[0]) != 3 || len(times[1]) != 3 {
		t.Errorf("order %s, times %v; want ababab, and three of each", order, times)
	}
	if faster := TimesFaster(times[1], times[0]); faster <= 1 {
		t.Errorf("a tenth of the work is %v times as fast, want more than 1: %v", faster, times)
	}
}

// A round that was disturbed as a whole, and one in which one work was, leave the median.
func TestTimesFasterIsTheMedian(t *testing.T) {
	a := []time.Duration{10, 50, 10, 10, 90}
	b := []time.Duration{30, 150, 30, 400, 30}
	if got := TimesFaster(a, b); got != 3 {
		t.Errorf("TimesFaster(%v, %v) = %v, want 3", a, b, got)
	}
	if got := TimesFaster(a[:2], []time.Duration{20, 200}); got != 3 {
		t.Errorf("TimesFaster of 2 and 4 = %v, want 3", got)
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
