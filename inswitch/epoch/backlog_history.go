package epoch

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// BacklogPoints is how many points of a backlog are kept. With the newest sample
// they fill a record.
const BacklogPoints = epoch.MaxBacklogPoints - 2

// MaxBacklogHistories bounds the histories of a switch: of the pairs of ports that
// were backlogged first. Later ones have no history; their backlog at the snapshot
// and their meters are reported as ever.
const MaxBacklogHistories = 1024

// backlogPoint is a backlog at an instant.
type backlogPoint struct {
	at    model.Time
	bytes uint32
}

// backlogHistory is the course of one backlog as a line through points, by the
// swinging door algorithm (Bristol 1987): a point is added when no straight line
// from the last one passes all samples since then within the error. Backlogs
// within the error count as none, and begin to count at twice the error. If all slots are used, the point is removed
// without which the line changes least, for its age: the area between the lines
// (Visvalingam and Whyatt 1993) over the age's square.
type backlogHistory struct {
	points    [BacklogPoints]backlogPoint
	used      int
	cut       bool // points before the first one were removed
	memory    time.Duration
	quiet     bool // the backlog is within the error; the last point says 0
	sample    backlogPoint
	low, high float64 // slopes of the lines from the last point that pass all samples since
}

// observe records that a backlog has changed to a number of bytes.
func (h *backlogHistory) observe(now model.Time, bytes, deviation uint64) {
	s := backlogPoint{now, uint32(min(bytes, math.MaxUint32))}
	switch {
	case h.used == 0 || now < h.sample.at: // the first, or the clock was set back
		if bytes <= 2*deviation {
			return
		}
		*h = backlogHistory{cut: h.used > 0, memory: h.memory}
		h.anchor(backlogPoint{at: now})
	case bytes <= deviation:
		if !h.quiet {
			h.anchor(h.sample)
			h.anchor(backlogPoint{at: now})
			h.quiet = true
		}
		h.sample = backlogPoint{at: now}
		return
	case h.quiet && bytes <= 2*deviation:
		h.sample = backlogPoint{at: now}
		return
	case h.quiet:
		h.quiet = false
		h.anchor(backlogPoint{at: now})
	default:
		if !h.narrow(s, float64(deviation)) {
			h.anchor(h.sample)
		}
	}
	h.narrow(s, float64(deviation))
	h.sample = s
}

// narrow keeps the slopes that pass a sample, and reports whether there are any.
func (h *backlogHistory) narrow(s backlogPoint, deviation float64) bool {
	from := &h.points[h.used-1]
	length := float64(s.at - from.at)
	if length <= 0 {
		return true
	}
	rise := float64(s.bytes) - float64(from.bytes)
	h.low, h.high = max(h.low, (rise-deviation)/length), min(h.high, (rise+deviation)/length)
	return h.low <= h.high
}

// anchor adds a point.
func (h *backlogHistory) anchor(p backlogPoint) {
	h.low, h.high = math.Inf(-1), math.Inf(1)
	if h.used == len(h.points) {
		h.remove(p.at)
	}
	h.points[h.used] = p
	h.used++
}

// remove removes the first point, if what was before the second is older than
// the memory; else, of those between, the one that matters least.
func (h *backlogHistory) remove(now model.Time) {
	at, least := 0, math.Inf(1)
	for i := 1; i < h.used-1 && now.Sub(h.points[1].at) < h.memory; i++ {
		before, p, next := &h.points[i-1], &h.points[i], &h.points[i+1]
		area := math.Abs(float64(p.at-before.at)*(float64(next.bytes)-float64(before.bytes)) -
			float64(next.at-before.at)*(float64(p.bytes)-float64(before.bytes)))
		age := float64(now-p.at) + 1
		if weight := area / age / age; weight < least {
			least, at = weight, i
		}
	}
	h.cut = h.cut || at == 0
	copy(h.points[at:], h.points[at+1:h.used])
	h.used--
}

// report adds a history to a report, if it changed within the memory.
func (h *backlogHistory) report(b *epoch.Builder, now model.Time, v epoch.BacklogHistory) {
	if h.used == 0 || now.Sub(h.sample.at) >= h.memory && h.quiet {
		return
	}
	v.Cut = h.cut
	for _, p := range h.points[:h.used] {
		if age := epoch.AgeAt(now, p.at); age < epoch.MaxAge {
			v.Add(epoch.BacklogPoint{At: age, Bytes: p.bytes})
		} else {
			v.Cut = true
		}
	}
	if !h.quiet {
		v.Add(epoch.BacklogPoint{At: epoch.AgeAt(now, h.sample.at), Bytes: h.sample.bytes})
	}
	b.AddBacklogHistory(&v)
}
