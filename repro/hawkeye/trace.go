package hawkeye

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// kind is a row of the paper's Table 2.
type kind uint8

const (
	burst         kind = iota // micro-burst incast: PFC spreads from the receiver's port
	storm                     // a host pauses without end
	inLoop                    // a burst inside a cyclic buffer dependency
	outContention             // an incast downstream of one
	outInjection              // a host's pauses downstream of one
	contention                // a burst too small for pauses
	quiet                     // background load alone
	pulsedStorm               // a host pauses most of the time
	ackPath                   // an incast delays the acknowledgements of the flows that its receiver sends
)

// rows are the anomalies, in the order of Table 2.
var rows = []kind{burst, inLoop, outContention, outInjection, storm, contention}

var kindNames = [...]string{
	burst: "incast backpressure", storm: "PFC storm", inLoop: "in-loop deadlock",
	outContention: "out-of-loop, contention", outInjection: "out-of-loop, injection",
	contention: "flow contention", quiet: "no injection", pulsedStorm: "pulsed PFC storm", ackPath: "acknowledgement path",
}

func (k kind) String() string { return kindNames[k] }

// class is the lossless class of all traffic.
const class = 3

// injectedCause is what was injected, and what a correct verdict says about it.
type injectedCause struct {
	anomaly anomaly.Type
	root    anomaly.RootCause
	ports   []model.Port // where it starts: any of them
	flows   []int        // of the burst
	cycle   []model.Port // that deadlocks
}

// trace is one run as data: traffic, wrong routes, a storm.
type trace struct {
	seed        uint64
	load        float64
	flows       []traffic.Flow
	wrongRoutes []sim.Entry
	storms      []sim.Injection
	causes      []injectedCause
	end         time.Duration

	acksWithData bool // acknowledgements have the class of data
}

// draft draws traces.
type draft struct {
	*rand.Rand
	fabric *topo.Fabric
	routes *topo.Routes
	hosts  []model.NodeID
	trace
	network
	port uint16 // next source port of an injected flow
}

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// timing is how long the parts of a trace last, in the paper's network; others
// scale it.
type timing struct {
	warmUp   time.Duration // before anything is injected
	spread   time.Duration // within which injections start
	burst    time.Duration // after a burst or storm starts
	deadlock time.Duration // after a deadlock may start to form
	span     time.Duration // the whole trace, at least
}

var paperTiming = timing{warmUp: ms, spread: ms, burst: 1200 * us, deadlock: 3400 * us}

// newTrace draws a trace that has all of some anomalies, each at a separate
// location, under background load.
func newTrace(routes *topo.Routes, n network, t timing, seed uint64, load float64, kinds ...kind) (trace, error) {
	f := routes.Fabric()
	d := &draft{Rand: claim.Rand(seed, 1), fabric: f, routes: routes, hosts: f.Hosts(), network: n, port: 20000}
	if load == 0 {
		load = 0.1 + 0.5*d.Float64()
	}
	d.seed, d.load, d.end = seed, load, d.time(max(t.warmUp+t.burst, t.span))
	for _, k := range kinds {
		at := d.time(t.warmUp + time.Duration(d.Int64N(int64(t.spread))))
		d.end = max(d.end, at+d.time(t.burst))
		switch k {
		case burst:
			d.addIncast(at)
		case storm:
			d.addStorm(at, 0, 0)
		case pulsedStorm:
			d.addStorm(at, d.between(80*us, 150*us), d.between(20*us, 40*us))
		case ackPath:
			d.addAckPath(at)
		case contention:
			d.addContention(at)
		case inLoop, outContention, outInjection:
			d.addDeadlock(k, at)
			d.end = max(d.end, at+d.time(t.deadlock))
		}
	}
	return d.trace, d.addBackground()
}

// addBackground adds the load: flows that start during the trace, and those
// that started before it and have not ended.
func (d *draft) addBackground() error {
	sizes, err := traffic.Sizes("longtail")
	if err != nil {
		return err
	}
	perNs := float64(d.rate) / 8e9                        // bytes
	before := time.Duration(float64(longestFlow) / perNs) // at line rate
	list, err := traffic.Generate(d.Uint64(), traffic.HostsOf(d.fabric), traffic.Poisson{
		Class: traffic.DefaultClass(), Sizes: sizes, Load: d.load, Duration: before + d.end,
	})
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Start -= model.Time(before); f.Start < 0 {
			f.Bytes += model.Bytes(float64(f.Start) * perNs)
			f.Start = model.Time(d.Int64N(int64(d.time(100 * us))))
		}
		if f.Bytes > 0 {
			d.flows = append(d.flows, f)
		}
	}
	return nil
}

