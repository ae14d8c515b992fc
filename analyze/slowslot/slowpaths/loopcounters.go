package slowpaths

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
// counts less than those downstream. It is a suspicion: two clocks may be ahead.
func (d *Detector) loopByCounters(m, last *Map, key model.FlowKey, t Path) (loop []model.NodeID) {
	if len(t.Hops) < 4 {
		return nil
	}
	entered, exact := d.entered(m, last, key, t.Hops)
	if !exact {
		return nil
	}
	many := slices.DeleteFunc(slices.Clone(t.Hops),
		func(s Sighting) bool { return !s.Exact || s.Packets <= 2*entered })
	slices.SortStableFunc(many, func(a, b Sighting) int { return cmp.Compare(b.Packets, a.Packets) })
	for _, s := range many {
		if !d.fabric.HasNode(s.Switch) {
			continue
		}
		if len(loop) == 0 || len(d.fabric.Node(loop[len(loop)-1]).PortsTo(s.Switch)) > 0 {
			loop = append(loop, s.Switch)
		}
	}
	if len(loop) < 2 {
		return nil
	}
	return loop
}

// entered returns the packets that the first two switches of a path forwarded, the greater
// number; of several paths, those that all switches at the first or at the second
// distance from the destination forwarded.
func (d *Detector) entered(m, last *Map, key model.FlowKey, hops []Sighting) (most uint64, exact bool) {
	routes := d.cfg.Intent.At(m.Start())
	stageOf := func(i int) int { return i }
	if m.FlowPath(key, routes).Several {
		var distances []int
		for _, s := range hops {
			distances = append(distances, distance(routes, s.Switch, key))
		}
		slices.Sort(distances)
		distances = slices.Compact(distances)
		slices.Reverse(distances)
		stageOf = func(i int) int { return slices.Index(distances, distance(routes, hops[i].Switch, key)) }
	}
	stages := make([]uint64, len(hops)) // packets by switch, or by distance from the destination
	for i, s := range hops {
		if stageOf(i) < 2 && !s.Exact {
			return 0, false
		}
		stages[stageOf(i)] += s.Packets
		if last != nil { // packets that entered in the slot before may loop in this one
			before, _ := last.At(s.Switch, key)
			stages[stageOf(i)] += before.Packets
		}
	}
	if len(hops) == 1 {
		return stages[0], true
	}
	return max(stages[0], stages[1]), true
}
