package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// stalledPeriods is how long ago the last whole step must have begun. The burst after it may
	// be cut by the end of the range: that is two periods where nothing is wrong.
	stalledPeriods = 3
	// behindShare is the part of a step's bytes by which a flow must be behind others. In a ring
	// that waits for one rank, the flow to it is half a step ahead of the one from it.
	behindShare = 0.25
)

// unfinished is a step that was expected and has not ended.
type unfinished struct {
	since time.Duration // the end of the last whole step
	flows []progress
}

// progress is what a flow has sent of an unfinished step.
type progress struct {
	*flow
	share float64 // of what it sends in a step
	sends bool    // it still did in the newest period
}

// findUnfinished returns the step that a job stands in; nil: none.
func (j *Job) findUnfinished(a *Activity) *unfinished {
	steps, period := j.rhythm.steps, int(j.Period/a.Slot)
	usual := make([]float64, len(j.flows))
	whole := make([]int, len(steps)) // flows that sent what they usually do
	sums := make([]float64, len(steps))
	for i, f := range j.flows {
		f.inSteps(steps, sums)
		usual[i] = median(sums)
		for k, n := range sums {
			if n >= (1-sameBytes)*usual[i] {
				whole[k]++
			}
		}
	}
	n := len(steps) - 1
	for n > 0 && float64(whole[n]) < flowShare*float64(len(j.flows)) { // the rhythm bears some
		n--
	}
	last := steps[n]
	if period == 0 || a.Slots-last.first <= stalledPeriods*period {
		return nil
	}
	u := &unfinished{since: time.Duration(a.Slots-last.last-1) * a.Slot}
	for i, f := range j.flows {
		usual := usual[i]
		if usual == 0 {
			continue
		}
		p := progress{flow: f}
		for _, point := range f.points {
			if point.slot > last.last {
				p.share += float64(point.bytes) / usual
				p.sends = p.sends || point.slot >= a.Slots-period
			}
		}
		u.flows = append(u.flows, p)
	}
	return u
}

// stalled says what an unfinished step waits for: the flow that is behind all others. If its host
// has received more of the step than it sends, it is the rank; if it sends, its path holds it, or
// the host that it and others lead to. A job that has ended leaves no flow behind.
func (j *Job) stalled() []Finding {
	u := j.unfinished
	if u == nil || len(u.flows) == 0 {
		return nil
	}
	least, most := u.flows[0], 0.0
	received := map[string]float64{}
	for _, p := range u.flows {
		if p.share < least.share {
			least = p
		}
		most = max(most, p.share)
		received[p.dst] = max(received[p.dst], p.share)
	}
	if most-least.share < behindShare {
		return nil
	}
	for _, p := range u.flows { // of those that are as far behind, the one that still sends
		if p.sends && !least.sends && p.share < least.share+behindShare/2 {
			least = p
		}
	}
	var behind []progress
	for _, p := range u.flows {
		if p.share < least.share+behindShare/2 && p.sends == least.sends {
			behind = append(behind, p)
		}
	}
	to := func(p progress) bool { return p.dst != least.dst }
	f := Finding{Cost: u.since}
	switch {
	case !least.sends && received[least.src]-least.share >= behindShare:
		f.Cause, f.Host = Compute, least.src
		f.Text = fmt.Sprintf("a step has not ended for %v: all wait for %s, which has received %.0f %% of a step and sends none of the %.0f %% that %s lacks",
			u.since, least.src, 100*min(received[least.src], 1), 100*(1-least.share), least.dst)
	case least.sends && len(behind) > 1 && !slices.ContainsFunc(behind, to):
		f.Cause, f.Host = SlowHost, least.dst
		f.Text = fmt.Sprintf("a step has not ended for %v: all %d flows that are behind lead to %s, and still send", u.since, len(behind), least.dst)
	case least.sends:
		f.Cause = Congestion
		f.Text = fmt.Sprintf("a step has not ended for %v: all wait for the flow %s > %s, which sends and has %.0f %% of its bytes: its path holds it (%s)",
			u.since, least.src, least.dst, 100*least.share, strings.Join(least.path, " > "))
	default:
		return nil
	}
	return []Finding{f}
}
