package loss

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// After a slot whose counters are not all known, the accounts of a flowlet begin again,
// though its packets are in flight. Say that a hop counted U(s) packets in slot s, and
// those after it D(s). By the clocks, a packet of slot s is counted next in slot s-1, s or
// s+1. So after the first slot r, D may have up to U(r) packets more than belong to the
// hop's packets since r (carried), and it may lack some that it had counted before: D(r)
// at most. The same holds at every later slot s, and no loss is undone, so the least of
//
//	U(r+1) + … + U(s) - D(r+1) - … - D(s-1)
//
// bounds what may seem lost and is not (surplus). It is small as soon as the flow is slow
// for a slot, and nothing when it is silent. Losses are reported beyond it, so that none is
// invented; they are found as soon as they exceed it and the packets of one slot, which
// are in flight.

// restart begins the accounts of a flowlet with this slot.
func (t *Tracker) restart(fl *flowlet, slot int64) {
	list := t.hopsOf(fl)
	for i := range list {
		t.freeDeficit(&list[i])
	}
	fl.firstSlot, fl.count, fl.exact, fl.restarted, fl.several = slot, 0, true, true, false
	t.stats.Restarted++
}

// silentBefore reports whether it is known that a flow's packets were not in flight when
// a slot began. Nothing is before slot 0.
func (t *Tracker) silentBefore(path []paths.Sighting, hash uint64, slot int64) bool {
	for i := range path {
		if !t.reportedBefore(path[i].Switch, slot) {
			return false
		}
	}
	_, left := slices.BinarySearch(t.left, hash)
	return !left
}

// reportedBefore reports whether a switch has reported everything since the slot before one.
func (t *Tracker) reportedBefore(sw model.NodeID, slot int64) bool {
	from, whole := t.since[sw]
	return whole && from < max(slot, 1)
}

// otherPath reports whether a flow came or left by another port than before.
func otherPath(h *hop, s *paths.Sighting) bool {
	return h.in != 0 && s.In != 0 && h.in != s.In || h.out != 0 && s.Out != 0 && h.out != s.Out
}

// noteSurplus updates the surplus of a restarted flowlet's hops. In its first slot, nothing
// is counted.
func (t *Tracker) noteSurplus(fl *flowlet, list []hop, slot int64) {
	if slot == fl.firstSlot {
		for i := range list {
			h := &list[i]
			if h.packets > math.MaxUint32 {
				fl.exact = false
			}
			h.carried, h.surplus, h.packets, h.last = uint32(h.packets), uint32(t.after[i]), 0, 0
			t.after[i] = 0
		}
		return
	}
	if !fl.exact {
		return
	}
	clear(t.newest)
	for j := range list {
		if h := &list[j]; h.state&hasUp != 0 && h.upHop >= 0 {
			t.newest[h.upHop] += h.last
		}
	}
	for i := range list {
		h := &list[i]
		if before := t.after[i] - t.newest[i]; before <= h.packets {
			h.surplus = uint32(min(uint64(h.surplus), h.packets-before))
		}
	}
}
