package live

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/roce"
)

// Fault is an injected fault, and the causes that a controller should find.
type Fault struct {
	Kind string
	What string // a sentence
	At   model.Time
	For  time.Duration

	Causes []anomaly.Cause // any of these is right
	Nodes  []model.NodeID  // an incident at one of these is about this fault; nil: anywhere

	faults     []sim.Fault
	flows      []traffic.Flow
	resetAfter []model.NodeID // switches to reset afterwards: a deadlock outlives its cause
}

// FaultKind is a kind of fault that can be injected.
type FaultKind struct {
	Name  string
	Title string
	About string
	On    string // what its location must be: "host", "switch", "link", or "" for the whole fabric
	plan  func(p *planner, at Location) (Fault, error)
}

// FaultKinds are all kinds, in the order of the programme.
func FaultKinds() []FaultKind {
	return []FaultKind{
		{"incast", "Incast", "Many hosts send to one at the same time", "host", (*planner).incast},
		{"blackhole", "Black hole", "A switch drops all packets to one host", "switch", (*planner).blackhole},
		{"storm", "PFC storm", "A host's NIC sends PAUSE frames continuously", "host", (*planner).storm},
		{"loop", "Forwarding loop", "Two switches forward packets for one host to each other", "switch", (*planner).loop},
		{"silent-drop", "Silent packet loss", "A link loses packets without a drop counter", "link", (*planner).silentDrop},
		{"deadlock", "PFC deadlock", "Wrong routes create a cyclic buffer dependency", "switch", (*planner).deadlock},
		{"imbalance", "Hash polarization", "All switches use the same ECMP hash, so equal-cost links are loaded unevenly", "", (*planner).imbalance},
	}
}

// Location is where a fault is injected: a node, or a port of it.
type Location struct {
	Node model.NodeID
	Port model.PortID
	set  bool
}

// Anywhere is a random location.
var Anywhere Location

// At is a location; port 0 is the node itself.
func At(node model.NodeID, port model.PortID) Location { return Location{node, port, true} }

// planner draws the random parts of a fault.
type planner struct {
	fabric *topo.Fabric
	routes *topo.Routes
	rng    *rand.Rand
	at     model.Time
	span   time.Duration
}

func (p *planner) name(id model.NodeID) string { return p.fabric.Node(id).Name }

func pickOne[T any](p *planner, list []T) T { return list[p.rng.IntN(len(list))] }

// host is the requested one, or a random one.
func (p *planner) host(at Location) (model.NodeID, error) {
	if !at.set {
		return pickOne(p, p.fabric.Hosts()), nil
	}
	if p.fabric.Node(at.Node).Role.IsSwitch() {
		return 0, fmt.Errorf("%s is a switch, want a host", p.name(at.Node))
	}
	return at.Node, nil
}

// torOf is the switch that a host is attached to.
func (p *planner) torOf(host model.NodeID) model.NodeID {
	return p.fabric.Node(host).Ports[0].Peer.Node
}

