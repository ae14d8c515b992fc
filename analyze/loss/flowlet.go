package loss

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// flowlet is one burst of a flow on its path.
type flowlet struct {
	firstSlot int64 // its first slot
	lastSlot  int64 // the newest in which the flow was seen
	severalIn int64
	hops      uint32 // where its hops begin in Tracker.hops, in the order in which they were first seen
	count     uint16 // of hops
	class     uint8  // of the hops' array
	exact     bool   // every counter so far was
	several   bool   // its packets took several paths at once, last in severalIn
	// restarted: its packets may have been in flight when it began, at firstSlot, which
	// is not counted itself. See restart.go.
	restarted bool
}

// hop holds the counters of a flowlet at one switch.
type hop struct {
	packets uint64
	last    uint64 // of packets, those of the newest slot
	sw      model.NodeID
	up      model.NodeID // the switch that packets came from
	in, out model.PortID
	deficit uint32 // its index in Tracker.deficits plus one; 0: no packet is missing after the hop
	// Of a restarted flowlet: packets of before that later hops counted hide losses. At most
	// carried of them; and as many losses as surplus are not certain.
	carried, surplus uint32
	upHop            int16 // the index of up among the flowlet's hops; -1: not known
	state            hopState
}

type hopState uint8

const (
	hasUp    hopState = 1 << iota // clear: packets came from a host, or a node that does not count
	seenNow                       // the switch counted the flow in the newest slot
	firstNow                      // and in none before
	// provenLost: in every slot so far it was proven that no packet passed further.
	provenLost
	// moved: the flow left by another port and no slot has ended since without missing packets.
	moved
)

// maxHops bounds the switches of a flowlet. A path through more is not one of a fabric.
const maxHops = 1 << 12

// addSlot adds a flow's counters of a map to its flowlet: the sightings of its path, none
// if the slot was silent. Afterwards the tracker's downstream counts are those of the
// flowlet.
func (t *Tracker) addSlot(fl *flowlet, m *paths.Map, flow int, key *model.FlowKey, path []paths.Sighting) {
	if !fl.exact && len(path) > 0 {
		t.restart(fl, m.Slot)
	}
	if flow >= 0 && m.OnSeveralPaths(flow) {
		fl.several, fl.severalIn = true, m.Slot
	}
	list := t.hopsOf(fl)
	for i := range list {
		list[i].last = 0
		list[i].state &^= seenNow | firstNow
	}
	seen := 0
	for n := range path {
		s := &path[n]
		fl.exact = fl.exact && s.Exact
		i := n
		if i >= len(list) || list[i].sw != s.Switch {
			i = slices.IndexFunc(list, func(h hop) bool { return h.sw == s.Switch })
		}
		if i < 0 {
			if len(list) == maxHops {
				fl.exact = false
				continue
			}
			list = t.addHop(fl, s)
			i = len(list) - 1
			// Packets it did not report before would seem lost upstream of it.
			if m.Slot > fl.firstSlot && (fl.restarted || !t.reportedBefore(s.Switch, fl.firstSlot)) {
				fl.exact = false
			}
		}
		h := &list[i]
		h.last = s.Packets
		h.packets += s.Packets
		h.state |= seenNow
		seen++
		if fl.restarted && otherPath(h, s) {
			fl.exact = false
		}
		if s.Out != 0 && h.out != s.Out {
			if h.out != 0 {
				h.state |= moved
			}
			h.out = s.Out
		}
		if h.state&hasUp == 0 {
			if up, ok := t.upstream(m, path, n); ok {
				h.up, h.upHop = up, -1
				h.state |= hasUp
			}
		}
	}
	if seen < len(list) {
		// A switch without a conclusive report may have counted packets that will seem lost.
		for i := range list {
			if list[i].state&seenNow != 0 {
				continue
			}
			if _, p := m.FlowAt(flow, list[i].sw, key); p == paths.Unknown {
				fl.exact = false
			}
		}
	}
	t.countDownstream(list)
	if fl.restarted {
		t.noteSurplus(fl, list, m.Slot)
	}
	for i := range list {
		h := &list[i]
		if t.delivers(h, i) {
			h.state &^= provenLost
			continue
		}
		t.takeBack(list, i)
		t.noteMissing(h, m.Slot, t.after[i])
		if h.packets <= t.after[i]+t.reported(h) {
			h.state &^= moved
		}
		if h.state&provenLost != 0 && !(t.isLast(i) && t.provenLost(m, flow, key, h)) {
			h.state &^= provenLost
		}
	}
}

