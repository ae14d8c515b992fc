package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestSnapshotsAreMadeWhenAskedFor: a controller that nobody looks at makes none, and
// who looks gets a new one.
func TestSnapshotsAreMadeWhenAskedFor(t *testing.T) {
	c, f := lyingBed(t, time.Minute)
	c.view.wait = time.Minute
	at := today
	tick := func(d time.Duration) { at = at.Add(d); c.Tick(at) }
	tick(0)
	first := c.view.last.Load()
	if len(first.state.Ports) != switchPorts(f) || first.at != at {
		t.Fatalf("the first step made a snapshot of %d ports at %v; want all %d, at %v", len(first.state.Ports), first.at, switchPorts(f), at)
	}
	for range 100 {
		tick(time.Millisecond)
	}
	if c.view.last.Load() != first {
		t.Error("a snapshot was made that nobody asked for")
	}
	// Readers wait for the next step, which is not until they have asked.
	asked := make(chan model.Time)
	go func() { asked <- c.view.snapshot().at }()
	for !c.view.requested.Load() {
		time.Sleep(time.Millisecond)
	}
	tick(time.Millisecond)
	if got := <-asked; got != at {
		t.Errorf("a reader got a snapshot of %v; want that of the step after it asked, %v", got, at)
	}
	made := c.view.last.Load()
	for range 5 {
		tick(time.Millisecond)
		if c.View().State() != made.state {
			t.Errorf("a snapshot of %v was not reused at %v", made.at, at)
		}
	}
	if c.view.requested.Load() {
		t.Error("a fresh snapshot was asked for again")
	}
}

// TestReadersDoNotWaitForABusyController: it has a bound, and the old snapshot is
// better than none.
func TestReadersDoNotWaitForABusyController(t *testing.T) {
	c, _ := lyingBed(t, time.Minute)
	c.view.wait = time.Millisecond
	c.Tick(today)
	c.view.now.Store(int64(today.Add(time.Hour)))
	if s := c.view.snapshot(); s.at != today {
		t.Errorf("snapshot of %v; want the last one, of %v", s.at, today)
	}
}
