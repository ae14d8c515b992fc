package paths

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/internal/routecache"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config configures a Detector.
type Config struct {
	Intent *topo.Intent
	// MinPackets is how many packets of a flow must be missing for its path to
	// count as stopped: fewer may be ordinary loss, which analyze/loss counts.
	MinPackets uint64
	// ClockError is how far the clocks of any two switches may differ, as PTP bounds
	// it. Where it is known, counters of the slot in which a fault starts may prove
	// it; 0: not known, up to a slot, and a fault is confirmed one slot later.
	ClockError time.Duration
	// Ports are those of the fabric, if others use them too; nil: its own.
	Ports *Ports
}

// DefaultConfig requires three packets: a flow that sends one every 5 ms, as in
// FlowRadar's own test, shows them within two slots of 10 ms.
func DefaultConfig(in *topo.Intent) Config { return Config{Intent: in, MinPackets: 3} }

// Detector compares successive maps of a fabric with each other and with the
// intended routes. It needs packets to get from switch to switch, and clocks
// to agree, within one slot.
//
// One Detector sees all flows, by Observe, or each of several sees a part of them, by
// Examine; then a Merger makes the findings.
type Detector struct {
	cfg    Config
	fabric *topo.Fabric
	ports  *Ports
	maps   [2]*Map // of the slot before last, and of the last one
	routes []*topo.Routes
	cache  *routecache.Cache // of the newest of routes
	part   Part
	merger Merger
}

// NewDetector returns a detector that has observed no slot.
func NewDetector(cfg Config) (*Detector, error) {
	if cfg.Intent == nil {
		return nil, errors.New("paths: no intended routes, want a topo.Intent")
	}
	if cfg.MinPackets == 0 {
		return nil, errors.New("paths: min packets 0, want at least 1")
	}
	d := &Detector{cfg: cfg, fabric: cfg.Intent.At(0).Fabric(), ports: cfg.Ports}
	if d.ports == nil {
		d.ports = NewPorts(d.fabric)
	}
	d.part.ports = d.ports
	return d, nil
}

// Observe takes the map of the next slot and returns its findings: loops and
// wrong routes of this slot, loops that counters suggest, paths that seem to
// stop in it, and paths that certainly stopped in the slot before. Findings are
// sorted by kind, location and slot. A slot without a map must be given as an
// empty one. The detector reads a map until two more have been observed.
func (d *Detector) Observe(m *Map) []Finding { return d.merger.Merge(d.Examine(m)) }

// Examine takes the next slot's map of a part of the flows. The result is valid until the
// next call.
func (d *Detector) Examine(m *Map) *Part {
	out := &d.part
	out.reset(m.Slot)
	before, last := d.maps[0], d.maps[1]
	m.OrderPaths(d.ports, d.cfg.Intent.At(m.Start()))
	d.useRoutes(m, d.cfg.Intent.Between(m.Start().Add(-m.Length), m.End().Add(m.Length)))
	for i := range m.Flows() {
		d.examineFlow(m, last, i)
	}
	d.countKnown(&m.work.paths)
	if last != nil {
		d.confirmStops(before, last, m)
	}
	d.maps = [2]*Map{last, m}
	return out
}

// useRoutes makes routes those that flows of a map are judged by, the newest last.
func (d *Detector) useRoutes(m *Map, routes []*topo.Routes) {
	d.routes = routes
	d.cache = m.RouteCache(routes[len(routes)-1])
}

// examineFlow examines a flow of this slot.
func (d *Detector) examineFlow(m, last *Map, i int) {
	f := flowIn{m: m, flow: i, key: m.Key(i), hash: m.Hash(i)}
	routes := d.routes[len(d.routes)-1]
	if k := m.known(i); k != nil && k.routes == routes && k.dst == f.key.Dst {
		// The usual case: every switch saw it and sent it where it should, and the last one has delivered it.
		if k.flows++; !mayLoop(m.Sightings(i)) {
			return
		}
	} else if intended := d.findMisrouted(&f); m.shapes[i] == chain|delivered {
		hops := m.Sightings(i)
		for k := range hops {
			n, _ := d.ports.Number(hops[k].Switch, hops[k].Out)
			d.part.passed.addOne(n)
		}
		if k != nil && intended {
			k.routes, k.dst = routes, f.key.Dst
		}
		if !mayLoop(hops) {
			return
		}
	} else {
		d.countPassed(&f)
	}
	t := m.Path(i, d.ports, d.routes[len(d.routes)-1])
	if t.Loop != nil {
		d.evaluateLoop(&f, last, t)
		return
	}
	if loop, proven := d.loopByCounters(&f, last, t); loop != nil {
		d.part.addFinding(Finding{
			Kind: Loop, Slot: m.Slot, Confirmed: proven, At: model.Port{Node: loop[0]}, Switches: loop,
		}, f.key, m.Place(i))
		return
	}
	if at, next, hasNext, stops := d.findStop(&f, t); stops {
		if suddenly, proven := d.stoppedSuddenly(last, &f, at, next, hasNext); suddenly {
			d.part.addFinding(Finding{
				Kind: BlackHole, Slot: m.Slot, Confirmed: proven, At: at, Next: next, HasNext: hasNext,
			}, f.key, m.Place(i))
		}
	}
}