// longestFlow is the size of the longest flow of the load: 25 ms at 100 Gb/s.
const longestFlow = 312_500 * model.KB

// addFlow adds a flow and returns its index.
func (d *draft) addFlow(f traffic.Flow) int {
	f.Priority = class
	if f.SrcPort == 0 {
		f.SrcPort = d.port
		d.port++
	}
	d.flows = append(d.flows, f)
	return len(d.flows) - 1
}

// key returns the key that a flow will have.
func (d *draft) key(src, dst model.NodeID, port uint16) model.FlowKey {
	return model.FlowKey{
		Src: d.fabric.Node(src).IPv4, Dst: d.fabric.Node(dst).IPv4, SrcPort: port, DstPort: 4791,
		Proto: model.UDP,
	}
}

// portVia draws source ports until a flow goes through a node.
func (d *draft) portVia(src, dst, via model.NodeID) (uint16, error) {
	for range 1000 {
		d.port++
		hops, err := d.routes.Path(d.key(src, dst, d.port-1), src)
		if err != nil {
			return 0, err
		}
		for _, h := range hops {
			if h.Node == via {
				return d.port - 1, nil
			}
		}
	}
	return 0, fmt.Errorf("hawkeye: no source port takes a flow from node %d to %d through %d", src, dst, via)
}

func (d *draft) pickHost(from []model.NodeID) model.NodeID { return from[d.IntN(len(from))] }

// pickOthers draws n different hosts that avoid does not reject.
func (d *draft) pickOthers(n int, avoid func(model.NodeID) bool) (list []model.NodeID) {
	for _, i := range d.Perm(len(d.hosts)) {
		if h := d.hosts[i]; len(list) < n && !avoid(h) {
			list = append(list, h)
		}
	}
	return list
}

// rack returns the switch a host is connected to.
func (d *draft) rack(h model.NodeID) model.NodeID {
	return d.fabric.Port(model.Port{Node: h, Port: 1}).Peer.Node
}

// rackNeighbors returns the other hosts of a rack.
func (d *draft) rackNeighbors(h model.NodeID) (list []model.NodeID) {
	for _, o := range d.hosts {
		if o != h && d.rack(o) == d.rack(h) {
			list = append(list, o)
		}
	}
	return list
}

// near reports whether hosts are in one pod or, in a fabric without pods, one rack.
func (d *draft) near(a, b model.NodeID) bool {
	if pod := d.fabric.Node(a).Pod; pod != topo.NoPod {
		return pod == d.fabric.Node(b).Pod
	}
	return d.rack(a) == d.rack(b)
}

// rigidBursts reports whether the senders of an incast ignore congestion control:
// in networks where it would prevent the incast.
func (d *draft) rigidBursts() bool { return d.buffer != paperBuffer }

// towards returns the port of a switch that leads to a neighbour.
func (d *draft) towards(sw, peer model.NodeID) model.Port {
	return model.Port{Node: sw, Port: d.fabric.Node(sw).PortsTo(peer)[0]}
}

// between draws a time between two of the paper's network.
func (d *draft) between(low, high time.Duration) time.Duration {
	return d.time(low + time.Duration(d.Int64N(int64(high-low))))
}

// size draws a size between two of the paper's network.
func (d *draft) size(low, high model.Bytes) model.Bytes {
	return d.bytes(low + model.Bytes(d.Int64N(int64(high-low))))
}

