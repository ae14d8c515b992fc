package sim

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestWaiterLosesPatience: a wait that ends asleep halves the time awake, and waits
// that end awake restore it, up to what it was.
func TestWaiterLosesPatience(t *testing.T) {
	w := newWaiter(maxPatience)
	var ready atomic.Bool
	go func() {
		for !w.parked.Load() {
			runtime.Gosched()
		}
		ready.Store(true)
		w.unpark()
	}()
	if w.await(ready.Load); w.patience != maxPatience/2 {
		t.Errorf("patience %v after a wait asleep; want %v", w.patience, maxPatience/2)
	}
	w.patience = maxPatience - patienceStep - 1
	for i, want := range []int64{int64(maxPatience) - 1, int64(maxPatience), int64(maxPatience)} {
		polls := 0
		if w.await(func() bool { polls++; return polls > 2 }); int64(w.patience) != want {
			t.Errorf("patience %d after %d waits awake; want %d", w.patience, i+1, want)
		}
	}
}

// TestImpatientWaiterSleepsAtOnce: it looks once, and once more when others may see it
// asleep.
func TestImpatientWaiterSleepsAtOnce(t *testing.T) {
	w := newWaiter(0)
	polls := 0
	w.await(func() bool { polls++; return polls == 2 })
	if polls != 2 || w.parked.Load() || len(w.wake) != 0 {
		t.Errorf("%d looks, asleep %v, %d left to wake it; want 2, false and 0", polls, w.parked.Load(), len(w.wake))
	}
}

// TestCrewLargerThanTheMachineIsImpatient: who waits awake would take a core from those
// that it waits for.
func TestCrewLargerThanTheMachineIsImpatient(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	s := &n.sched
	for _, extra := range []int{0, 1} {
		var workers []*worker
		for i := range runtime.GOMAXPROCS(0) + extra {
			workers = append(workers, newWorker(n, i))
		}
		s.crew = newCrew(workers)
		patient := s.crew.caller.most > 0
		for _, h := range s.crew.helpers {
			if (h.most > 0) != patient {
				t.Errorf("a helper's patience is %v, the caller's %v; want the same", h.most, s.crew.caller.most)
			}
		}
		s.dismissCrew()
		if patient != (extra == 0) {
			t.Errorf("%d workers beyond the machine's cores: waits awake %v", extra, patient)
		}
	}
}
