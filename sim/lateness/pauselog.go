package lateness

import (
	"sort"

	"github.com/weft-telemetry/weft/sim/engine"
)

// pause is an interval in which a queue may not send; end is Forever while it
// holds.
type pause struct {
	begin, end engine.Time
	before     engine.Time // paused time up to begin
}

// pauseLog is the log of a queue's pauses. Paused time counts only the time in
// pauses: in it, the latest pauses before an instant are one range.
type pauseLog struct {
	base int // index of the first pause kept
	list []pause
}

func (l *pauseLog) at(k int) *pause { return &l.list[k-l.base] }

func (l *pauseLog) begin(now, horizon engine.Time) {
	p := pause{begin: now, end: engine.Forever}
	if n := len(l.list); n > 0 {
		last := &l.list[n-1]
		p.before = last.before + last.end - last.begin
		if n == cap(l.list) {
			k := sort.Search(n, func(i int) bool { return l.list[i].end >= horizon })
			if k--; k >= n/2 && k > 0 {
				l.list = l.list[:copy(l.list, l.list[k:])]
				l.base += k
			}
		}
	}
	l.list = append(l.list, p)
}

func (l *pauseLog) resume(now engine.Time) {
	if n := len(l.list); n > 0 && l.list[n-1].end == engine.Forever {
		l.list[n-1].end = now
	}
}

// last returns the index of the last pause that began up to t; base-1 for none.
func (l *pauseLog) last(t engine.Time) int {
	return l.base + sort.Search(len(l.list), func(i int) bool { return l.list[i].begin > t }) - 1
}

// paused returns the paused time up to t.
func (l *pauseLog) paused(t engine.Time) engine.Time {
	k := l.last(t)
	if k < l.base {
		return 0
	}
	p := l.at(k)
	return p.before + min(t, p.end) - p.begin
}

// find returns the index of the pause that holds an instant of paused time.
func (l *pauseLog) find(paused engine.Time) int {
	return l.base + sort.Search(len(l.list), func(i int) bool { return l.list[i].before > paused }) - 1
}