func (t *Tracker) hopsOf(fl *flowlet) []hop {
	return t.hops.items[fl.hops : fl.hops+uint32(fl.count)]
}

// addHop adds a switch to a flowlet's hops, and returns them.
func (t *Tracker) addHop(fl *flowlet, s *paths.Sighting) []hop {
	if int(fl.count) == t.hops.capacity(fl.class) {
		fl.hops = t.hops.grow(fl.hops, fl.class, int(fl.count))
		fl.class++
	}
	fl.count++
	list := t.hopsOf(fl)
	list[fl.count-1] = hop{sw: s.Switch, in: s.In, out: s.Out, upHop: -1, state: firstNow | provenLost}
	return list
}

// provenLost reports whether it is proven that no packet passed further than a
// hop in this slot, and some should have.
func (t *Tracker) provenLost(m *paths.Map, flow int, key *model.FlowKey, h *hop) bool {
	ends := t.cache.LastHops(key.Dst)
	if slices.Contains(ends, h.sw) {
		return false
	}
	switch p := t.ports.Peer(h.sw, h.out); p.Kind {
	case paths.HostPeer:
		return false
	case paths.SwitchPeer:
		if _, presence := m.FlowAt(flow, p.Node, key); presence != paths.Unknown {
			return presence == paths.Absent
		}
	}
	return len(ends) > 0 && !slices.ContainsFunc(ends, func(sw model.NodeID) bool {
		_, presence := m.FlowAt(flow, sw, key)
		return presence != paths.Absent
	})
}

// upstream finds the switch that packets of a path's hop came from: the one at
// the other end of their ingress port, if it counts; else the hop before. A
// clock that is ahead may not have shown the flow at that switch yet.
func (t *Tracker) upstream(m *paths.Map, path []paths.Sighting, n int) (model.NodeID, bool) {
	switch p := t.ports.Peer(path[n].Switch, path[n].In); p.Kind {
	case paths.HostPeer:
		return 0, false
	case paths.SwitchPeer:
		if m.Reported(p.Node) {
			return p.Node, true
		}
	}
	if n == 0 {
		return 0, false
	}
	return path[n-1].Switch, true
}

// countDownstream counts, for each hop, the packets of the hops after it, and those hops.
func (t *Tracker) countDownstream(list []hop) {
	n := len(list)
	if n > cap(t.after) {
		t.after, t.newest, t.followers = make([]uint64, 2*n), make([]uint64, 2*n), make([]uint16, 2*n)
	}
	t.after, t.newest, t.followers = t.after[:n], t.newest[:n], t.followers[:n]
	clear(t.after)
	clear(t.followers)
	for j := range list {
		h := &list[j]
		if h.state&hasUp == 0 {
			continue
		}
		if h.upHop < 0 {
			h.upHop = int16(slices.IndexFunc(list, func(o hop) bool { return o.sw == h.up }))
			if h.upHop < 0 {
				continue
			}
		}
		t.after[h.upHop] += h.packets
		t.followers[h.upHop]++
	}
}

// delivers reports whether a hop is the last one, and gives the packets to a host: none of
// them is missing. Nearly every flowlet has such a hop, so dating its packets
// would be most of a tracker's memory.
func (t *Tracker) delivers(h *hop, i int) bool {
	return t.isLast(i) && h.deficit == 0 && t.ports.Peer(h.sw, h.out).Kind == paths.HostPeer
}

// isLast reports whether no switch after a hop counted the flow.
func (t *Tracker) isLast(i int) bool { return t.followers[i] == 0 }

// earlyLosses reports losses of a flowlet that continues. Packets that a hop
// counted up to the slot before must have passed the next one by now.
func (t *Tracker) earlyLosses(events []Event, fl *flowlet, key *model.FlowKey, slot int64) []Event {
	if !fl.exact {
		return events
	}
	list := t.hopsOf(fl)
	if fl.spreads(slot) || t.ambiguous(list) {
		return events
	}
	for i := range list {
		h := &list[i]
		if t.isLast(i) || h.state&moved != 0 {
			continue
		}
		if lost := t.certainlyLost(i, h, h.packets-h.last); lost > 0 {
			events = append(events, t.lossEvent(list, i, key, lost, slot, false))
		}
	}
	return events
}

