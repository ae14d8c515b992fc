package jobs

import (
	"cmp"
	"slices"
)

const (
	// maxShown bounds the flows of a group that show its steps to others: the largest.
	maxShown = 64
	// maxFollowers bounds the flows that a group is tried with, the largest.
	maxFollowers = 256
	// followShare is the share of a group's steps in which a follower sends.
	followShare = 0.8
)

// followers returns flows of the same job as a group of regular ones that are not in step
// with any of them alone. Every step carries the same bytes, but what a switch counts is
// more where a host or a link is slow: packets are sent again, steps are long, and the
// range has few of them. Such a flow sends in the steps of the group, and no more is
// needed of it: the steps are the same with it, and it is as silent as they are between
// them.
func followers(group, others []*flow) (list []*flow) {
	hosts := map[string]bool{}
	shown := slices.Clone(group)
	slices.SortFunc(shown, func(x, y *flow) int { return cmp.Or(cmp.Compare(y.bytes, x.bytes), x.key.Compare(y.key)) })
	shown = shown[:min(len(shown), maxShown)]
	for _, f := range group {
		hosts[f.src], hosts[f.dst] = true, true
	}
	usual := shown[(len(shown)-1)/2].bytes
	active := activeSlots(shown)
	tried := 0
	for _, f := range others {
		// What carries much less is not the job's data.
		if f.bytes < usual/2 || !hosts[f.src] && !hosts[f.dst] {
			continue
		}
		if tried++; tried > maxFollowers {
			break
		}
		if f.follows(shown, active) {
			list = append(list, f)
		}
	}
	return list
}

// follows reports whether a flow sends in the steps of others, whose active slots are
// given, and keeps their silence.
func (f *flow) follows(shown []*flow, active []int) bool {
	if len(f.points) < minSteps {
		return false
	}
	both := slices.Clone(active)
	for _, p := range f.points {
		both = append(both, p.slot)
	}
	slices.Sort(both)
	for _, r := range rhythmsIn(slices.Compact(both), shown, flowShare) {
		sums := make([]float64, len(r.steps))
		f.inSteps(r.steps, sums)
		sent := 0
		for _, n := range sums {
			if n > 0 {
				sent++
			}
		}
		if float64(sent) >= followShare*float64(len(sums)) {
			return true
		}
	}
	return false
}
