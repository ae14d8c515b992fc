package audit

import (
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// portSums is what flowsets counted at one port in one slot.
type portSums struct {
	in, out amount // that came in and left by it
	// prev is the packets of out by the count of the switch before, next those of in by the
	// count of the switch after. ownPrev and ownNext of them have no such count: they are
	// the switch's own.
	prev, next       amount
	ownPrev, ownNext uint64
	unclear          bool // some of it may have taken another port
}

// slotSums is what flowsets counted in one slot, by port.
type slotSums struct {
	ports   *paths.Ports
	sums    []portSums // by the port's number
	touched []uint32
	isIn    []bool // by the port's number: it is in touched
}

func newSlotSums(p *paths.Ports) slotSums {
	return slotSums{ports: p, sums: make([]portSums, p.Len()), isIn: make([]bool, p.Len())}
}

func (t *slotSums) reset() {
	for _, n := range t.touched {
		t.sums[n], t.isIn[n] = portSums{}, false
	}
	t.touched = t.touched[:0]
}

// at returns the sums of a port, or nil for one that the fabric does not have.
func (t *slotSums) at(sw model.NodeID, port model.PortID) *portSums {
	n, ok := t.ports.Number(sw, port)
	if !ok || port == 0 {
		return nil
	}
	if !t.isIn[n] {
		t.isIn[n] = true
		t.touched = append(t.touched, n)
	}
	return &t.sums[n]
}

// linked reports whether a flow that left one switch as it was seen there came to the other.
func (t *slotSums) linked(from, to *paths.Sighting) bool {
	p := t.ports.Peer(from.Switch, from.Out)
	return from.Out != 0 && p.Kind == paths.SwitchPeer && p.Port == model.Port{Node: to.Switch, Port: to.In}
}

// addFlow adds a flow, with its sightings in the order of its path.
func (t *slotSums) addFlow(key *model.FlowKey, hops []paths.Sighting) {
	for i := range hops {
		h := &hops[i]
		n := amount{h.Packets, h.Bytes}
		in, out := t.at(h.Switch, h.In), t.at(h.Switch, h.Out)
		if in != nil {
			in.in.add(n)
			if i+1 < len(hops) && t.linked(h, &hops[i+1]) {
				in.next.add(amount{hops[i+1].Packets, hops[i+1].Bytes})
			} else {
				in.next.add(n)
				in.ownNext += n[packets]
			}
			in.unclear = in.unclear || !h.Exact
		}
		if out != nil {
			out.out.add(n)
			if i > 0 && t.linked(&hops[i-1], h) {
				out.prev.add(amount{hops[i-1].Packets, hops[i-1].Bytes})
			} else {
				out.prev.add(n)
				out.ownPrev += n[packets]
			}
			out.unclear = out.unclear || !h.Exact
		}
		if i > 0 && !t.linked(&hops[i-1], h) {
			t.markUnclear(hops[i-1].Switch, hops[i-1].Out) // it changed its path in this slot
			t.markUnclear(h.Switch, h.In)
		}
	}
	if t.returns(hops) {
		for i := range hops { // a loop: packets are counted more than once, by one port
			t.markUnclear(hops[i].Switch, hops[i].In)
			t.markUnclear(hops[i].Switch, hops[i].Out)
		}
	}
	t.addOriginated(key, hops)
}

func (t *slotSums) markUnclear(sw model.NodeID, port model.PortID) {
	if s := t.at(sw, port); s != nil {
		s.unclear = true
	}
}

// returns reports whether the last switch of a flow sends it to one that has seen it.
func (t *slotSums) returns(hops []paths.Sighting) bool {
	if len(hops) < 2 {
		return false
	}
	last := &hops[len(hops)-1]
	to := t.ports.Peer(last.Switch, last.Out)
	for i := range hops {
		if to.Kind == paths.SwitchPeer && hops[i].Switch == to.Node {
			return true
		}
	}
	return false
}

// addOriginated adds packets that a switch made itself, such as reports, and that it does not
// count: they left it by the port that leads to their first sighting.
func (t *slotSums) addOriginated(key *model.FlowKey, hops []paths.Sighting) {
	if len(hops) == 0 || hops[0].In == 0 {
		return
	}
	from := t.ports.Peer(hops[0].Switch, hops[0].In)
	if from.Kind != paths.SwitchPeer {
		return
	}
	if maker, ok := t.ports.Fabric().ByAddr(key.Src); ok && maker == from.Node {
		if s := t.at(from.Node, from.Port.Port); s != nil {
			n := amount{hops[0].Packets, hops[0].Bytes}
			s.out.add(n)
			s.prev.add(n)
		}
	}
}
