package provenance

import (
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Interval is a time in which a queue was paused, or congested by its own
// traffic, on the clock of its switch.
type Interval struct {
	Start, End model.Time // End is the snapshot if Open
	Open       bool       // it had not ended at the snapshot
	// Bytes is, of a pause, what the queue held at its start, and of congestion
	// the largest queue length; 0 if the switch did not say.
	Bytes model.Bytes
	// Coverage is the share of the interval in which the queue was in fact paused
	// or congested. It is 1 unless the interval is a summary of several, of which
	// the switch kept only the first start, the last end and their sum.
	Coverage float64
}

// plausible reports whether the interval ends after it starts and not after the
// snapshot. Summaries are what a switch claims; nothing else checks their times.
func (i *Interval) plausible(snapshot model.Time) bool { return i.Start <= i.End && i.End <= snapshot }

// coverage returns the share of the time from start to end that a sum of lengths is.
func coverage(sum, start, end model.Time) float64 {
	// Floating point: the difference of two absurd times overflows an integer.
	length := float64(end) - float64(start)
	if length <= 0 {
		return 1
	}
	return min(max(float64(sum)/length, 0), 1)
}

// queueLength returns a length that a switch claims; none is negative.
func queueLength(n uint64) model.Bytes { return model.Bytes(min(n, math.MaxInt64)) }

// countIntervals returns how many intervals the reports have at most.
func countIntervals(e *Evidence) (n int) {
	for _, r := range e.Reports {
		n += 2*len(r.Pauses) + len(r.Episodes)
		for i := range r.Intervals {
			n += 1 + len(r.Intervals[i].All())
		}
	}
	return n
}

// addIntervals adds the pause and congestion intervals of a switch's queues: what
// its memory of single intervals holds, and summaries where it has none.
func (b *builder) addIntervals(r *Report) {
	for i := range r.Pauses {
		p := &r.Pauses[i]
		if at, ok := b.queueAt(r.Switch, p.Port, p.Priority); ok {
			n := &b.g.Nodes[at]
			rest, last := summaryOfPauses(p, n.State.Paused, r.Snapshot)
			n.PauseIntervals = b.keepPlausible(r.Snapshot, rest, last)
		}
	}
	for i := range r.Episodes {
		e := &r.Episodes[i]
		if at, ok := b.queueAt(r.Switch, e.Port, e.Priority); ok {
			b.g.Nodes[at].CongestionIntervals = b.keepPlausible(r.Snapshot,
				Interval{Start: e.First, End: e.Last, Bytes: queueLength(e.MaxBytes), Coverage: 1})
		}
	}
	for i := range r.Intervals {
		v := &r.Intervals[i]
		at, ok := b.queueAt(r.Switch, v.Port, v.Priority)
		if !ok {
			continue
		}
		if list := b.keptIntervals(v, r.Snapshot); v.Congestion {
			b.g.Nodes[at].CongestionIntervals = list
		} else {
			b.g.Nodes[at].PauseIntervals = list
		}
	}
}

// keptIntervals returns the intervals of a record, and before them the summary of
// those that the switch's memory no longer holds.
func (b *builder) keptIntervals(v *epoch.Intervals, snapshot model.Time) []Interval {
	var list [1 + epoch.MaxIntervals]Interval
	n := 0
	if e := &v.Earlier; e.Count > 0 {
		i := Interval{Start: snapshot.Add(-e.Start.Duration()), End: snapshot.Add(-e.End.Duration()), Bytes: model.Bytes(e.Bytes)}
		i.Coverage = coverage(model.Time(e.Total), i.Start, i.End)
		list[n] = i
		n++
	}
	for _, i := range v.All() {
		list[n] = Interval{
			Start: snapshot.Add(-i.Start.Duration()), End: snapshot.Add(-i.End.Duration()),
			Bytes: model.Bytes(i.Bytes), Coverage: 1,
		}
		n++
	}
	list[n-1].Open = v.Open // the record has at least one
	return b.keepPlausible(snapshot, list[:n]...)
}

// keepPlausible returns the plausible ones of intervals, in memory that all queues
// share and countIntervals has made, and counts the others. Those that are zero are
// none.
func (b *builder) keepPlausible(snapshot model.Time, list ...Interval) []Interval {
	start := len(b.g.intervals)
	for i := range list {
		switch {
		case list[i] == Interval{}:
		case list[i].plausible(snapshot):
			b.g.intervals = append(b.g.intervals, list[i])
		default:
			b.g.ImplausibleIntervals++
		}
	}
	return b.g.intervals[start:len(b.g.intervals):len(b.g.intervals)]
}

// summaryOfPauses returns the last pause of a queue, whose times are known, and
// the rest of its burst before it as one interval; zero if there is no rest. The
// paused time is since the switch started, so the coverage of the rest may be too
// large, not too small.
func summaryOfPauses(p *epoch.Pause, paused bool, snapshot model.Time) (rest, last Interval) {
	last = Interval{Start: p.LastStart, End: p.LastEnd, Coverage: 1}
	restEnd := p.LastStart
	if paused || p.LastEnd < p.LastStart {
		last.Open, last.End = true, snapshot
		if p.LastEnd >= p.BurstStart {
			restEnd = min(p.LastEnd, p.LastStart)
		}
	}
	if p.BurstStart >= p.LastStart {
		last.Bytes = queueLength(p.BytesAtBurstStart)
		return Interval{}, last
	}
	before := model.Time(p.PausedTime) - (last.End - last.Start)
	return Interval{
		Start: p.BurstStart, End: restEnd, Bytes: queueLength(p.BytesAtBurstStart),
		Coverage: coverage(before, p.BurstStart, restEnd),
	}, last
}
