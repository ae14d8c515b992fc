package epoch

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// PauseIntervals and CongestionIntervals are how many of a queue are kept one by
// one. A PFC pause ends when the neighbour's ingress queue has drained from XOFF to
// XON, so congestion downstream causes pauses by the dozen; a queue's own congestion
// changes more slowly.
const (
	PauseIntervals      = epoch.MaxIntervals
	CongestionIntervals = 8
)

// interval is one time in which a queue was paused or congested.
type interval struct {
	start, end model.Time
	bytes      uint32 // saturates
}

// intervalRing holds the last intervals of a queue, and a summary of those before
// them. Invariant: they ascend and do not overlap, whatever the clock does.
type intervalRing struct {
	list    []interval
	next    int // slot of the next interval: the oldest, once the ring is full
	used    int // slots
	earlier earlierIntervals
}

// earlierIntervals sums up intervals that were overwritten.
type earlierIntervals struct {
	start, end model.Time
	total      time.Duration
	bytes      uint32
	count      uint32 // saturates
}

// newest returns the last interval, or nil.
func (r *intervalRing) newest() *interval {
	if r.used == 0 {
		return nil
	}
	return &r.list[(r.next+len(r.list)-1)%len(r.list)]
}

// at returns interval i of those kept, the oldest first.
func (r *intervalRing) at(i int) *interval {
	return &r.list[(r.next+len(r.list)-r.used+i)%len(r.list)]
}

// begin starts an interval, and returns the one that it overwrites.
func (r *intervalRing) begin(now model.Time, bytes model.Bytes) (overwritten interval, full bool) {
	if last := r.newest(); last != nil {
		now = max(now, last.end)
	}
	slot := &r.list[r.next]
	overwritten, full = *slot, r.used == len(r.list)
	*slot = interval{start: now, end: now, bytes: saturated(bytes)}
	r.next = (r.next + 1) % len(r.list)
	r.used = min(r.used+1, len(r.list))
	return overwritten, full
}

// include adds an overwritten interval to the summary. One that began after a gap
// longer than what the summary and the ring cover together starts it anew: a start of
// long ago would say nothing about what happened before the ring. After a shorter gap
// the backlog that the pauses left may still be there.
func (r *intervalRing) include(i interval, bytes func(sum, i uint32) uint32) {
	e := &r.earlier
	if e.count == 0 || i.start.Sub(e.end) > e.end.Sub(e.start)+r.newest().start.Sub(i.start) {
		*e = earlierIntervals{start: i.start, bytes: i.bytes}
	}
	e.end = i.end
	e.total += i.end.Sub(i.start)
	e.bytes = bytes(e.bytes, i.bytes)
	if e.count < math.MaxUint32 {
		e.count++
	}
}

// history is the intervals of one queue. It is allocated once, when the queue is
// first paused or congested.
type history struct {
	pauses, congestion intervalRing
	slots              [PauseIntervals + CongestionIntervals]interval
}

func newHistory() *history {
	h := &history{}
	h.pauses.list, h.congestion.list = h.slots[:PauseIntervals:PauseIntervals], h.slots[PauseIntervals:]
	return h
}

// keptHistory returns the queue's history.
func (q *queue) keptHistory() *history {
	if q.history == nil {
		q.history = newHistory()
	}
	return q.history
}

// beginPause records that a pause begins, before pausedUntil changes: until then
// it is when the last pause ended, by a frame or because its time was over.
func (q *queue) beginPause(now model.Time, queued model.Bytes) {
	r := &q.keptHistory().pauses
	if last := r.newest(); last != nil {
		last.end = max(last.start, q.pausedUntil)
	}
	if old, full := r.begin(now, queued); full {
		// The first: what was queued before the pauses, not because of them.
		r.include(old, func(sum, _ uint32) uint32 { return sum })
	}
	if queued >= q.episodeBytes {
		q.foundCongested(now, queued)
	} else if q.congested {
		q.foundBelow(now, queued) // packets of the queue were dropped
	}
}

// foundCongested records that the queue, not paused, was found at or above the
// congestion threshold.
func (q *queue) foundCongested(now model.Time, found model.Bytes) {
	switch {
	case !q.congested:
		r := &q.keptHistory().congestion
		if old, full := r.begin(now, found); full {
			r.include(old, func(sum, i uint32) uint32 { return max(sum, i) })
		}
		q.congested, q.peak = true, found
	case found > q.peak:
		q.peak, q.history.congestion.newest().bytes = found, saturated(found)
	}
	q.belowThreshold = false
}

