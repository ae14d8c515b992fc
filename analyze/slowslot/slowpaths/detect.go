package slowpaths

import (
	"errors"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Detector compares successive maps of a fabric with each other and with the
// intended routes. It needs packets to get from switch to switch, and clocks
// to agree, within one slot.
type Detector struct {
	cfg    Config
	fabric *topo.Fabric
	maps   [2]*Map            // of the slot before last, and of the last one
	passed map[model.Port]int // flows that got through a port in the last slot
}

// NewDetector returns a detector that has observed no slot.
func NewDetector(cfg Config) (*Detector, error) {
	if cfg.Intent == nil {
		return nil, errors.New("paths: no intended routes, want a topo.Intent")
	}
	if cfg.MinPackets == 0 {
		return nil, errors.New("paths: min packets 0, want at least 1")
	}
	return &Detector{cfg: cfg, fabric: cfg.Intent.At(0).Fabric()}, nil
}

// Observe takes the map of the next slot and returns its findings: loops and
// wrong routes of this slot, loops that counters suggest, paths that seem to
// stop in it, and paths that certainly stopped in the slot before. Findings are
// sorted by kind, location and slot. A slot without a map must be given as an
// empty one.
func (d *Detector) Observe(m *Map) []Finding {
	out := collector{passedBefore: d.passed, passed: map[model.Port]int{}, asIntended: map[model.NodeID]int{}}
	before, last := d.maps[0], d.maps[1]
	routes := d.cfg.Intent.Between(m.Start().Add(-m.Length), m.End().Add(m.Length))
	for _, key := range m.order {
		t := m.FlowPath(key, routes[len(routes)-1])
		d.findMisrouted(&out, m, key, routes)
		d.countPassed(&out, m, key, routes)
		if t.Loop != nil {
			d.evaluateLoop(&out, m, last, key, t)
			continue
		}
		if loop := d.loopByCounters(m, last, key, t); loop != nil {
			out.addFinding(Finding{Kind: Loop, Slot: m.Slot, At: model.Port{Node: loop[0]}, Switches: loop}, key)
			continue
		}
		if at, next, hasNext, stops := d.findStop(m, key, t, routes); stops &&
			d.stoppedSuddenly(last, m, key, at, next, hasNext) {
			out.addFinding(Finding{Kind: BlackHole, Slot: m.Slot, At: at, Next: next, HasNext: hasNext}, key)
		}
	}
	if last != nil {
		d.confirmStops(&out, before, last, m)
	}
	d.maps, d.passed = [2]*Map{last, m}, out.passed
	return out.findings(m.Slot)
}

// confirmStops checks paths that stopped in the last slot again, now that their
// packets have had another slot to arrive in.
func (d *Detector) confirmStops(out *collector, before, last, now *Map) {
	routes := d.cfg.Intent.Between(last.Start().Add(-last.Length), now.End())
	for _, key := range last.order {
		t := last.FlowPath(key, routes[len(routes)-1])
		if t.Loop != nil {
			continue
		}
		at, next, hasNext, stops := d.findStop(last, key, t, routes)
		if !stops || !d.provenLost(now, key, next, hasNext, routes) {
			continue
		}
		was, _ := last.At(at.Node, key)
		is, presence := now.At(at.Node, key)
		if was.Packets+is.Packets < d.cfg.MinPackets {
			continue
		}
		// A flow whose last packets came as the slot started may have been
		// counted in the slot before by a clock that is late. It must continue
		// and still not arrive, unless it never arrived before either.
		if presence != Seen && !(before != nil && d.provenLost(before, key, next, hasNext, routes)) {
			continue
		}
		out.addFinding(Finding{
			Kind: BlackHole, Slot: last.Slot, Confirmed: true, At: at, Next: next,
			HasNext: hasNext,
		}, key)
	}
}

// findStop reports whether a flow's packets were last seen where they should not
// end, and where that is.
func (d *Detector) findStop(m *Map, key model.FlowKey, t Path, routes []*topo.Routes) (at, next model.Port, hasNext,
	stops bool,
) {
	end := t.Hops[len(t.Hops)-1]
	at = model.Port{Node: end.Switch, Port: end.Out}
	if p := d.fabric.Port(at); p != nil {
		next = p.Peer
		if d.fabric.Node(next.Node).Role <= topo.Mux {
			return at, next, false, false // delivered to a host, rightly or not
		}
		_, presence := m.At(next.Node, key)
		if presence == Unknown && m.partial(next.Node, key.V6) {
			return at, next, false, false // it may have been lost after the next switch
		}
		hasNext = presence == Absent
	}
	if !hasNext {
		next = model.Port{}
	}
	for _, r := range routes {
		if slices.Contains(r.ExpectedLastHops(key.Dst), end.Switch) {
			return at, next, hasNext, false
		}
	}
	return at, next, hasNext, d.provenLost(m, key, next, hasNext, routes)
}

// provenLost reports whether it is proven that no packet of a flow passed a
// stop: the next switch did not see it; or, if that one is not conclusive, no
// switch at which the flow should end did.
func (d *Detector) provenLost(m *Map, key model.FlowKey, next model.Port, hasNext bool, routes []*topo.Routes) bool {
	proven := false
	if hasNext {
		_, presence := m.At(next.Node, key)
		if presence != Absent {
			return false
		}
		proven = true
	}
	for _, r := range routes {
		for _, sw := range r.ExpectedLastHops(key.Dst) {
			switch _, presence := m.At(sw, key); presence {
			case Seen:
				return false
			case Absent:
				proven = true
			case Unknown:
				if !hasNext {
					return false
				}
			}
		}
	}
	return proven
}

// stoppedSuddenly reports whether a flow that stops in this slot passed in the
// last one and continues at about the same rate, so that its packets are not
// just the first ones, still in flight.
func (d *Detector) stoppedSuddenly(last, m *Map, key model.FlowKey, at, next model.Port, hasNext bool) bool {
	if last == nil {
		return false
	}
	was, ran := last.At(at.Node, key)
	if !hasNext && at.Port == 0 {
		// The switch has no route for the flow any more, but had one.
		if p := d.fabric.Port(model.Port{Node: at.Node, Port: was.Out}); p != nil {
			_, presence := m.At(p.Peer.Node, key)
			next, hasNext = p.Peer, presence == Absent
		}
	}
	if !hasNext {
		return false
	}
	_, passed := last.At(next.Node, key)
	is, _ := m.At(at.Node, key)
	if !(ran == Seen && passed == Seen && 2*is.Packets >= was.Packets) {
		return false
	}
	then := last.FlowPath(key, d.cfg.Intent.At(last.Start()))
	if !then.Several {
		return true
	}
	// What one of its switches counts says little about its rate.
	more, exact := d.entered(m, nil, key, m.FlowPath(key, d.cfg.Intent.At(m.Start())).Hops)
	before, known := d.entered(last, nil, key, then.Hops)
	return exact && known && 2*more >= before
}

// findMisrouted finds the switches that sent a flow through a port that is on no
// intended route of the time. Packets to a mux's virtual address continue inside
// a tunnel, to another destination: they are skipped.
func (d *Detector) findMisrouted(out *collector, m *Map, key model.FlowKey, routes []*topo.Routes) {
	for _, owner := range d.fabric.Owners(key.Dst) {
		if d.fabric.Node(owner).Role == topo.Mux {
			return
		}
	}
	for _, s := range m.seen[key] {
		if s.Out == 0 {
			continue
		}
		if slices.ContainsFunc(routes, func(r *topo.Routes) bool {
			return slices.Contains(r.NextHops(s.Switch, key.Dst), s.Out)
		}) {
			out.asIntended[s.Switch]++
			continue
		}
		out.addFinding(Finding{
			Kind: WrongRoute, Slot: m.Slot, Confirmed: true,
			At: model.Port{Node: s.Switch, Port: s.Out},
		}, key)
	}
}

// countPassed counts the ports that a flow passed.
func (d *Detector) countPassed(out *collector, m *Map, key model.FlowKey, routes []*topo.Routes) {
	for _, s := range m.seen[key] {
		at := model.Port{Node: s.Switch, Port: s.Out}
		p := d.fabric.Port(at)
		if p == nil {
			continue
		}
		_, presence := m.At(p.Peer.Node, key)
		if d.fabric.Node(p.Peer.Node).Role <= topo.Mux || presence == Seen ||
			presence == Unknown && !d.provenLost(m, key, model.Port{}, false, routes) {
			out.passed[at]++
		}
	}
}

// evaluateLoop evaluates a cycle of switches that each sent the flow's first
// packet of the slot to the next one. After a route change within the slot that
// is no proof, but then every packet passes a switch of the cycle at most twice:
// no more packets come back to the entry than entered. Departure from the paper,
// which compares the cycle with a hop outside: here a loop at the source's own
// switch, which has no hop outside, is found by the same rule.
func (d *Detector) evaluateLoop(out *collector, m, last *Map, key model.FlowKey, t Path) {
	back := t.Loop[len(t.Loop)-1]
	returned, entered, exact := loopPackets(m, t.Loop[0], back, key)
	if last != nil { // packets that entered in the slot before may return in this one
		_, more, _ := loopPackets(last, t.Loop[0], back, key)
		entered += more
	}
	if exact && returned > entered {
		out.addFinding(Finding{
			Kind: Loop, Slot: m.Slot, Confirmed: true, At: model.Port{Node: t.Loop[0]},
			Switches: t.Loop,
		}, key)
	}
}

// loopPackets counts the packets that came back to a loop's entry, from the
// switch before it, and those that entered.
func loopPackets(m *Map, entry, back model.NodeID, key model.FlowKey) (returned, entered uint64, exact bool) {
	e, _ := m.At(entry, key)
	b, _ := m.At(back, key)
	if e.Packets > b.Packets {
		entered = e.Packets - b.Packets
	}
	return b.Packets, entered, e.Exact && b.Exact
}
