package slowslot

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// SlotLength is the length of the slots.
const SlotLength = 10 * time.Millisecond

// Network makes random flowsets of a fat-tree: flows that come and go on the paths of
// routes that change, with losses, loops, unknown ports, several flowsets for a switch,
// inexact counters, filters with false positives, and reports that are lost.
type Network struct {
	rng    *rand.Rand
	fabric *topo.Fabric
	routes [2]*topo.Routes
	Intent *topo.Intent
	change model.Time // when the second routes begin
	flows  []*flow
	silent map[model.NodeID]bool // never report
	ports  map[model.NodeID]bool // report one flowset per port
	faults float64               // how often something odd happens
}

type flow struct {
	key   model.FlowKey
	route model.FlowKey // by which its packets are forwarded
	src   model.NodeID
	first int // slots
	last  int
	rest  int // it pauses in every such slot; 0: never
	black int // the number of hops after which packets end; 0: they arrive
	loop  bool
	heavy bool
	lossy int // packets out of ten that each link loses, now and then
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// NewNetwork makes a network whose flows come and go within some slots. Faults is how often
// something odd happens.
func NewNetwork(seed uint64, slots, count int, faults float64) *Network {
	rng := rand.New(rand.NewPCG(seed, 7))
	f := must(topo.FatTree(4, topo.DefaultLinks()))
	n := &Network{rng: rng, fabric: f, silent: map[model.NodeID]bool{}, ports: map[model.NodeID]bool{}, faults: faults}
	n.routes[0] = must(topo.NewRoutes(f, topo.RouteConfig{Seed: seed}))
	n.routes[1] = must(topo.NewRoutes(f, topo.RouteConfig{Seed: seed + 1, Down: []int{len(f.Links()) - 1 - rng.IntN(8)}}))
	n.Intent = topo.NewIntent(n.routes[0])
	n.change = model.Time(rng.IntN(2*slots)) * model.Time(SlotLength)
	if err := n.Intent.Set(n.change, n.routes[1]); err != nil {
		panic(err)
	}
	for _, sw := range f.Switches() {
		n.silent[sw] = rng.Float64() < faults
		n.ports[sw] = rng.Float64() < 0.2
	}
	hosts := f.Hosts()
	lossy := rng.Float64() * rng.Float64()
	for i := range count {
		src, dst := hosts[rng.IntN(len(hosts))], hosts[rng.IntN(len(hosts))]
		addr := func(id model.NodeID) netip.Addr {
			if i%5 == 4 {
				return f.Node(id).IPv6.Netip()
			}
			return f.Node(id).IPv4.Netip()
		}
		fl := &flow{src: src, first: rng.IntN(slots), heavy: rng.IntN(8) == 0}
		fl.key = model.NewFlowKey(netip.AddrPortFrom(addr(src), uint16(i)), netip.AddrPortFrom(addr(dst), 4791), model.UDP)
		fl.route = fl.key
		if rng.IntN(20) == 0 {
			fl.key.Dst = model.Addr4(uint32(i)) // not of the fabric
		}
		if fl.last = fl.first + rng.IntN(slots); rng.IntN(2) == 0 {
			fl.first, fl.last = 0, slots
		}
		if rng.IntN(2) == 0 {
			fl.rest = 2 + rng.IntN(6)
		}
		if rng.Float64() < faults {
			fl.black = 1 + rng.IntN(3)
		}
		fl.loop = rng.Float64() < faults
		if rng.Float64() < lossy {
			fl.lossy = 1 + rng.IntN(8)
		}
		n.flows = append(n.flows, fl)
	}
	return n
}

// Report is what arrives of one slot: flowsets, and those that are known to be lost.
type Report struct {
	Sets []*flows.Decoded
	Lost []*flows.Decoded
}

type setKey struct {
	sw    model.NodeID
	scope model.PortID
	v6    bool
}

// Slot makes the reports of a slot.
func (n *Network) Slot(s int) Report {
	sets := map[setKey]*flows.Decoded{}
	var order []setKey
	at := model.Time(s) * model.Time(SlotLength)
	count := func(fl *flow, h topo.Hop, packets uint64) {
		k := setKey{h.Node, 0, fl.key.V6}
		if n.ports[h.Node] {
			k.scope = h.In
		}
		d := sets[k]
		if d == nil {
			d = &flows.Decoded{Switch: h.Node, Scope: k.scope, V6: k.v6, Slot: uint32(s), Start: at, Length: SlotLength}
			sets[k] = d
			order = append(order, k)
		}
		for i := range d.Records {
			if r := &d.Records[i]; r.Key == fl.key {
				r.Packets += packets
				r.Bytes += packets * 1000
				return
			}
		}
		r := flows.Record{Key: fl.key, Packets: packets, Bytes: packets * 1000, In: h.In, Out: h.Out, Grade: flows.Exact}
		if fl.heavy {
			r.Bytes *= 4000
		}
		if n.odd(0.1) {
			r.Grade = flows.Estimated
		}
		if n.odd(0.1) {
			r.Out = 0
		}
		if n.odd(0.05) {
			r.Out = model.PortID(n.rng.IntN(6))
		}
		if n.odd(0.05) {
			r.In = 0
		}
		d.Records = append(d.Records, r)
	}
	for _, fl := range n.flows {
		if s < fl.first || s > fl.last || fl.rest > 0 && s%fl.rest == 0 {
			continue
		}
		n.send(fl, s, count)
	}
	n.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var r Report
	for _, k := range order {
		n.deliver(&r, sets[k])
	}
	for _, sw := range n.fabric.Switches() { // switches without flows report too
		for _, v6 := range []bool{false, true} {
			if sets[setKey{sw, 0, v6}] == nil && !n.ports[sw] {
				n.deliver(&r, &flows.Decoded{Switch: sw, V6: v6, Slot: uint32(s), Start: at, Length: SlotLength})
			}
		}
	}
	return r
}

func (n *Network) odd(share float64) bool { return n.rng.Float64() < share*n.faults*4 }

// send counts the packets of a flow in a slot at the switches of its path.
func (n *Network) send(fl *flow, s int, count func(*flow, topo.Hop, uint64)) {
	routes := n.routes[0]
	if model.Time(s)*model.Time(SlotLength) >= n.change {
		routes = n.routes[1]
	}
	hops, err := routes.Path(fl.route, fl.src)
	if err != nil || len(hops) < 3 {
		return
	}
	path := hops[1 : len(hops)-1]
	packets := uint64(1 + n.rng.IntN(40))
	if fl.heavy && n.rng.IntN(4) > 0 {
		packets = 1
	}
	for i, h := range path {
		if fl.black > 0 && i >= fl.black && s%4 != 0 {
			return
		}
		if fl.loop && i == 2 && s%3 > 0 { // back to the switch before
			back := h
			back.Out = back.In
			count(fl, back, packets*uint64(n.rng.IntN(20)+1))
			count(fl, path[1], packets*uint64(n.rng.IntN(20)+1))
			return
		}
		count(fl, h, packets)
		if n.rng.IntN(4) == 0 {
			packets -= packets * uint64(fl.lossy) / 10
		}
	}
}

// deliver adds a flowset to those that arrive, or to those that are lost.
func (n *Network) deliver(r *Report, d *flows.Decoded) {
	if n.silent[d.Switch] {
		return
	}
	if n.odd(0.05) {
		r.Lost = append(r.Lost, d)
		return
	}
	if n.odd(0.05) {
		d.Undecoded = 1
	}
	if n.odd(0.03) {
		d.MissingFilter = 1
	}
	if n.odd(0.03) {
		d.Missed = 1
	}
	has := map[model.FlowKey]bool{}
	for i := range d.Records {
		has[d.Records[i].Key] = true
	}
	salt := n.rng.Uint64()
	d.MayContain = func(k model.FlowKey) bool { return has[k] || k.Hash(salt)%32 == 0 }
	if n.odd(0.05) {
		d.MayContain = nil
	}
	r.Sets = append(r.Sets, d)
}
