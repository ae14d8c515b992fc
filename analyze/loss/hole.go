package loss

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
)

// Hole is a time in which a switch forwarded nothing to a destination: a black hole that
// began and ended between two slots in which packets arrived.
type Hole struct {
	Switch  model.NodeID
	Dst     model.Addr
	Slot    uint32 // in which it began
	Flows   int    // that lost packets
	Packets uint64 // lost
	// It lasted longer than Least and less than Most, if each of its flows sends evenly.
	Least, Most time.Duration
}

// Holes finds black holes in the drops of one switch, slot after slot.
//
// Paper: a large difference between counters before and behind, in one slot. Here it is a
// black hole, and not a full queue, where two flows or more to the destination have lost
// as many packets as one interruption takes from them, flows that lost fewer included, and
// packets to other destinations left by the same port without loss.
type Holes struct {
	open map[model.Addr]*interruption
	last uint32
}

// interruption is the drops to a destination in successive slots.
type interruption struct {
	slot, slots uint32
	flows       map[model.FlowKey]*evenFlow
	refuted     bool // by a port that dropped what goes elsewhere, or only leads there
}

// evenFlow is what a switch received and dropped of a flow.
type evenFlow struct{ received, dropped uint64 }

// Observe takes the incoming flowset of the next slot and its drops, and returns the holes
// that had ended when it began, by destination.
func (h *Holes) Observe(in *flows.Decoded, drops []Drop) (found []Hole) {
	dropped, ports := map[model.FlowKey]uint64{}, map[model.PortID]*portUse{}
	lost := map[model.Addr]bool{}
	for i := range drops {
		dropped[drops[i].Flow] = drops[i].Packets
		lost[drops[i].Flow.Dst] = true
	}
	for dst, one := range h.open {
		if !lost[dst] || in.Slot != h.last+1 {
			found = one.appendHole(found, in, dst)
			delete(h.open, dst)
		}
	}
	h.last = in.Slot
	for i := range in.Records {
		r := &in.Records[i]
		ports[r.Out] = ports[r.Out].with(r, lost[r.Key.Dst])
	}
	for i := range in.Records {
		r := &in.Records[i]
		if !lost[r.Key.Dst] {
			continue
		}
		one := h.open[r.Key.Dst]
		if one == nil {
			if h.open == nil {
				h.open = map[model.Addr]*interruption{}
			}
			one = &interruption{slot: in.Slot, flows: map[model.FlowKey]*evenFlow{}}
			h.open[r.Key.Dst] = one
		}
		one.slots = in.Slot - one.slot + 1
		f := one.flows[r.Key]
		if f == nil {
			f = &evenFlow{}
			one.flows[r.Key] = f
		}
		f.received += r.Packets
		f.dropped += dropped[r.Key]
		// A flow without a route has no port.
		use := ports[r.Out]
		one.refuted = one.refuted || r.Out != 0 && dropped[r.Key] > 0 && (use.lossy > 1 || use.healthy == 0)
	}
	slices.SortFunc(found, func(a, b Hole) int { return a.Dst.Compare(b.Dst) })
	return found
}

// portUse is the destinations that flows through a port had in a slot.
type portUse struct {
	lossy, healthy int // with drops; flows to those without
	dst            model.Addr
}

func (u *portUse) with(r *flows.Record, lost bool) *portUse {
	if u == nil {
		u = &portUse{}
	}
	switch {
	case !lost:
		u.healthy++
	case u.lossy == 0 || u.dst != r.Key.Dst:
		u.lossy, u.dst = u.lossy+1, r.Key.Dst
	}
	return u
}

// appendHole appends the hole that explains all drops, if one does.
func (one *interruption) appendHole(found []Hole, in *flows.Decoded, dst model.Addr) []Hole {
	span := time.Duration(one.slots) * in.Length
	hole := Hole{Switch: in.Switch, Dst: dst, Slot: one.slot, Most: span}
	for _, f := range one.flows {
		if f.dropped > 0 {
			hole.Flows++
			hole.Packets += f.dropped
			hole.Least = max(hole.Least, span*time.Duration(f.dropped-1)/time.Duration(f.received+1))
		}
		if f.received > 1 {
			hole.Most = min(hole.Most, span*time.Duration(f.dropped+1)/time.Duration(f.received-1))
		}
	}
	if one.refuted || hole.Flows < 2 || hole.Least == 0 || hole.Least >= hole.Most {
		return found
	}
	return append(found, hole)
}