// addIncast adds an incast from 8 to 12 hosts. Two flows to the rack's other
// hosts share no queue with it at its receiver.
func (d *draft) addIncast(at time.Duration) {
	to := d.pickHost(d.hosts)
	c := injectedCause{anomaly.PFCBackpressure, anomaly.ContendingFlows, []model.Port{d.towards(d.rack(to), to)}, nil, nil}
	elsewhere := d.pickOthers(14, func(h model.NodeID) bool { return d.rack(h) == d.rack(to) })
	size := d.size(300*model.KB, 600*model.KB)
	for _, from := range elsewhere[:8+d.IntN(5)] {
		start := model.Time(at + d.between(0, 5*us))
		c.flows = append(c.flows, d.addFlow(traffic.Flow{Src: from, Dst: to, Bytes: size, Start: start, NoCC: d.rigidBursts()}))
	}
	for range 2 {
		d.addVictim(d.pickHost(elsewhere), d.pickHost(d.rackNeighbors(to)), at)
	}
	d.causes = append(d.causes, c)
}

// addVictim adds a flow of moderate rate that runs before and during an
// anomaly.
func (d *draft) addVictim(from, to model.NodeID, at time.Duration) {
	d.addFlow(traffic.Flow{
		Src: from, Dst: to, Start: model.Time(at - d.between(100*us, 300*us)), Stop: model.Time(d.time(10 * ms)),
		Rate: d.share(10 + d.IntN(15)),
	})
}

// addAckPath adds an incast to a host that sends flows itself: their
// acknowledgements wait behind it, in the class of data.
func (d *draft) addAckPath(at time.Duration) {
	d.acksWithData = true
	d.addIncast(at)
	c := &d.causes[len(d.causes)-1]
	sender := d.flows[c.flows[0]].Dst
	for _, to := range d.pickOthers(3, func(h model.NodeID) bool { return d.rack(h) == d.rack(sender) }) {
		d.addVictim(sender, to, at)
	}
}

// addStorm adds a host that pauses its switch port to the end of the trace, without
// a gap or, with off, in pulses, with flows to it and to the other hosts of its
// rack.
func (d *draft) addStorm(at, on, off time.Duration) {
	host := d.pickHost(d.hosts)
	d.storms = append(d.storms, sim.Injection{At: model.Time(at), Fault: sim.Storm{Host: host, Priority: class, On: on, Off: off}})
	elsewhere := d.pickOthers(6, func(h model.NodeID) bool { return d.rack(h) == d.rack(host) })
	for _, from := range elsewhere[:3] {
		d.addVictim(from, host, at)
	}
	for _, from := range elsewhere[3:5] {
		d.addVictim(from, d.pickHost(d.rackNeighbors(host)), at)
	}
	d.causes = append(d.causes, injectedCause{
		anomaly.PFCStorm, anomaly.HostInjection,
		[]model.Port{d.towards(d.rack(host), host)},
		nil, nil,
	})
}

// addContention adds a burst over all of a rack's links to one of its hosts,
// smaller than what its switch holds before it pauses any port.
func (d *draft) addContention(at time.Duration) {
	to := d.pickHost(d.hosts)
	tor := d.rack(to)
	c := injectedCause{anomaly.FlowContention, anomaly.ContendingFlows, []model.Port{d.towards(tor, to)}, nil, nil}
	senders := d.pickOthers(len(d.hosts), func(h model.NodeID) bool { return d.near(h, to) })
	size := d.size(310*model.KB, 340*model.KB)
	for _, p := range d.fabric.Node(tor).Ports {
		if !d.fabric.Node(p.Peer.Node).Role.IsSwitch() {
			continue
		}
		for _, from := range senders[:2] {
			port, err := d.portVia(from, to, p.Peer.Node)
			if err != nil {
				panic(err) // every host of another pod reaches it through every uplink
			}
			c.flows = append(c.flows, d.addFlow(traffic.Flow{
				Src: from, Dst: to, Bytes: size / 2, Start: model.Time(at),
				SrcPort: port, NoCC: true,
			}))
		}
		senders = senders[2:]
	}
	near := d.pickHost(d.rackNeighbors(to))
	c.flows = append(c.flows, d.addFlow(traffic.Flow{Src: near, Dst: to, Bytes: size, Start: model.Time(at), NoCC: true}))
	d.addVictim(near, to, at)
	d.causes = append(d.causes, c)
}

// prefix returns the route of one host.
func (d *draft) prefix(h model.NodeID) netip.Prefix {
	return netip.PrefixFrom(d.fabric.Node(h).IPv4.Netip(), 32)
}
