package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// span is a half-open interval of time.
type span struct{ from, to model.Time }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// pausedQueue is one priority of one port, and its pauses.
type pausedQueue struct {
	node     string
	iface    string
	id       model.NodeID
	port     model.PortID
	priority model.Priority
	spans    []span // disjoint, by time
	total    time.Duration
	longest  time.Duration
	frames   int // pause frames received, refreshes included
}

type queueKey struct {
	port     model.Port
	priority model.Priority
}

// openPause is a pause that has not ended: it expires at until at the latest.
type openPause struct {
	queue *pausedQueue
	from  model.Time
	until model.Time
	open  bool
}

// pausedQueues joins pause and resume frames into the intervals they cause, by
// node, port and priority. A refresh extends an interval, an expired one ends,
// and the end of the run closes open ones.
func (r *Run) pausedQueues() []*pausedQueue {
	states := make(map[queueKey]*openPause)
	var queues []*pausedQueue
	for _, e := range byTime(r.Pauses) {
		key := queueKey{model.Port{Node: e.ID, Port: e.Port}, e.Priority}
		st := states[key]
		if st == nil {
			st = &openPause{queue: &pausedQueue{node: e.Node, id: e.ID, port: e.Port, iface: e.Interface, priority: e.Priority}}
			states[key] = st
			queues = append(queues, st.queue)
		}
		st.receive(e)
	}
	for _, st := range states {
		st.close(r.End)
	}
	slices.SortFunc(queues, func(a, b *pausedQueue) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.port, b.port), cmp.Compare(a.priority, b.priority))
	})
	return queues
}

func (st *openPause) receive(e PauseEvent) {
	if st.open && st.until <= e.At || !e.Pause {
		st.close(e.At)
	}
	if !e.Pause {
		return
	}
	st.queue.frames++
	if !st.open {
		st.open, st.from = true, e.At
	}
	st.until = math.MaxInt64
	if e.Hold > 0 {
		st.until = e.At.Add(e.Hold)
	}
}

// close ends an open interval at now, or earlier where the pause expired.
func (st *openPause) close(now model.Time) {
	if !st.open {
		return
	}
	st.open = false
	s := span{st.from, min(st.until, now)}
	if s.to <= s.from {
		return
	}
	q := st.queue
	q.spans = append(q.spans, s)
	q.total += s.length()
	q.longest = max(q.longest, s.length())
}

// byTime returns the events ordered by time; those of one instant keep their
// order.
func byTime(events []PauseEvent) []PauseEvent {
	earlier := func(a, b PauseEvent) int { return cmp.Compare(a.At, b.At) }
	if slices.IsSortedFunc(events, earlier) {
		return events
	}
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, earlier)
	return sorted
}
