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
	touched          bool // it is in slotSums.touched
}

// slotSums is what flowsets counted in one slot, by port.
type slotSums struct {
	ports   *paths.Ports
	sums    []portSums // by the port's number
	touched []uint32
	paths   pathSums
}

func newSlotSums(p *paths.Ports) slotSums {
	return slotSums{ports: p, sums: make([]portSums, p.Len())}
}

func (t *slotSums) reset() {
	for _, n := range t.touched {
		t.sums[n] = portSums{}
	}
	t.touched = t.touched[:0]
	t.paths.reset()
}

// at returns the sums of a port, or nil for one that the fabric does not have.
func (t *slotSums) at(sw model.NodeID, port model.PortID) *portSums {
	s, _ := t.withPeer(sw, port)
	return s
}

// withPeer is at, and returns what the port leads to.
func (t *slotSums) withPeer(sw model.NodeID, port model.PortID) (*portSums, paths.Peer) {
	n, ok := t.ports.Number(sw, port)
	if !ok || port == 0 {
		return nil, paths.Peer{}
	}
	s := &t.sums[n]
	if !s.touched {
		s.touched = true
		t.touched = append(t.touched, n)
	}
	return s, t.ports.PeerOf(n)
}

// addFlow adds a flow, with its sightings in the order of its path.
func (t *slotSums) addFlow(key *model.FlowKey, hops []paths.Sighting) {
	follows := false // the flow came to this hop from the one before, as both saw it
	var last paths.Peer
	for i := range hops {
		h := &hops[i]
		in := t.at(h.Switch, h.In)
		out, peer := t.withPeer(h.Switch, h.Out)
		leads := i+1 < len(hops) && peer.Kind == paths.SwitchPeer && peer.Port == model.Port{Node: hops[i+1].Switch, Port: hops[i+1].In}
		if in != nil {
			in.in.count(h)
			if leads {
				in.next.count(&hops[i+1])
			} else {
				in.next.count(h)
				in.ownNext += h.Packets
			}
			in.unclear = in.unclear || !h.Exact
		}
		if out != nil {
			out.out.count(h)
			if follows {
				out.prev.count(&hops[i-1])
			} else {
				out.prev.count(h)
				out.ownPrev += h.Packets
			}
			out.unclear = out.unclear || !h.Exact
		}
		if i > 0 && !follows {
			t.markUnclear(hops[i-1].Switch, hops[i-1].Out) // it changed its path in this slot
			t.markUnclear(h.Switch, h.In)
		}
		follows, last = leads, peer
	}
	if returns(hops, last) {
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

// returns reports whether the last switch of a flow, which sends it to a peer, sends it to one
// that has seen it.
func returns(hops []paths.Sighting, peer paths.Peer) bool {
	if len(hops) < 2 || peer.Kind != paths.SwitchPeer {
		return false
	}
	for i := range hops {
		if hops[i].Switch == peer.Node {
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
			s.out.count(&hops[0])
			s.prev.count(&hops[0])
		}
	}
}
