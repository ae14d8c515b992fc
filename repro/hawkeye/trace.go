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
)

// rows are the anomalies, in the order of Table 2.
var rows = []kind{burst, inLoop, outContention, outInjection, storm, contention}

var kindNames = [...]string{
	burst: "incast backpressure", storm: "PFC storm", inLoop: "in-loop deadlock",
	outContention: "out-of-loop, contention", outInjection: "out-of-loop, injection",
	contention: "flow contention", quiet: "no injection",
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
}

// draft draws traces.
type draft struct {
	*rand.Rand
	fabric *topo.Fabric
	routes *topo.Routes
	hosts  []model.NodeID
	trace
	port uint16 // next source port of an injected flow
}

const (
	us = time.Microsecond
	ms = time.Millisecond

	warmUp       = 1 * ms    // before anything is injected
	burstTime    = 1200 * us // after a burst or storm starts
	deadlockTime = 3400 * us // after a deadlock may start to form
)

// newTrace draws a trace that has all of some anomalies, each at a separate
// location, under background load.
func newTrace(routes *topo.Routes, seed uint64, load float64, span time.Duration, kinds ...kind) (trace, error) {
	f := routes.Fabric()
	d := &draft{Rand: claim.Rand(seed, 1), fabric: f, routes: routes, hosts: f.Hosts(), port: 20000}
	if load == 0 {
		load = 0.1 + 0.5*d.Float64()
	}
	d.seed, d.load, d.end = seed, load, max(warmUp+burstTime, span)
	for _, k := range kinds {
		at := warmUp + time.Duration(d.Int64N(int64(ms)))
		d.end = max(d.end, at+burstTime)
		switch k {
		case burst:
			d.addIncast(at)
		case storm:
			d.addStorm(at)
		case contention:
			d.addContention(at)
		case inLoop, outContention, outInjection:
			d.addDeadlock(k, at)
			d.end = max(d.end, at+deadlockTime)
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
	const before = 25 * ms // the longest flow's time at line rate
	list, err := traffic.Generate(d.Uint64(), traffic.HostsOf(d.fabric), traffic.Poisson{
		Class: traffic.DefaultClass(), Sizes: sizes, Load: d.load, Duration: before + d.end,
	})
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Start -= model.Time(before); f.Start < 0 {
			const perNs = 12.5 // bytes, at 100 Gb/s
			f.Bytes += model.Bytes(float64(f.Start) * perNs)
			f.Start = model.Time(d.Int64N(int64(100 * us)))
		}
		if f.Bytes > 0 {
			d.flows = append(d.flows, f)
		}
	}
	return nil
}

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

// towards returns the port of a switch that leads to a neighbour.
func (d *draft) towards(sw, peer model.NodeID) model.Port {
	return model.Port{Node: sw, Port: d.fabric.Node(sw).PortsTo(peer)[0]}
}

func (d *draft) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))
}

func (d *draft) bytes(low, high model.Bytes) model.Bytes {
	return low + model.Bytes(d.Int64N(int64(high-low)))
}

// addIncast adds an incast from 8 to 12 hosts. Two flows to the rack's other
// hosts share no queue with it at its receiver.
func (d *draft) addIncast(at time.Duration) {
	to := d.pickHost(d.hosts)
	c := injectedCause{anomaly.PFCBackpressure, anomaly.ContendingFlows, []model.Port{d.towards(d.rack(to), to)}, nil, nil}
	elsewhere := d.pickOthers(14, func(h model.NodeID) bool { return d.rack(h) == d.rack(to) })
	size := d.bytes(300*model.KB, 600*model.KB)
	for _, from := range elsewhere[:8+d.IntN(5)] {
		start := model.Time(at + d.between(0, 5*us))
		c.flows = append(c.flows, d.addFlow(traffic.Flow{Src: from, Dst: to, Bytes: size, Start: start}))
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
		Src: from, Dst: to, Start: model.Time(at - d.between(100*us, 300*us)), Stop: model.Time(10 * ms),
		Rate: model.Rate(10+d.IntN(15)) * model.Gbps,
	})
}

// addStorm adds a host that pauses its switch port to the end of the trace,
// with flows to it and to the other hosts of its rack.
func (d *draft) addStorm(at time.Duration) {
	host := d.pickHost(d.hosts)
	d.storms = append(d.storms, sim.Injection{At: model.Time(at), Fault: sim.Storm{Host: host, Priority: class}})
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
	pod := d.fabric.Node(to).Pod
	senders := d.pickOthers(len(d.hosts), func(h model.NodeID) bool { return d.fabric.Node(h).Pod == pod })
	size := d.bytes(310*model.KB, 340*model.KB)
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
