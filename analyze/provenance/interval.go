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

// addIntervals adds the pause and congestion intervals of a switch's queues.
func (b *builder) addIntervals(r *Report) {
	for i := range r.Pauses {
		p := &r.Pauses[i]
		if at, ok := b.queueAt(r.Switch, p.Port, p.Priority); ok {
			n := &b.g.Nodes[at]
			n.PauseIntervals = b.keepPlausible(summaryOfPauses(p, n.State.Paused, r.Snapshot), r.Snapshot)
		}
	}
	for i := range r.Episodes {
		e := &r.Episodes[i]
		if at, ok := b.queueAt(r.Switch, e.Port, e.Priority); ok {
			n := &b.g.Nodes[at]
			n.CongestionIntervals = b.keepPlausible([]Interval{
				{Start: e.First, End: e.Last, Bytes: queueLength(e.MaxBytes), Coverage: 1},
			}, r.Snapshot)
		}
	}
}

// keepPlausible returns the plausible ones of intervals, and counts the others.
func (b *builder) keepPlausible(list []Interval, snapshot model.Time) []Interval {
	kept := list[:0]
	for i := range list {
		if list[i].plausible(snapshot) {
			kept = append(kept, list[i])
		} else {
			b.g.ImplausibleIntervals++
		}
	}
	return kept
}

// summaryOfPauses returns the last pause of a queue, whose times are known, and
// before it the rest of its burst as one interval. The paused time is since the
// switch started, so the coverage of the rest may be too large, not too small.
func summaryOfPauses(p *epoch.Pause, paused bool, snapshot model.Time) []Interval {
	last := Interval{Start: p.LastStart, End: p.LastEnd, Coverage: 1}
	restEnd := p.LastStart
	if paused || p.LastEnd < p.LastStart {
		last.Open, last.End = true, snapshot
		if p.LastEnd >= p.BurstStart {
			restEnd = min(p.LastEnd, p.LastStart)
		}
	}
	if p.BurstStart >= p.LastStart {
		last.Bytes = queueLength(p.BytesAtBurstStart)
		return []Interval{last}
	}
	before := model.Time(p.PausedTime) - (last.End - last.Start)
	rest := Interval{
		Start: p.BurstStart, End: restEnd, Bytes: queueLength(p.BytesAtBurstStart),
		Coverage: coverage(before, p.BurstStart, restEnd),
	}
	return []Interval{rest, last}
}
