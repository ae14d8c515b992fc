package control

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// stuckPackets are the accounts of packets that were missing after a paused port. Most arrive
// late, when the pause ends; what is missing after that was lost. Counters of both ends of
// the link are needed, which slots that other processes analysed do not have.
type stuckPackets struct {
	flows map[stuckFlow]*stuckAccount
	order []stuckFlow // as they were first missing
}

// stuckFlow is a flow on a segment.
type stuckFlow struct {
	flow model.FlowKey
	loss.Segment
}

// stuckAccount is what both ends of a segment counted since packets were first missing.
type stuckAccount struct {
	sent    uint64 // at its start
	newest  uint64 // of them, those of the newest slot, which may be in flight
	missing int64  // at its end
	from    int64  // slot in which the first of them were sent
	slot    int64  // that is accounted for
}

// maxStuckFlows bounds the accounts: beyond it the oldest is dropped, of a port that has been
// paused for longest.
const maxStuckFlows = 1 << 12

// add begins the account of an event whose packets seem stuck. One that has begun has them.
// It reports false for one that cannot be followed.
func (p *stuckPackets) add(f *topo.Fabric, e *loss.Event, s *flowwatch.Slot) bool {
	k := stuckOf(f, e)
	if p.flows[k] != nil {
		return true
	}
	newest, _, known := crossed(f, s, &k)
	if !known {
		return false
	}
	if p.flows == nil {
		p.flows = map[stuckFlow]*stuckAccount{}
	}
	if len(p.flows) >= maxStuckFlows {
		p.drop(p.order[0])
	}
	// The event does not have the newest slot's packets, which may be missing, too.
	p.flows[k] = &stuckAccount{sent: e.Sent, newest: newest, missing: int64(e.Packets + newest), from: e.FirstSlot, slot: s.Index}
	p.order = append(p.order, k)
	return true
}

// stuckOf is the flow and the link of an event. No switch may have seen the packets after it.
func stuckOf(f *topo.Fabric, e *loss.Event) stuckFlow {
	k := stuckFlow{e.Flow, e.Segment}
	if link := f.Port(e.From); link != nil && k.To == (model.Port{}) {
		k.To = link.Peer
	}
	return k
}

func (p *stuckPackets) drop(k stuckFlow) {
	delete(p.flows, k)
	p.order = slices.DeleteFunc(p.order, func(o stuckFlow) bool { return o == k })
}

// takeLost returns the packets of the accounts that were lost by now, those of flows whose
// port is open, and closes them. Accounts without exact counters of the slot are dropped.
func (p *stuckPackets) takeLost(f *topo.Fabric, s *flowwatch.Slot, open func(*stuckFlow, *stuckAccount) bool) (lost []loss.Event) {
	if len(p.flows) == 0 {
		return nil
	}
	for i := range s.Losses { // what is reported is no longer missing
		e := &s.Losses[i]
		k := stuckOf(f, e)
		if a := p.flows[k]; a != nil && open(&k, a) {
			a.missing -= int64(e.Packets)
		}
	}
	kept := p.order[:0]
	for _, k := range p.order {
		a := p.flows[k]
		sent, arrived, known := crossed(f, s, &k)
		if !known || s.Index != a.slot+1 {
			delete(p.flows, k)
			continue
		}
		a.slot, a.newest, a.sent, a.missing = s.Index, sent, a.sent+sent, a.missing+int64(sent)-int64(arrived)
		if !open(&k, a) {
			kept = append(kept, k)
			continue
		}
		if n := a.missing - int64(a.newest); n > 0 {
			lost = append(lost, loss.Event{
				Flow: k.flow, Segment: k.Segment, Packets: uint64(n), Sent: a.sent, FirstSlot: a.from, LastSlot: s.Index - 1, FoundSlot: s.Index,
			})
		}
		delete(p.flows, k)
	}
	p.order = kept
	return lost
}

// crossed returns how many packets of a flow both ends of a segment counted in a slot, and
// false if that is not known.
func crossed(f *topo.Fabric, s *flowwatch.Slot, k *stuckFlow) (sent, arrived uint64, known bool) {
	if s.Remote() || k.WholePath || !f.HasNode(k.To.Node) || !f.Node(k.To.Node).Role.IsSwitch() {
		return 0, 0, false
	}
	m, flow, found := s.Find(&k.flow)
	switch {
	case m == nil:
		return 0, 0, false
	case found:
		// A change of routes: some of what the one end counts left by another port.
		for _, h := range m.Sightings(flow) {
			if h.Switch != k.To.Node && cameFrom(f, &h, k.From.Node) {
				return 0, 0, false
			}
		}
	}
	at, is := m.FlowAt(flow, k.From.Node, &k.flow)
	to, was := m.FlowAt(flow, k.To.Node, &k.flow)
	switch {
	case is == paths.Unknown || was == paths.Unknown,
		is == paths.Seen && (!at.Exact || at.Out != 0 && at.Out != k.From.Port),
		was == paths.Seen && (!to.Exact || to.In != 0 && to.In != k.To.Port):
		return 0, 0, false
	}
	return at.Packets, to.Packets, true
}

// cameFrom reports whether a flow's packets came to a switch from a node.
func cameFrom(f *topo.Fabric, h *paths.Sighting, node model.NodeID) bool {
	p := f.Port(model.Port{Node: h.Switch, Port: h.In})
	return p != nil && p.Peer.Node == node
}
