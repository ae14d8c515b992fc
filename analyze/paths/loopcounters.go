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
	var entered uint64
	for _, s := range t.Hops[:2] {
		if !s.Exact {
			return nil, false
		}
		n := s.Packets
		if last != nil { // packets that entered in the slot before may loop in this one
			earlier := f.in(last)
			before, _ := earlier.at(s.Switch)
			n += before.Packets
		}
		entered = max(entered, n)
	}
	many := slices.DeleteFunc(slices.Clone(t.Hops[2:]),
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