// remoteHosts are the hosts that are attached to other switches than a host.
func (p *planner) remoteHosts(host model.NodeID) (list []model.NodeID) {
	for _, h := range p.fabric.Hosts() {
		if p.torOf(h) != p.torOf(host) {
			list = append(list, h)
		}
	}
	p.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (p *planner) prefix(host model.NodeID) netip.Prefix {
	a := p.fabric.Node(host).IPv4.Netip()
	return netip.PrefixFrom(a, a.BitLen())
}

// flow is RDMA from one host to another for as long as the fault lasts, at a
// rate that congests nothing.
func (p *planner) flow(from, to model.NodeID) traffic.Flow {
	return traffic.Flow{
		Src: from, Dst: to, Start: p.at, Stop: p.at.Add(p.span), Priority: 3, Transport: traffic.RDMA,
		Rate: p.fabric.Node(from).Ports[0].Rate / 50, NoCC: true,
	}
}

func (p *planner) fault(kind, what string, causes []anomaly.Cause, nodes ...model.NodeID) Fault {
	return Fault{Kind: kind, What: what, At: p.at, For: p.span, Causes: causes, Nodes: nodes}
}

func (p *planner) incast(at Location) (Fault, error) {
	to, err := p.host(at)
	if err != nil {
		return Fault{}, err
	}
	senders := p.remoteHosts(to)
	senders = senders[:min(8, len(senders))]
	// On slow links buffers hold the whole burst: no port is paused, and the flows
	// only contend in a queue.
	f := p.fault("incast", fmt.Sprintf("%d hosts send to %s simultaneously", len(senders), p.name(to)),
		[]anomaly.Cause{anomaly.Incast, anomaly.Contention}, p.torOf(to), to)
	rate := p.fabric.Node(to).Ports[0].Rate
	for _, from := range senders {
		f.flows = append(f.flows, traffic.Flow{
			Src: from, Dst: to, Start: p.at, Priority: 3, Transport: traffic.RDMA, NoCC: true,
			Bytes: model.Bytes(float64(rate) / 8 * 0.0008), // 0.8 ms of its link each
		})
	}
	return f, nil
}

func (p *planner) storm(at Location) (Fault, error) {
	host, err := p.host(at)
	if err != nil {
		return Fault{}, err
	}
	f := p.fault("storm", fmt.Sprintf("%s sends PAUSE frames continuously", p.name(host)), []anomaly.Cause{anomaly.Storm}, host, p.torOf(host))
	f.faults = []sim.Fault{sim.Storm{Host: host, Priority: 3}}
	for _, from := range p.remoteHosts(host)[:3] {
		f.flows = append(f.flows, p.flow(from, host))
	}
	return f, nil
}

// aggregationSwitch is the requested switch, or one of the second tier.
func (p *planner) aggregationSwitch(at Location) (model.NodeID, error) {
	if at.set {
		if !p.fabric.Node(at.Node).Role.IsSwitch() {
			return 0, fmt.Errorf("%s is a host, want a switch", p.name(at.Node))
		}
		return at.Node, nil
	}
	var list []model.NodeID
	for _, id := range p.fabric.Switches() {
		if p.fabric.Node(id).Tier == 2 {
			list = append(list, id)
		}
	}
	return pickOne(p, list), nil
}

// victims draws a host below a switch, or any other if nothing is below it, and
// hosts elsewhere that send to it.
func (p *planner) victims(sw model.NodeID) (to model.NodeID, from []model.NodeID) {
	var below []model.NodeID
	for _, h := range p.fabric.Hosts() {
		tor := p.torOf(h)
		if tor == sw || slices.ContainsFunc(p.fabric.Node(tor).Ports, func(q topo.Port) bool { return q.Peer.Node == sw }) {
			below = append(below, h)
		}
	}
	if len(below) == 0 {
		below = p.fabric.Hosts()
	}
	to = pickOne(p, below)
	return to, p.remoteHosts(to)
}

func (p *planner) blackhole(at Location) (Fault, error) {
	sw, err := p.aggregationSwitch(at)
	if err != nil {
		return Fault{}, err
	}
	to, from := p.victims(sw)
	f := p.fault("blackhole", fmt.Sprintf("%s drops all packets to %s", p.name(sw), p.name(to)), []anomaly.Cause{anomaly.Blackhole}, sw)
	f.faults = []sim.Fault{sim.Reroute{Entries: []sim.Entry{{Switch: sw, To: p.prefix(to)}}}}
	for _, h := range from[:min(8, len(from))] {
		f.flows = append(f.flows, p.flow(h, to))
	}
	return f, nil
}

func (p *planner) loop(at Location) (Fault, error) {
	sw, err := p.aggregationSwitch(at)
	if err != nil {
		return Fault{}, err
	}
	to, from := p.victims(sw)
	// A neighbour below that is not on the path to the host.
	var back []model.NodeID
	for _, q := range p.fabric.Node(sw).Ports {
		if p.fabric.Node(q.Peer.Node).Role.IsSwitch() && q.Peer.Node != p.torOf(to) {
			back = append(back, q.Peer.Node)
		}
	}
	if len(back) == 0 {
		return Fault{}, fmt.Errorf("%s has no second switch as neighbour", p.name(sw))
	}
	other := pickOne(p, back)
	f := p.fault("loop", fmt.Sprintf("%s and %s forward packets for %s to each other", p.name(sw), p.name(other), p.name(to)),
		[]anomaly.Cause{anomaly.Loop}, sw, other)
	f.faults = []sim.Fault{sim.Reroute{Entries: []sim.Entry{
		{Switch: sw, To: p.prefix(to), Via: []model.NodeID{other}},
		{Switch: other, To: p.prefix(to), Via: []model.NodeID{sw}},
	}}}
	f.resetAfter = []model.NodeID{sw, other}
	for _, h := range from[:min(6, len(from))] {
		f.flows = append(f.flows, p.flow(h, to))
	}
	return f, nil
}

func (p *planner) silentDrop(at Location) (Fault, error) {
	var port model.Port
	if at.set && at.Port != 0 {
		port = model.Port{Node: at.Node, Port: at.Port}
	} else {
		sw, err := p.aggregationSwitch(at)
		if err != nil {
			return Fault{}, err
		}
		port = model.Port{Node: sw, Port: pickOne(p, p.fabric.Node(sw).Ports).ID}
	}
	peer := p.fabric.Port(port).Peer.Node
	f := p.fault("silent-drop", fmt.Sprintf("the link from %s to %s loses 5%% of its packets", p.name(port.Node), p.name(peer)),
		[]anomaly.Cause{anomaly.Loss}, port.Node, peer)
	f.faults = []sim.Fault{sim.Lossy{Port: port, Share: 0.05}}
	f.flows = p.flowsThrough(port, 6)
	for i := range f.flows {
		f.flows[i].Rate = max(f.flows[i].Rate, detectableRate)
	}
	if len(f.flows) == 0 {
		return Fault{}, fmt.Errorf("no path leads from %s to %s", p.name(port.Node), p.name(peer))
	}
	return f, nil
}

// detectableRate is how fast each of 6 flows must be for 5 % of their packets to be a
// handful in a slot, also where links are slow.
const detectableRate = 50 * model.Mbps

// flowsThrough draws flows whose path includes a port.
func (p *planner) flowsThrough(port model.Port, n int) (list []traffic.Flow) {
	hosts := p.fabric.Hosts()
	var hops []topo.Hop
	for range 4096 {
		from := pickOne(p, hosts)
		f := p.flow(from, p.remoteHosts(from)[0])
		f.SrcPort = uint16(20000 + p.rng.IntN(20000))
		key := model.FlowKey{
			Src: p.fabric.Node(from).IPv4, Dst: p.fabric.Node(f.Dst).IPv4,
			SrcPort: f.SrcPort, DstPort: roce.Port, Proto: model.UDP,
		}
		var err error
		if hops, err = p.routes.AppendPath(hops[:0], key, from); err != nil {
			continue
		}
		if slices.ContainsFunc(hops, func(h topo.Hop) bool { return h.Node == port.Node && h.Out == port.Port }) {
			if list = append(list, f); len(list) == n {
				break
			}
		}
	}
	return list
}

func (p *planner) imbalance(Location) (Fault, error) {
	f := p.fault("imbalance", "all switches use the same ECMP hash", []anomaly.Cause{anomaly.Imbalance})
	f.faults = []sim.Fault{sim.HashPolarization{}}
	return f, nil
}

// deadlock routes packets for a host below one switch down to its neighbour and up
// again, and the same in the other direction: a deadlock cycle of four queues.
func (p *planner) deadlock(at Location) (Fault, error) {
	agg, err := p.aggregationSwitch(at)
	if err != nil {
		return Fault{}, err
	}
	var tors []model.NodeID
	for _, q := range p.fabric.Node(agg).Ports {
		if p.fabric.Node(q.Peer.Node).Tier == 1 {
			tors = append(tors, q.Peer.Node)
		}
	}
	if len(tors) < 2 {
		return Fault{}, fmt.Errorf("%s has %d switches below it, want two", p.name(agg), len(tors))
	}
	p.rng.Shuffle(len(tors), func(i, j int) { tors[i], tors[j] = tors[j], tors[i] })
	t0, t1 := tors[0], tors[1]
	var agg2 model.NodeID
	for _, q := range p.fabric.Node(t0).Ports {
		if n := q.Peer.Node; n != agg && p.fabric.Node(n).Role.IsSwitch() {
			agg2 = n
		}
	}
	host := func(tor model.NodeID) model.NodeID {
		for _, h := range p.fabric.Hosts() {
			if p.torOf(h) == tor {
				return h
			}
		}
		return 0
	}
	h0, h1 := host(t0), host(t1)
	f := p.fault("deadlock", fmt.Sprintf("wrong routes for %s and %s create a deadlock cycle through %s, %s, %s and %s",
		p.name(h0), p.name(h1), p.name(agg), p.name(t1), p.name(agg2), p.name(t0)),
		[]anomaly.Cause{anomaly.Deadlock, anomaly.WrongRoute}, agg, agg2, t0, t1)
	f.faults = []sim.Fault{sim.Reroute{Entries: []sim.Entry{
		{Switch: agg, To: p.prefix(h0), Via: []model.NodeID{t1}},
		{Switch: t1, To: p.prefix(h0), Via: []model.NodeID{agg2}},
		{Switch: agg2, To: p.prefix(h1), Via: []model.NodeID{t0}},
		{Switch: t0, To: p.prefix(h1), Via: []model.NodeID{agg}},
	}}}
	f.resetAfter = []model.NodeID{agg, agg2, t0, t1}
	rate := p.fabric.Node(h0).Ports[0].Rate
	var far []model.NodeID
	for _, h := range p.remoteHosts(h0) {
		if p.fabric.Node(h).Pod != p.fabric.Node(h0).Pod {
			far = append(far, h)
		}
	}
	for i, from := range far[:min(8, len(far))] {
		one := p.flow(from, []model.NodeID{h0, h1}[i%2])
		one.Rate = rate * 9 / 10
		one.Stop = p.at.Add(min(p.span, 2*time.Millisecond))
		f.flows = append(f.flows, one)
	}
	return f, nil
}
