package jobs

import (
	"math"
	"slices"
)

const (
	// minSteps is the least number of whole steps that show a rhythm.
	minSteps = 4
	// sameBytes is how far the bytes of a step may be from their median, of retransmissions
	// and of packets that were counted in a neighbouring slot.
	sameBytes = 0.25
	// sameShare is the share of steps that must be within sameBytes.
	sameShare = 0.8
	// twiceBytes is the same for two steps that ran into each other.
	twiceBytes = 0.15
	// flowShare is the share of flows that must keep a rhythm. Of many that are known to be
	// one job, half show its steps: other traffic delays the rest.
	flowShare, jobShare = 0.8, 0.5
)

// span is slots from first to last, both included.
type span struct{ first, last int }

// rhythm cuts the time of flows into steps, in each of which every flow sends the same.
type rhythm struct {
	steps []span
	// parts is how many bursts a step has: two, if all flows wait for one in the middle.
	parts int
}

// activeSlots are the slots in which any of the flows sent.
func activeSlots(flows []*flow) []int {
	n := 0
	for _, f := range flows {
		n += len(f.points)
	}
	all := make([]int, 0, n)
	for _, f := range flows {
		for _, p := range f.points {
			all = append(all, p.slot)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cut divides slots where at least silence slots without any lie between two.
func cut(active []int, silence int) (list []span) {
	for i, s := range active {
		if i == 0 || s-active[i-1] > silence {
			list = append(list, span{s, s})
		}
		list[len(list)-1].last = s
	}
	return list
}

// findRhythms returns the rhythms of flows, from short silences between steps to long ones.
// The first and the last burst are left out, since the range may have only a part of them.
func findRhythms(flows []*flow, share float64) []rhythm {
	return rhythmsIn(activeSlots(flows), flows, share)
}

// rhythmsIn is findRhythms where some slots are active, those of the flows among them.
func rhythmsIn(active []int, flows []*flow, share float64) (list []rhythm) {
	if len(active) < minSteps {
		return nil
	}
	for _, silence := range silences(active) {
		bursts := cut(active, silence)
		if len(bursts) < minSteps+2 {
			break
		}
		for parts := 1; parts <= 2 && len(list) == 0; parts++ {
			for offset := range parts {
				if r := (rhythm{joined(bursts[1+offset:len(bursts)-1], parts), parts}); r.keptBy(flows, share) {
					list = append(list, r)
				}
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}

// maxSilences bounds the lengths of silence that are tried.
const maxSilences = 64

// silences are the lengths of the pauses between active slots, the shortest first: to cut at
// longer ones than one of them gives other bursts.
func silences(active []int) (list []int) {
	list = append(list, 1)
	for i := 1; i < len(active); i++ {
		if d := active[i] - active[i-1]; d > 1 {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxSilences)]
}

// joined makes one step of that number of successive bursts.
func joined(bursts []span, parts int) []span {
	steps := make([]span, 0, len(bursts)/parts)
	for i := 0; i+parts <= len(bursts); i += parts {
		steps = append(steps, span{bursts[i].first, bursts[i+parts-1].last})
	}
	return steps
}

// keptBy reports whether enough of the flows send the same bytes in every step.
func (r *rhythm) keptBy(flows []*flow, share float64) bool {
	if len(r.steps) < minSteps {
		return false
	}
	kept := 0
	sums := make([]float64, len(r.steps))
	for _, f := range flows {
		f.inSteps(r.steps, sums)
		if steady(sums) {
			kept++
		}
	}
	return float64(kept) >= share*float64(len(flows))
}

// inSteps adds up what a flow sent in each step.
func (f *flow) inSteps(steps []span, sums []float64) {
	clear(sums)
	i := 0
	for _, p := range f.points {
		for i < len(steps) && steps[i].last < p.slot {
			i++
		}
		if i == len(steps) {
			return
		}
		if p.slot >= steps[i].first {
			sums[i] += float64(p.bytes)
		}
	}
}

// steady reports whether nearly all of the numbers are about the same, or twice that, and
// not 0.
func steady(list []float64) bool {
	mid := median(list)
	same := 0
	for _, v := range list {
		if math.Abs(v-mid) <= sameBytes*mid || math.Abs(v/2-mid) <= twiceBytes*mid {
			same++
		}
	}
	return mid > 0 && float64(same) >= sameShare*float64(len(list))
}

// median returns the middle of the numbers, the lower of two; 0 for none.
func median[T int | int64 | float64](list []T) (zero T) {
	if len(list) == 0 {
		return zero
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}