// flowIn is a flow in one slot.
type flowIn struct {
	m    *Map
	flow int // its number in the map; -1: it is not there
	key  *model.FlowKey
	hash uint64
}

// in returns the same flow in another slot.
func (f *flowIn) in(m *Map) flowIn {
	return flowIn{m: m, flow: m.Find(f.key, f.hash), key: f.key, hash: f.hash}
}

func (f *flowIn) at(sw model.NodeID) (Sighting, Presence) { return f.m.FlowAt(f.flow, sw, f.key) }

// confirmStops checks paths that stopped in the last slot again, now that their
// packets have had another slot to arrive in.
func (d *Detector) confirmStops(before, last, now *Map) {
	d.useRoutes(now, d.cfg.Intent.Between(last.Start().Add(-last.Length), now.End()))
	for i, shape := range last.shapes {
		if shape&(chain|delivered) == chain|delivered {
			continue
		}
		t := last.Path(i, d.ports, d.routes[len(d.routes)-1])
		if t.Loop != nil {
			continue
		}
		was := flowIn{m: last, flow: i, key: last.Key(i), hash: last.Hash(i)}
		at, next, hasNext, stops := d.findStop(&was, t)
		if !stops {
			continue
		}
		is := was.in(now)
		if !d.provenLost(&is, next, hasNext) {
			continue
		}
		sent, _ := was.at(at.Node)
		more, presence := is.at(at.Node)
		if sent.Packets+more.Packets < d.cfg.MinPackets {
			continue
		}
		// A flow whose last packets came as the slot started may have been
		// counted in the slot before by a clock that is late. It must continue
		// and still not arrive, unless it never arrived before either.
		if presence != Seen && !d.lostBefore(before, &was, next, hasNext) {
			continue
		}
		d.part.addFinding(Finding{
			Kind: BlackHole, Slot: last.Slot, Confirmed: true, At: at, Next: next,
			HasNext: hasNext,
		}, was.key, last.Place(i))
	}
}

// lostBefore reports whether it is proven that a flow did not pass a stop in an earlier
// slot.
func (d *Detector) lostBefore(before *Map, f *flowIn, next model.Port, hasNext bool) bool {
	if before == nil {
		return false
	}
	then := f.in(before)
	return d.provenLost(&then, next, hasNext)
}

// findStop reports whether a flow's packets were last seen where they should not
// end, and where that is.
func (d *Detector) findStop(f *flowIn, t Path) (at, next model.Port, hasNext, stops bool) {
	end := t.Hops[len(t.Hops)-1]
	at = model.Port{Node: end.Switch, Port: end.Out}
	if p := d.ports.Peer(at.Node, at.Port); p.Kind != NoPeer {
		next = p.Port
		if p.Kind == HostPeer {
			return at, next, false, false // delivered to a host, rightly or not
		}
		_, presence := f.at(next.Node)
		if presence == Unknown && f.m.partial(next.Node, f.key.V6) {
			return at, next, false, false // it may have been lost after the next switch
		}
		hasNext = presence == Absent
	}
	if !hasNext {
		next = model.Port{}
	}
	for _, r := range d.routes {
		if slices.Contains(d.lastHops(r, f.key.Dst), end.Switch) {
			return at, next, hasNext, false
		}
	}
	return at, next, hasNext, d.provenLost(f, next, hasNext)
}

// lastHops asks routes for the switches at which a flow should end.
func (d *Detector) lastHops(r *topo.Routes, dst model.Addr) []model.NodeID {
	if r == d.cache.Routes() {
		return d.cache.LastHops(dst)
	}
	return r.ExpectedLastHops(dst)
}

