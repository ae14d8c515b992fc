package audit

import (
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// keptSlots is how long ago a reading may have been made when it arrives, in slots.
const keptSlots = 16

// countedSlot is what a port's flowset counted in a slot, and up to its end.
type countedSlot struct {
	slot          int64
	in, out       amount // in the slot
	inEnd, outEnd amount // up to its end
}

// portHistory is the last slots in which a port carried something.
type portHistory struct {
	slots   [keptSlots]countedSlot
	count   int
	in, out amount // since the start
	bad     int64  // the last slot whose count is not known
}

func (h *portHistory) add(slot int64, in, out amount) {
	h.in.add(in)
	h.out.add(out)
	h.slots[h.count%keptSlots] = countedSlot{slot, in, out, h.in, h.out}
	h.count++
}

// slotOf is the slot that an instant belongs to; what was counted up to a slot's first instant
// happened before it.
func (a *Auditor) slotOf(t model.Time) int64 { return (int64(t) - 1) / int64(a.cfg.Slot) }

// flowsetUpTo is what the flowset counted at a port up to an instant. Within a slot it grows
// evenly.
func (a *Auditor) flowsetUpTo(port uint32, t model.Time) (in, out amount, ok bool) {
	h, slot := a.history[port], a.slotOf(t)
	if h == nil {
		return in, out, slot >= a.firstSlot
	}
	for i := h.count - 1; i >= max(0, h.count-keptSlots); i-- {
		s := &h.slots[i%keptSlots]
		if s.slot > slot {
			continue
		}
		in, out = s.inEnd, s.outEnd
		if s.slot == slot {
			left := 1 - float64(int64(t)-slot*int64(a.cfg.Slot))/float64(a.cfg.Slot)
			for q := range quantities {
				in[q] -= uint64(left * float64(s.in[q]))
				out[q] -= uint64(left * float64(s.out[q]))
			}
		}
		return in, out, true
	}
	return in, out, h.count <= keptSlots && slot >= a.firstSlot // before the first packet
}

// peerUpTo is what the flowset of a port's peer counted of the packets that came from it.
func (a *Auditor) peerUpTo(port uint32, t model.Time) (in amount, peer uint32, ok bool) {
	p := a.cfg.Ports.PeerOf(port)
	if p.Kind != paths.SwitchPeer {
		return in, 0, false
	}
	if peer, ok = a.cfg.Ports.Number(p.Node, p.Port.Port); ok {
		in, _, ok = a.flowsetUpTo(peer, t)
	}
	return in, peer, ok
}

// badSince reports whether the flowset of a slot is not known, of those since an instant.
func (a *Auditor) badSince(port uint32, t model.Time) bool {
	node := a.cfg.Ports.Port(port).Node
	bad := max(a.gap, a.badSwitch[node])
	if h := a.history[port]; h != nil {
		bad = max(bad, h.bad)
	}
	return bad >= a.slotOf(t)
}
