package paths

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// loopByCounters returns neighbouring switches that counted more than twice the
// packets that the first two switches of a flow's path forwarded: its packets
// seem to loop between them. Ports do not show a loop that started after the
// flow's first packet of the slot; counters do, as soon as one packet has looped
// a few times. Twice, because a packet may pass a switch twice when routes
// change; two switches, because the clock of one may be ahead, and then it
// counts less than those downstream. Two clocks may be ahead, so that it is a
// suspicion, unless the packets in excess are more than a link can carry in the
// time by which clocks may differ: then it is proven.
func (d *Detector) loopByCounters(f *flowIn, last *Map, t Path) (loop []model.NodeID, proven bool) {
	if !mayLoop(t.Hops) {
		return nil, false
	}
	entered, exact := d.entered(f, last, t.Hops)
	if !exact {
		return nil, false
	}
	many := slices.DeleteFunc(slices.Clone(t.Hops),
		func(s Sighting) bool { return !s.Exact || s.Packets <= 2*entered })
	slices.SortStableFunc(many, func(a, b Sighting) int { return cmp.Compare(b.Packets, a.Packets) })
	var least Sighting
	for _, s := range many {
		if !d.fabric.HasNode(s.Switch) {
			continue
		}
		if len(loop) == 0 || len(d.fabric.Node(loop[len(loop)-1]).PortsTo(s.Switch)) > 0 {
			loop = append(loop, s.Switch)
			least = s // the fewest packets of a switch of the loop so far
		}
	}
	if len(loop) < 2 {
		return nil, false
	}
	return loop, d.exceedsClocks(&least, least.Packets-2*entered)
}

// entered returns the packets that the first two switches of a path forwarded, the greater
// number; of several paths, those that all switches at the first or at the second
// distance from the destination forwarded.
func (d *Detector) entered(f *flowIn, last *Map, hops []Sighting) (most uint64, exact bool) {
	first, second := -1, -1 // the two greatest distances
	several := f.m.OnSeveralPaths(f.flow)
	if several {
		for i := range hops {
			if at := distance(f.m.routes, hops[i].Switch, f.key.Dst); at > first {
				first, second = at, first
			} else if at < first && at > second {
				second = at
			}
		}
	}
	var sums [2]uint64
	for i := range hops {
		stage := i
		if several {
			if at := distance(f.m.routes, hops[i].Switch, f.key.Dst); at == first {
				stage = 0
			} else if stage = 1; at != second {
				continue
			}
		} else if i == len(sums) {
			break
		}
		if !hops[i].Exact {
			return 0, false
		}
		sums[stage] += hops[i].Packets
		if last != nil { // packets that entered in the slot before may loop in this one
			earlier := f.in(last)
			before, _ := earlier.at(hops[i].Switch)
			sums[stage] += before.Packets
		}
	}
	return max(sums[0], sums[1]), true
}

// exceedsClocks reports whether a number of the packets that a switch counted take
// longer to arrive, on its fastest link, than clocks may differ.
func (d *Detector) exceedsClocks(s *Sighting, packets uint64) bool {
	if d.cfg.ClockError == 0 {
		return false
	}
	const leastFrame = 64 // where bytes are not counted
	size := max(float64(s.Bytes)/float64(s.Packets), leastFrame)
	var rate model.Rate
	for _, p := range d.fabric.Node(s.Switch).Ports {
		rate = max(rate, p.Rate)
	}
	return float64(packets)*size*8 > float64(rate)*d.cfg.ClockError.Seconds()
}

// mayLoop reports whether a switch counted more than twice the packets of the first two:
// only then may loopByCounters find a loop, whatever entered in the slot before.
func mayLoop(hops []Sighting) bool {
	if len(hops) < 4 {
		return false
	}
	entered := max(hops[0].Packets, hops[1].Packets)
	for i := range hops[2:] {
		if hops[2+i].Packets > 2*entered {
			return true
		}
	}
	return false
}
