package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
)

// crew runs windows on several cores: the caller is the first worker, and each
// other has a goroutine.
type crew struct {
	workers []*worker
	helpers []*helper
	end     engine.Time // of the window
	ended   bool
	wait    sync.WaitGroup
	caller  waiter

	_    [64]byte
	turn atomic.Uint32 // counts windows
	_    [64]byte
	busy atomic.Int32 // helpers that have not reached the end of the window
	_    [64]byte
}

// helper is the goroutine of a worker.
type helper struct {
	waiter
	w *worker
	_ [64]byte // the next one's fields are on other cache lines
}

func newCrew(workers []*worker) *crew {
	patience := maxPatience
	if len(workers) > runtime.GOMAXPROCS(0) {
		patience = 0 // a worker that waits awake takes a core from those that it waits for
	}
	c := &crew{workers: workers, caller: newWaiter(patience)}
	for _, w := range workers[1:] {
		h := &helper{w: w, waiter: newWaiter(patience)}
		c.helpers = append(c.helpers, h)
		c.wait.Go(func() { c.help(h) })
	}
	return c
}

// run runs a window up to, not including, end.
func (c *crew) run(end engine.Time) {
	c.end = end
	c.startTurn()
	c.workers[0].run(end)
	c.caller.await(func() bool { return c.busy.Load() == 0 })
}

func (c *crew) startTurn() {
	c.busy.Store(int32(len(c.helpers)))
	c.turn.Add(1)
	for _, h := range c.helpers {
		h.unpark()
	}
}

func (c *crew) help(h *helper) {
	for turn := uint32(0); ; turn++ {
		h.await(func() bool { return c.turn.Load() != turn })
		if c.ended {
			return
		}
		h.w.run(c.end)
		if c.busy.Add(-1) == 0 {
			c.caller.unpark()
		}
	}
}

// dismissCrew ends the goroutines.
func (s *schedule) dismissCrew() {
	if c := s.crew; c != nil {
		s.crew = nil
		c.ended = true
		c.startTurn()
		c.wait.Wait()
	}
}

// waiter is a goroutine that waits for others, awake at first: to wake one that
// sleeps may take as long as its share of a window. On a busy machine the others may
// have no core, and waiting awake keeps it from them. So a wait that ends asleep halves
// the patience, and it takes many others to restore it.
type waiter struct {
	patience time.Duration // how long it waits awake
	most     time.Duration // of patience
	parked   atomic.Bool   // it waits for wake
	wake     chan struct{}
}

const (
	maxPatience  = 200 * time.Microsecond
	patienceStep = maxPatience / 64
)

func newWaiter(patience time.Duration) waiter {
	return waiter{patience: patience, most: patience, wake: make(chan struct{}, 1)}
}

// await waits until ready. Who makes it ready calls unpark.
func (w *waiter) await(ready func() bool) {
	for !w.awaitAwake(ready) {
		w.parked.Store(true)
		if ready() && w.parked.CompareAndSwap(true, false) {
			return // no one has seen it asleep
		}
		<-w.wake // it may come late, and be for the window before
	}
}

// awaitAwake waits for as long as there is patience, and reports whether it is ready.
func (w *waiter) awaitAwake(ready func() bool) bool {
	if ready() {
		return true
	}
	for start := time.Now(); time.Since(start) < w.patience; {
		for range 32 { // about a microsecond
			relax()
			if ready() {
				w.patience = min(w.patience+patienceStep, w.most)
				return true
			}
		}
	}
	w.patience /= 2
	return false
}

// unpark wakes a goroutine that sleeps in await.
func (w *waiter) unpark() {
	if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}