// provenLost reports whether it is proven that no packet of a flow passed a
// stop: the next switch did not see it; or, if that one is not conclusive, no
// switch at which the flow should end did.
func (d *Detector) provenLost(f *flowIn, next model.Port, hasNext bool) bool {
	proven := false
	if hasNext {
		_, presence := f.at(next.Node)
		if presence != Absent {
			return false
		}
		proven = true
	}
	for _, r := range d.routes {
		for _, sw := range d.lastHops(r, f.key.Dst) {
			switch _, presence := f.at(sw); presence {
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
// just the first ones, still in flight. It is proven if packets of the last slot
// already did not pass: no packet is in flight for a whole slot.
func (d *Detector) stoppedSuddenly(last *Map, f *flowIn, at, next model.Port, hasNext bool) (stops, proven bool) {
	if last == nil {
		return false, false
	}
	earlier := f.in(last)
	was, ran := earlier.at(at.Node)
	if !hasNext && at.Port == 0 {
		// The switch has no route for the flow any more, but had one.
		if p := d.ports.Peer(at.Node, was.Out); p.Kind != NoPeer {
			_, presence := f.at(p.Node)
			next, hasNext = p.Port, presence == Absent
		}
	}
	if !hasNext {
		return false, false
	}
	arrived, passed := earlier.at(next.Node)
	is, _ := f.at(at.Node)
	stops = ran == Seen && passed == Seen && 2*is.Packets >= was.Packets
	if stops && last.OnSeveralPaths(earlier.flow) {
		// What one of its switches counts says little about its rate.
		more, exact := d.entered(f, nil, f.m.Sightings(f.flow))
		before, known := d.entered(&earlier, nil, last.Sightings(earlier.flow))
		stops = exact && known && 2*more >= before
	}
	if !stops || d.cfg.ClockError == 0 || !was.Exact || !arrived.Exact || was.Packets <= arrived.Packets ||
		was.Packets-arrived.Packets+is.Packets < d.cfg.MinPackets {
		return stops, false
	}
	// A packet at the start of the last slot may have arrived in the one before, by
	// clocks that differ a little: then it is not missing over both slots.
	if d.maps[0] == nil {
		return stops, false
	}
	then := f.in(d.maps[0])
	sent, _ := then.at(at.Node)
	got, _ := then.at(next.Node)
	return stops, was.Packets+sent.Packets > arrived.Packets+got.Packets
}

// findMisrouted finds the switches that sent a flow through a port that is on no
// intended route of the time. Packets to a mux's virtual address continue inside
// a tunnel, to another destination: they are skipped. It reports whether the newest routes
// intend every hop.
func (d *Detector) findMisrouted(f *flowIn) (intended bool) {
	if d.cache.ToMux(f.key.Dst) {
		return false
	}
	intended = true
	hops := f.m.Sightings(f.flow)
	for k := range hops {
		s := &hops[k]
		if s.Out == 0 {
			intended = false
			continue
		}
		newest := slices.Contains(d.cache.NextHops(s.Switch, f.key.Dst), s.Out)
		intended = intended && newest
		if newest ||
			slices.ContainsFunc(d.routes[:len(d.routes)-1], func(r *topo.Routes) bool {
				return slices.Contains(r.NextHops(s.Switch, f.key.Dst), s.Out)
			}) {
			n, _ := d.ports.Number(s.Switch, 0) // a node with routes has a number
			d.part.asIntended.addOne(n)
			continue
		}
		d.part.addFinding(Finding{
			Kind: WrongRoute, Slot: f.m.Slot, Confirmed: true,
			At: model.Port{Node: s.Switch, Port: s.Out},
		}, f.key, f.m.Place(f.flow))
	}
	return intended
}

// countPassed counts the ports that a flow passed.
func (d *Detector) countPassed(f *flowIn) {
	hops := f.m.Sightings(f.flow)
	for k := range hops {
		s := &hops[k]
		n, ok := d.ports.Number(s.Switch, s.Out)
		if !ok {
			continue
		}
		switch p := d.ports.PeerOf(n); p.Kind {
		case HostPeer:
			d.part.passed.addOne(n)
		case SwitchPeer:
			if _, presence := f.at(p.Node); presence == Seen || presence == Unknown && !d.provenLost(f, model.Port{}, false) {
				d.part.passed.addOne(n)
			}
		}
	}
}

// evaluateLoop evaluates a cycle of switches that each sent the flow's first
// packet of the slot to the next one. After a route change within the slot that
// is no proof, but then every packet passes a switch of the cycle at most twice:
// no more packets come back to the entry than entered. Departure from the paper,
// which compares the cycle with a hop outside: here a loop at the source's own
// switch, which has no hop outside, is found by the same rule.
func (d *Detector) evaluateLoop(f *flowIn, last *Map, t Path) {
	back := t.Loop[len(t.Loop)-1]
	returned, entered, exact := loopPackets(f, t.Loop[0], back)
	if last != nil { // packets that entered in the slot before may return in this one
		earlier := f.in(last)
		_, more, _ := loopPackets(&earlier, t.Loop[0], back)
		entered += more
	}
	if exact && returned > entered {
		d.part.addFinding(Finding{
			Kind: Loop, Slot: f.m.Slot, Confirmed: true, At: model.Port{Node: t.Loop[0]},
			Switches: slices.Clone(t.Loop),
		}, f.key, f.m.Place(f.flow))
	}
}

// loopPackets counts the packets that came back to a loop's entry, from the
// switch before it, and those that entered.
func loopPackets(f *flowIn, entry, back model.NodeID) (returned, entered uint64, exact bool) {
	e, _ := f.at(entry)
	b, _ := f.at(back)
	if e.Packets > b.Packets {
		entered = e.Packets - b.Packets
	}
	return b.Packets, entered, e.Exact && b.Exact
}