// foundBelow records that a congested queue was found below the threshold. The
// interval ends here, unless the queue is found congested again before it was
// below half of the threshold: a queue that varies by a packet around the threshold
// is one interval.
func (q *queue) foundBelow(now model.Time, found model.Bytes) {
	if !q.belowThreshold {
		last := q.history.congestion.newest()
		last.end, q.belowThreshold = max(now, last.start), true
	}
	if found < q.episodeBytes/2 {
		q.congested = false
	}
}

// reportIntervals adds the intervals of a queue to a report, if it was paused or
// congested within the memory of the switch.
func (q *queue) reportIntervals(b *epoch.Builder, out model.PortID, class model.Priority, now model.Time, memory time.Duration) {
	h := q.history
	if h == nil {
		return
	}
	paused, congested := now < q.pausedUntil, q.congested && !q.belowThreshold
	pauseEnd, congestionEnd := min(now, q.pausedUntil), now
	if last := h.congestion.newest(); last != nil && !congested {
		congestionEnd = last.end
	}
	if !h.pauses.endedWithin(memory, now, pauseEnd) && !h.congestion.endedWithin(memory, now, congestionEnd) {
		return
	}
	h.pauses.report(b, now, pauseEnd, epoch.Intervals{Port: out, Priority: class, Open: paused})
	h.congestion.report(b, now, congestionEnd, epoch.Intervals{Congestion: true, Port: out, Priority: class, Open: congested})
}

// longestWait returns a bound of how long the queues of a port may have delayed a packet
// between two instants, of any class: as long as they were paused, and as long as the
// link takes for the longest backlog.
func (t *telemetry) longestWait(out model.PortID, from, now model.Time, rate model.Rate) (longest time.Duration) {
	for class := range model.Priority(classes) {
		q := t.queue(out, class)
		if q.history == nil {
			continue
		}
		wait, backlog := time.Duration(0), uint32(0)
		for i := range q.history.pauses.used {
			x := *q.history.pauses.at(i)
			if i == q.history.pauses.used-1 {
				x.end = min(now, q.pausedUntil)
			}
			wait += max(x.end.Sub(max(x.start, from)), 0)
		}
		for i := range q.history.congestion.used {
			x := q.history.congestion.at(i)
			open := i == q.history.congestion.used-1 && q.congested && !q.belowThreshold
			if open || x.end > from {
				backlog = max(backlog, x.bytes)
			}
		}
		if rate > 0 {
			wait += time.Duration(float64(backlog) * 8e9 / float64(rate))
		}
		longest = max(longest, wait)
	}
	return longest
}

// endedWithin reports whether there is an interval, and the last one ended no longer
// ago than memory.
func (r *intervalRing) endedWithin(memory time.Duration, now, end model.Time) bool {
	return r.used > 0 && now.Sub(end) < memory
}

// report adds the intervals, of which the last one ended at a time, to a report,
// but for those that ended before an Age can say when.
func (r *intervalRing) report(b *epoch.Builder, now, end model.Time, v epoch.Intervals) {
	if e := &r.earlier; e.count > 0 && epoch.AgeAt(now, e.end) < epoch.MaxAge {
		v.Earlier = epoch.Earlier{Count: e.count, Start: epoch.AgeAt(now, e.start), End: epoch.AgeAt(now, e.end), Bytes: e.bytes}
		v.Earlier.Total = min(e.total, (v.Earlier.Start - v.Earlier.End).Duration())
	}
	for k := range r.used {
		i := *r.at(k)
		if k == r.used-1 {
			i.end = max(i.start, end)
		}
		if epoch.AgeAt(now, i.end) < epoch.MaxAge {
			v.Add(epoch.Interval{Start: epoch.AgeAt(now, i.start), End: epoch.AgeAt(now, i.end), Bytes: i.bytes})
		}
	}
	b.AddIntervals(&v)
}

func saturated(n model.Bytes) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// memoryOf returns how long after its last pause or congestion the intervals of a
// queue are reported, which bounds the reports of a switch that has run for long: as
// many times as long as a link takes for the switch's buffer, which is how long a pause
// may delay what comes after it. In the paper's network, 3 MB at 100 Gb/s, that is 9.6 ms.
func memoryOf(dev *inswitch.Device) time.Duration {
	const drains = 40
	slowest := model.Rate(0)
	for i := range dev.Ports {
		if r := dev.Ports[i].Rate; r > 0 && (slowest == 0 || r < slowest) {
			slowest = r
		}
	}
	if dev.Buffer <= 0 || slowest == 0 {
		return pauseMemory
	}
	return time.Duration(min(drains*float64(dev.Buffer)*8e9/float64(slowest), float64(epoch.MaxAge)))
}
