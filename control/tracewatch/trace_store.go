package tracewatch

import (
	"unsafe"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Class is why a trace is kept.
type Class uint8

// Classes. A trace is of the first that applies.
const (
	Abnormal Class = iota // ended short, looped, or is stuck
	Marked                // by its sender
	Protocol
	Ordinary // any other
	classes
)

// String names the class.
func (c Class) String() string { return [...]string{"abnormal", "marked", "protocol", "ordinary"}[c] }

func classOf(t *trace.Trace) Class {
	switch {
	case t.End == trace.Lost || t.End == trace.Looped || t.Paused:
		return Abnormal
	case t.Why.Has(mirror.Debug):
		return Marked
	case t.Why.Has(mirror.Protocol):
		return Protocol
	}
	return Ordinary
}

// store keeps traces within a memory limit. A trace that exceeds it evicts the oldest
// of the class that takes the most memory: a flood of one class cannot evict the
// others.
type store struct {
	limit, used int
	queues      [classes]queue
	seq         uint64
	kept        [classes]uint64
	evicted     [classes]uint64
}

// queue is traces of one class, the oldest first.
type queue struct {
	list []kept
	head int // of list; those before are evicted
	used int
}

type kept struct {
	t    *trace.Trace
	seq  uint64 // in the order of completion, over all classes
	size int
}

func newStore(limit model.Bytes) store { return store{limit: int(limit)} }

// sizeOf is the memory that a trace takes.
func sizeOf(t *trace.Trace) int {
	return int(unsafe.Sizeof(*t)+unsafe.Sizeof(kept{})) + len(t.Hops)*int(unsafe.Sizeof(trace.Hop{})) + len(t.Frame)
}

// add keeps a trace, which must not change any more. A trace larger than the limit
// is counted as evicted.
func (s *store) add(t *trace.Trace) {
	c, size := classOf(t), sizeOf(t)
	q := &s.queues[c]
	s.kept[c]++
	s.seq++
	q.list = append(q.list, kept{t, s.seq, size})
	q.used += size
	s.used += size
	for s.used > s.limit {
		s.evict()
	}
}

func (s *store) evict() {
	most := Class(0)
	for c := range classes {
		if s.queues[c].used > s.queues[most].used {
			most = c
		}
	}
	q := &s.queues[most]
	size := q.list[q.head].size
	q.list[q.head] = kept{}
	q.head++
	q.used -= size
	s.used -= size
	s.evicted[most]++
	if 2*q.head > len(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
}

// between returns the traces whose last mirror arrived in a span, in the order of
// completion.
func (s *store) between(from, to model.Time) []*trace.Trace {
	var list []*trace.Trace
	heads := [classes]int{}
	for c := range classes {
		heads[c] = s.queues[c].head
	}
	for {
		first := classes
		for c := range classes {
			if q := &s.queues[c]; heads[c] < len(q.list) && (first == classes || q.list[heads[c]].seq < s.queues[first].list[heads[first]].seq) {
				first = c
			}
		}
		if first == classes {
			return list
		}
		if t := s.queues[first].list[heads[first]].t; t.Last >= from && t.Last < to {
			list = append(list, t)
		}
		heads[first]++
	}
}
