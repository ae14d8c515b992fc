package trace

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Pauses says how PFC paused a queue, as far as its switch has reported.
type Pauses struct {
	Paused   time.Duration // in all, up to Read
	Read     model.Time    // the newest report
	Interval time.Duration // from the report before to Read
	Last     model.Time    // the newest report that showed a pause
}

// wait is a packet's wait in a paused queue.
type wait struct {
	since   model.Time    // the report from which on the queue's open time counts
	paused  time.Duration // in all, up to then
	forGood bool          // the queue stays paused
}

// Limits of waiting, in Config.CloseAfter: reports that are further apart than maxReportLag
// are not waited for, and a queue that is still paused after maxWait holds its packets for
// good.
const (
	maxReportLag = 10
	maxWait      = 100
)

// waitsForPause reports whether a trace that is due looks lost and its packet may be in a
// paused queue: it is lost only if it does not appear while that queue is open for
// Config.CloseAfter. The trace is then due again later.
func (a *Assembler) waitsForPause(i int32) bool {
	if a.cfg.Pauses == nil || !a.cfg.OutPorts {
		return false
	}
	t := a.readTrace(i, false)
	at := &t.Hops[len(t.Hops)-1]
	if t.End != Lost || at.Out == 0 || a.mayLackMirrors(t) {
		return false
	}
	p, known := a.cfg.Pauses(&t.Key, model.Port{Node: at.Switch, Port: at.Out})
	e := &a.traces[i]
	w := e.wait
	limit := a.cfg.CloseAfter
	unread := p.Read < t.Last && p.Interval <= maxReportLag*limit
	switch {
	case !known, !e.waits && p.Last < t.Last && !unread:
		return false // the queue was open
	case !e.waits:
		w = wait{since: p.Read, paused: p.Paused}
	case p.Read.Sub(max(w.since, t.Last))-(p.Paused-w.paused) >= limit:
		return false // it has sent what it held
	case a.now.Sub(t.Last) >= maxWait*limit:
		w.forGood = true
	}
	e.wait, e.waits = w, true
	if !w.forGood {
		e.due = a.now.Add(limit)
		a.moveToNewest(i)
	}
	return !w.forGood
}