// finalLosses reports the losses of an ended flowlet that were not reported yet.
func (t *Tracker) finalLosses(events []Event, fl *flowlet, key *model.FlowKey, slot int64) []Event {
	list := t.hopsOf(fl)
	if fl.spreads(slot) || t.ambiguous(list) {
		if fl.restarted {
			return events
		}
		return t.wholePathLoss(events, fl, key, slot)
	}
	for i := range list {
		h := &list[i]
		if t.isLast(i) && h.state&provenLost == 0 {
			continue
		}
		if lost := t.certainlyLost(i, h, h.packets); lost > 0 {
			events = append(events, t.lossEvent(list, i, key, lost, slot, true))
		}
	}
	return events
}

// certainlyLost returns how many of a hop's packets that have passed the next hops by now
// were lost, and not yet reported.
func (t *Tracker) certainlyLost(i int, h *hop, passed uint64) uint64 {
	accounted := t.after[i] + t.reported(h) + uint64(h.surplus)
	return passed - min(passed, accounted)
}

// ambiguous reports whether some switch counted more packets than those its flow
// came from. The path changed within the flowlet, or packets looped: which
// counters correspond is not known, and their difference is not a loss.
func (t *Tracker) ambiguous(list []hop) bool {
	for i := range list {
		if t.after[i] > list[i].packets+uint64(list[i].carried) {
			return true
		}
	}
	return false
}

// wholePathLoss reports the loss over the whole of an ambiguous path.
func (t *Tracker) wholePathLoss(events []Event, fl *flowlet, key *model.FlowKey, slot int64) []Event {
	var sent, arrived, reported uint64
	first, last := -1, -1
	list := t.hopsOf(fl)
	for i := range list {
		h := &list[i]
		reported += t.reported(h)
		if h.state&hasUp == 0 {
			sent += h.packets
			if first < 0 {
				first = i
			}
		}
		if t.isLast(i) && h.state&provenLost == 0 && !(fl.spreads(slot) && t.leadsOn(list, h)) {
			arrived += h.packets
			last = i
		}
	}
	if first < 0 || sent <= arrived+reported {
		return events
	}
	e := Event{
		Flow: *key, Packets: sent - arrived - reported, Sent: sent, FirstSlot: fl.firstSlot, LastSlot: slot - 1,
		FoundSlot: slot, Final: true,
	}
	e.Segment = Segment{From: model.Port{Node: list[first].sw, Port: list[first].out}, WholePath: true}
	if last >= 0 {
		e.To = model.Port{Node: list[last].sw, Port: list[last].in}
	}
	return append(events, e)
}

// spreads reports whether packets take several paths at once: which of them a hop's
// counters belong to is not known, and losses are those of the whole path. A change of
// routes looks the same for a slot, or two by clocks that differ.
func (fl *flowlet) spreads(slot int64) bool { return fl.several && slot-fl.severalIn <= 2 }

// leadsOn reports whether a hop's port leads to a switch that counted the flow.
func (t *Tracker) leadsOn(list []hop, h *hop) bool {
	p := t.ports.Peer(h.sw, h.out)
	return p.Kind == paths.SwitchPeer && slices.ContainsFunc(list, func(o hop) bool { return o.sw == p.Node })
}

// lossEvent reports a loss after a hop.
func (t *Tracker) lossEvent(list []hop, i int, key *model.FlowKey, lost uint64, slot int64, final bool) Event {
	e := Event{Flow: *key, Segment: segment(list, i), Packets: lost, FoundSlot: slot, Final: final}
	e.WholePath = list[i].state&moved != 0
	e.FirstSlot, e.LastSlot, e.Sent = t.reportLoss(&list[i], lost)
	return e
}

// segment returns the segment after a hop, up to the first hop that followed it.
func segment(list []hop, i int) Segment {
	s := Segment{From: model.Port{Node: list[i].sw, Port: list[i].out}}
	for j := range list {
		if next := &list[j]; next.state&hasUp != 0 && next.upHop == int16(i) {
			s.To = model.Port{Node: next.sw, Port: next.in}
			break
		}
	}
	return s
}
