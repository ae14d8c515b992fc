package epoch

import (
	"time"

	"github.com/weft-telemetry/weft/wire/epoch"
)

// queueLog is all that happened to one queue, kept forever.
type queueLog struct {
	packets int
	frames  []frame
	levels  []level
}

// frame is a pause frame's part for one queue, and what was queued then.
type frame struct {
	at, pause time.Duration
	packets   int
}

// level is a queue length that was seen, in packets of 1000 bytes.
type level struct {
	at      time.Duration
	packets int
	counts  bool // towards congestion: the queue was not paused, or a pause began
}

type span struct {
	start, end time.Duration
	open       bool
	bytes      uint32
}

// pausedAt reports whether the queue is paused at an instant: by the last frame
// before it, if that was not too long ago.
func (q *queueLog) pausedAt(at time.Duration) bool {
	for i := len(q.frames) - 1; i >= 0; i-- {
		if f := q.frames[i]; f.at <= at {
			return at < f.at+f.pause
		}
	}
	return false
}

// pauses returns every pause of the queue. A frame begins one if the queue is not
// paused by the frames before it; it ends when the last frame of it expires.
func (q *queueLog) pauses(now time.Duration) (all []span) {
	before := queueLog{}
	for _, f := range q.frames {
		until := f.at + f.pause
		switch paused := before.pausedAt(f.at); {
		case f.pause > 0 && !paused:
			all = append(all, span{start: f.at, end: until, bytes: uint32(f.packets) * 1000})
		case paused:
			all[len(all)-1].end = until
		}
		before.frames = append(before.frames, f)
	}
	if n := len(all) - 1; n >= 0 && now < all[n].end {
		all[n].end, all[n].open = now, true
	}
	return all
}

// congestion returns every congestion interval of the queue. Levels below half of
// the threshold separate them. Within, an interval lasts from the first level at or
// above the threshold that counts to the first below it after the last that counts.
func (q *queueLog) congestion(now time.Duration) (all []span) {
	const threshold = 4
	for rest := q.levels; len(rest) > 0; {
		n := 0
		for n < len(rest) && 2*rest[n].packets >= threshold {
			n++
		}
		part := rest[:min(n+1, len(rest))] // with the one that ends it
		rest = rest[len(part):]
		first, last, peak := -1, -1, 0
		for i, l := range part {
			if l.counts && l.packets >= threshold {
				if last = i; first < 0 {
					first = i
				}
				peak = max(peak, l.packets)
			}
		}
		if first < 0 {
			continue
		}
		s := span{start: part[first].at, end: now, open: true, bytes: uint32(peak) * 1000}
		for _, l := range part[last+1:] {
			if l.packets < threshold {
				s.end, s.open = l.at, false
				break
			}
		}
		all = append(all, s)
	}
	return all
}

// record returns the last intervals as a switch reports them.
func record(all []span, keep int, now time.Duration, v epoch.Intervals) epoch.Intervals {
	age := func(at time.Duration) epoch.Age { return epoch.Age(now - at) }
	lost := max(len(all)-keep, 0)
	first := 0 // of the summary
	for i := 1; i < lost; i++ {
		summary, ring := all[i-1].end-all[first].start, all[i+keep].start-all[i].start
		if all[i].start-all[i-1].end > summary+ring {
			first = i
		}
	}
	if lost > 0 {
		e := &v.Earlier
		e.Start, e.End, e.Bytes = age(all[first].start), age(all[lost-1].end), all[first].bytes
		for _, s := range all[first:lost] {
			e.Count++
			e.Total += s.end - s.start
			if v.Congestion {
				e.Bytes = max(e.Bytes, s.bytes)
			}
		}
	}
	for _, s := range all[lost:] {
		v.Add(epoch.Interval{Start: age(s.start), End: age(s.end), Bytes: s.bytes})
		v.Open = s.open
	}
	return v
}
