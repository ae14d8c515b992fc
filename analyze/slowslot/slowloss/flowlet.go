package slowloss

import (
	"slices"

	paths "github.com/weft-telemetry/weft/analyze/slowslot/slowpaths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// flowlet is one burst of a flow on its path.
type flowlet struct {
	firstSlot int64 // its first slot
	exact     bool  // every counter so far was
	hops      []hop // in the order in which they were first seen
	restarted bool  // its packets may have been in flight before firstSlot
	several   bool  // its packets took several paths at once, last in severalIn
	severalIn int64
}

// hop holds the counters of a flowlet at one switch.
type hop struct {
	sw      model.NodeID
	in, out model.PortID
	up      model.NodeID // the switch that packets came from
	hasUp   bool         // false: a host, or a node that does not count
	packets uint64

	last uint64 // of packets, those of the newest slot
	// Of a restarted flowlet: packets of firstSlot, and the history of the slots after it:
	// what the hop and those after it had counted at the end of each.
	first   uint64
	history []counted
	// reported is the number of losses already reported between here and the next hops.
	reported uint64
	// provenLost: in every slot so far it was proven that no packet passed further.
	provenLost bool
	// moved: the flow left by another port, and no slot has ended since without missing packets.
	moved bool
	// unreported are the ends of slots since clean, the last slot at whose end no
	// packet was missing but reported losses. Missing packets are those in flight
	// and lost ones.
	clean      int64
	sent       uint64 // of packets, those up to the end of clean
	unreported []slotEnd
	// firstLoss and lastLoss bound the reported losses.
	firstLoss, lastLoss int64
}

// slotEnd is what a hop had counted at the end of a slot, and how many of those
// packets later hops lacked.
type slotEnd struct{ packets, missing uint64 }

// counted is what a hop and the hops after it counted since firstSlot, and the latter in
// the newest slot.
type counted struct{ packets, after, newest uint64 }

// maxDated bounds the slots over which a loss is dated; a longer span of
// continuous traffic is dated by its last ones.
const maxDated = 64

// addSlot adds the flow's counters of a map and reports whether the flow was
// seen. since is the slot from which on each switch has reported everything.
func (fl *flowlet) addSlot(m *paths.Map, key model.FlowKey, routes *topo.Routes, since map[model.NodeID]int64, stats *Stats) bool {
	trail := m.FlowPath(key, routes)
	if !fl.exact && len(trail.Hops) > 0 {
		*fl = flowlet{firstSlot: m.Slot, exact: true, restarted: true}
		stats.Restarted++
	}
	if trail.Several {
		fl.several, fl.severalIn = true, m.Slot
	}
	for i := range fl.hops {
		fl.hops[i].last = 0
	}
	for n, s := range trail.Hops {
		if !s.Exact {
			fl.exact = false
		}
		i := fl.hopAt(s.Switch)
		if i < 0 {
			i = len(fl.hops)
			fl.hops = append(fl.hops, hop{sw: s.Switch, in: s.In, out: s.Out, clean: m.Slot - 1, provenLost: true})
			// Packets it did not report before would seem lost upstream of it.
			if m.Slot > fl.firstSlot && (fl.restarted || !wholeBefore(since, s.Switch, fl.firstSlot)) {
				fl.exact = false
			}
		}
		h := &fl.hops[i]
		h.last = s.Packets
		h.packets += s.Packets
		if fl.restarted && (h.in != 0 && s.In != 0 && h.in != s.In || h.out != 0 && s.Out != 0 && h.out != s.Out) {
			fl.exact = false // another path
		}
		if s.Out != 0 && h.out != s.Out {
			h.moved = h.moved || h.out != 0
			h.out = s.Out
		}
		if !h.hasUp {
			h.up, h.hasUp = upstream(m, routes.Fabric(), trail, n)
		}
	}
	// A switch without a conclusive report may have counted packets that will seem lost.
	for i := range fl.hops {
		if _, p := m.At(fl.hops[i].sw, key); p == paths.Unknown {
			fl.exact = false
		}
	}
	fl.remember(m.Slot)
	for i := range fl.hops {
		h := &fl.hops[i]
		if h.reported == 0 && len(h.unreported) == 0 && fl.isLastHop(i) && h.givesToHost(routes.Fabric()) {
			// Delivered: if a later slot has another path, these packets are not lost on it.
			h.clean, h.sent, h.provenLost = m.Slot, h.packets, false
			continue
		}
		late := fl.late(i)
		h.reported -= late
		stats.Late += late
		h.noteMissing(m.Slot, fl.downstreamPackets(i))
		h.moved = h.moved && h.packets > fl.downstreamPackets(i)+h.reported
		h.provenLost = h.provenLost && fl.isLastHop(i) && provenLost(m, key, h, routes)
	}
	return len(trail.Hops) > 0
}

// late returns how many reported losses after a hop have arrived: no more packets than the
// hop counted can have arrived up to the slot before, or been lost, but for those of before a
// restart.
func (fl *flowlet) late(i int) (n uint64) {
	arrived := fl.downstreamPackets(i)
	for j := range fl.hops {
		if next := &fl.hops[j]; next.comesAfter(&fl.hops[i]) {
			arrived -= next.last
		}
	}
	for n < fl.hops[i].reported && arrived+fl.hops[i].reported-n > fl.hops[i].packets+fl.hops[i].first {
		n++
	}
	return n
}

// provenLost reports whether it is proven that no packet passed further than a
// hop in this slot, and some should have.
func provenLost(m *paths.Map, key model.FlowKey, h *hop, routes *topo.Routes) bool {
	ends := routes.ExpectedLastHops(key.Dst)
	if slices.Contains(ends, h.sw) {
		return false
	}
	f := routes.Fabric()
	if p := f.Port(model.Port{Node: h.sw, Port: h.out}); p != nil {
		if f.Node(p.Peer.Node).Role <= topo.Mux {
			return false
		}
		if _, presence := m.At(p.Peer.Node, key); presence != paths.Unknown {
			return presence == paths.Absent
		}
	}
	return len(ends) > 0 && !slices.ContainsFunc(ends, func(sw model.NodeID) bool {
		_, presence := m.At(sw, key)
		return presence != paths.Absent
	})
}

func (fl *flowlet) hopAt(sw model.NodeID) int {
	for i := range fl.hops {
		if fl.hops[i].sw == sw {
			return i
		}
	}
	return -1
}

// upstream finds the switch that packets of a path's hop came from: the one at
// the other end of their ingress port, if it counts; else the hop before. A
// clock that is ahead may not have shown the flow at that switch yet.
func upstream(m *paths.Map, f *topo.Fabric, trail paths.Path, n int) (model.NodeID, bool) {
	s := trail.Hops[n]
	if p := f.Port(model.Port{Node: s.Switch, Port: s.In}); p != nil {
		if f.Node(p.Peer.Node).Role <= topo.Mux {
			return 0, false
		}
		if m.Reported(p.Peer.Node) {
			return p.Peer.Node, true
		}
	}
	if n == 0 {
		return 0, false
	}
	return trail.Hops[n-1].Switch, true
}

// comesAfter reports whether packets came from another hop.
func (h *hop) comesAfter(up *hop) bool { return h.hasUp && h.up == up.sw }

// downstreamPackets returns how many packets the hops after one counted.
func (fl *flowlet) downstreamPackets(i int) (n uint64) {
	for j := range fl.hops {
		if fl.hops[j].comesAfter(&fl.hops[i]) {
			n += fl.hops[j].packets
		}
	}
	return n
}

// isLastHop reports whether no switch after a hop counted the flow.
func (fl *flowlet) isLastHop(i int) bool {
	for j := range fl.hops {
		if fl.hops[j].comesAfter(&fl.hops[i]) {
			return false
		}
	}
	return true
}

// givesToHost reports whether the hop sends the flow's packets to a host.
func (h *hop) givesToHost(f *topo.Fabric) bool {
	p := f.Port(model.Port{Node: h.sw, Port: h.out})
	return h.out != 0 && p != nil && !f.Node(p.Peer.Node).Role.IsSwitch()
}

// noteMissing records the packets missing after a hop at the end of a slot.
func (h *hop) noteMissing(slot int64, after uint64) {
	if h.packets <= after+h.reported {
		h.clean, h.sent, h.unreported = slot, h.packets, h.unreported[:0]
		return
	}
	if len(h.unreported) == maxDated {
		h.forgetSlots(1)
	}
	h.unreported = append(h.unreported, slotEnd{h.packets, h.packets - after})
}

// remember adds a slot to the history of a restarted flowlet. Packets of the first slot are
// not compared.
func (fl *flowlet) remember(slot int64) {
	if !fl.restarted {
		return
	}
	for i := range fl.hops {
		h := &fl.hops[i]
		var newest uint64
		for j := range fl.hops {
			if fl.hops[j].comesAfter(h) {
				newest += fl.hops[j].last
			}
		}
		if fl.exact || slot == fl.firstSlot {
			h.history = append(h.history, counted{h.packets, fl.downstreamPackets(i), newest})
		}
	}
	if slot == fl.firstSlot {
		for i := range fl.hops {
			h := &fl.hops[i]
			h.first, h.packets, h.last = h.packets, 0, 0
			h.history = []counted{{after: h.history[0].newest, newest: h.history[0].newest}}
		}
	}
}

// surplus is how many packets may seem lost after a hop of a restarted flowlet: the later
// hops may have counted them before its first slot. They did not, if at the end of some slot
// all but fewer had been counted there by the end of the slot before.
func (h *hop) surplus() uint64 {
	if len(h.history) == 0 {
		return 0
	}
	least := h.history[0].newest
	for _, c := range h.history[1:] {
		if earlier := c.after - c.newest; earlier <= c.packets {
			least = min(least, c.packets-earlier)
		}
	}
	return least
}

// forgetSlots makes the n-th slot since clean the clean one.
func (h *hop) forgetSlots(n int) {
	if n > 0 {
		h.clean, h.sent = h.clean+int64(n), h.unreported[n-1].packets
		h.unreported = append(h.unreported[:0], h.unreported[n:]...)
	}
}

// reportLoss adds lost packets to the reported ones. It returns the slots in which
// they passed the hop, and how many packets did so from the first of these slots on.
// The earliest losses are reported first: these are from after the last slot at whose
// end no more were missing than had been reported, or may seem so, and until as many
// were missing as are reported now.
func (h *hop) reportLoss(lost uint64) (first, last int64, sent uint64) {
	before, now := h.reported+h.surplus(), h.reported+h.surplus()+lost
	first, sent = h.clean+1, h.packets-h.sent
	for i, end := range h.unreported {
		if end.missing <= before {
			first, sent = h.clean+int64(i)+2, h.packets-end.packets
		}
	}
	last = first
	for i, end := range h.unreported {
		if end.missing < now {
			last = max(first, h.clean+int64(i)+2)
		}
	}
	resolved := 0
	for i, end := range h.unreported {
		if end.missing <= h.reported {
			resolved = i + 1
		}
	}
	h.forgetSlots(resolved)
	if h.reported == 0 {
		h.firstLoss, h.lastLoss = first, last
	}
	h.reported += lost
	h.firstLoss, h.lastLoss = min(h.firstLoss, first), max(h.lastLoss, last)
	return first, last, sent
}

// earlyLosses reports losses of a flowlet that continues. Packets that a hop
// counted up to the slot before must have passed the next one by now.
func (fl *flowlet) earlyLosses(events []Event, key model.FlowKey, slot int64) []Event {
	if !fl.exact || fl.spreads(slot) || fl.ambiguous() {
		return events
	}
	for i := range fl.hops {
		h := &fl.hops[i]
		if fl.isLastHop(i) || h.moved || h.packets-h.last <= fl.downstreamPackets(i)+h.reported+h.surplus() {
			continue
		}
		events = append(events, fl.lossEvent(i, key, h.packets-h.last-fl.downstreamPackets(i)-h.reported-h.surplus(), slot, false))
	}
	return events
}

// finalLosses reports the losses of an ended flowlet that were not reported yet.
func (fl *flowlet) finalLosses(events []Event, key model.FlowKey, slot int64, f *topo.Fabric) []Event {
	unplaced := fl.spreads(slot) || fl.ambiguous()
	if unplaced && fl.restarted {
		return events
	}
	if unplaced {
		return fl.wholePathLoss(events, key, slot, f)
	}
	for i := range fl.hops {
		h := &fl.hops[i]
		if fl.isLastHop(i) && !h.provenLost || h.packets <= fl.downstreamPackets(i)+h.reported+h.surplus() {
			continue
		}
		events = append(events, fl.lossEvent(i, key, h.packets-fl.downstreamPackets(i)-h.reported-h.surplus(), slot, true))
	}
	return events
}

// ambiguous reports whether some switch counted more packets than those its flow
// came from. The path changed within the flowlet, or packets looped: which
// counters correspond is not known, and their difference is not a loss.
func (fl *flowlet) ambiguous() bool {
	for i := range fl.hops {
		if fl.downstreamPackets(i) > fl.hops[i].packets+fl.hops[i].first {
			return true
		}
	}
	return false
}

// wholePathLoss reports the loss over the whole of an ambiguous path.
func (fl *flowlet) wholePathLoss(events []Event, key model.FlowKey, slot int64, f *topo.Fabric) []Event {
	var sent, arrived, reported uint64
	first, last := -1, -1
	for i := range fl.hops {
		h := &fl.hops[i]
		reported += h.reported
		if !h.hasUp {
			sent += h.packets
			if first < 0 {
				first = i
			}
		}
		if fl.isLastHop(i) && !h.provenLost && !(fl.spreads(slot) && fl.leadsOn(h, f)) {
			arrived += h.packets
			last = i
		}
	}
	if first < 0 || sent <= arrived+reported {
		return events
	}
	e := Event{
		Flow: key, Packets: sent - arrived - reported, Sent: sent, FirstSlot: fl.firstSlot, LastSlot: slot - 1,
		FoundSlot: slot, Final: true,
	}
	e.Segment = Segment{From: model.Port{Node: fl.hops[first].sw, Port: fl.hops[first].out}, WholePath: true}
	if last >= 0 {
		e.To = model.Port{Node: fl.hops[last].sw, Port: fl.hops[last].in}
	}
	return append(events, e)
}

// spreads reports whether packets take several paths at once, or did two slots ago.
func (fl *flowlet) spreads(slot int64) bool { return fl.several && slot-fl.severalIn <= 2 }

// leadsOn reports whether a hop's port leads to a switch that counted the flow.
func (fl *flowlet) leadsOn(h *hop, f *topo.Fabric) bool {
	p := f.Port(model.Port{Node: h.sw, Port: h.out})
	return h.out != 0 && p != nil && f.Node(p.Peer.Node).Role.IsSwitch() && fl.hopAt(p.Peer.Node) >= 0
}

// lossEvent reports a loss after a hop.
func (fl *flowlet) lossEvent(i int, key model.FlowKey, lost uint64, slot int64, final bool) Event {
	e := Event{Flow: key, Segment: fl.segment(i), Packets: lost, FoundSlot: slot, Final: final}
	e.WholePath = fl.hops[i].moved
	e.FirstSlot, e.LastSlot, e.Sent = fl.hops[i].reportLoss(lost)
	return e
}

// segment returns the segment after a hop, up to the first hop that followed it.
func (fl *flowlet) segment(i int) Segment {
	s := Segment{From: model.Port{Node: fl.hops[i].sw, Port: fl.hops[i].out}}
	for j := range fl.hops {
		if next := &fl.hops[j]; next.comesAfter(&fl.hops[i]) {
			s.To = model.Port{Node: next.sw, Port: next.in}
			break
		}
	}
	return s
}
