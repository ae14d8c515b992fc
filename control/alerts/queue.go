package alerts

import (
	"slices"
	"sync"
	"time"
)

// Losses counts alerts that a target did not receive, by reason.
type Losses struct {
	QueueFull uint64 // the oldest of a full queue
	Rejected  uint64 // the target refused it for good (4xx)
	Expired   uint64 // it could not be delivered in time
	Stopped   uint64 // the controller stopped before it was delivered
}

// queue is the alerts that wait for one target. A later state of an alert takes the
// place of the one that waits.
type queue struct {
	limit int
	wake  chan struct{}

	mu   sync.Mutex
	list []queued
	in   uint64 // alerts that were added or replaced
	out  uint64 // delivered
	lost Losses
	same uint64 // replaced by a later state while they waited
	err  error  // of the last delivery
}

type queued struct {
	Alert
	since time.Time
}

func newQueue(limit int) *queue { return &queue{limit: limit, wake: make(chan struct{}, 1)} }

func (q *queue) add(a Alert, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.in++
	if i := slices.IndexFunc(q.list, func(w queued) bool { return w.key() == a.key() }); i >= 0 {
		q.same++
		q.list[i].Alert = a
	} else {
		if len(q.list) >= q.limit {
			q.list = slices.Delete(q.list, 0, 1)
			q.lost.QueueFull++
		}
		q.list = append(q.list, queued{a, now})
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns the alerts to deliver next, at most n, after it has dropped those that
// wait for too long.
func (q *queue) take(n int, now time.Time, expire time.Duration) []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = slices.DeleteFunc(q.list, func(w queued) bool {
		old := now.Sub(w.since) > expire
		if old {
			q.lost.Expired++
		}
		return old
	})
	return slices.Clone(q.list[:min(n, len(q.list))])
}

// done removes alerts that were delivered, or rejected. One that has changed since it
// was taken stays.
func (q *queue) done(sent []queued, rejected bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	for i := range sent {
		if rejected {
			q.lost.Rejected++
		} else {
			q.out++
		}
		at := slices.IndexFunc(q.list, func(w queued) bool { return w.key() == sent[i].key() })
		if at >= 0 && q.list[at].Status == sent[i].Status {
			q.list = slices.Delete(q.list, at, at+1)
		} else if at >= 0 {
			q.same-- // it was sent before the later state took its place
		} else if q.lost.QueueFull > 0 {
			q.lost.QueueFull-- // it was dropped while it was delivered
		}
	}
}

// failed notes why a delivery will be repeated.
func (q *queue) failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

// stop counts what was not delivered.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost.Stopped += uint64(len(q.list))
	q.list = nil
}
