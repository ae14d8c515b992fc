package sim

import (
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// path is the path of a flow's packets through an empty fabric, link by link.
type path struct {
	ports []*Port // egress ports, from the source host on

	// Where there is a mux on the path: its egress port as an index of ports,
	// the bytes that it adds, and its delay.
	mux         int
	tunnelBytes int32
	delay       engine.Time
}

// pathOf follows the intended routes; it returns nil where there is no path.
func (n *Network) pathOf(key model.FlowKey, from model.NodeID) *path {
	pt := &path{}
	if s := n.services[key.Dst]; s != nil {
		h, err := n.destinationHost(key, from)
		if err != nil || !pt.follow(n, key, from) {
			return nil
		}
		key, from = h.mux.outerHeader(key, s.pick(key)), h.ID
		pt.mux, pt.tunnelBytes, pt.delay = len(pt.ports), ipSize(&key), s.delay
	}
	if !pt.follow(n, key, from) || len(pt.ports) == 0 {
		return nil
	}
	return pt
}

// follow adds the ports from one host to the owner of a destination and reports
// whether there is a path.
func (pt *path) follow(n *Network, key model.FlowKey, from model.NodeID) bool {
	hops, err := n.routes.Path(key, from)
	if err != nil {
		return false
	}
	for _, h := range hops {
		if h.Out != 0 {
			pt.ports = append(pt.ports, n.Port(model.Port{Node: h.Node, Port: h.Out}))
		}
	}
	return true
}

// afterMux returns when a packet that reached the sender of link i is ready
// there, and its size.
func (pt *path) afterMux(i int, at engine.Time, size int32) (engine.Time, int32) {
	if pt.tunnelBytes == 0 || i < pt.mux {
		return at, size
	}
	if i == pt.mux {
		at += pt.delay
	}
	return at, size + pt.tunnelBytes
}

// singlePacket returns the time that one packet of that size takes end to end.
func (pt *path) singlePacket(size int32) (sum engine.Time) {
	for i, p := range pt.ports {
		at, size := pt.afterMux(i, sum, size)
		sum = at + p.serialize(size) + p.delay
	}
	return sum
}

// settled is the number of packets after which a train of equal packets moves
// at the rate of the slowest link so far: one more than any path has links.
const settled = 64

// packetTrain returns when the last packet of a train has arrived, and the one
// before it, if all are ready at time zero: the first packet, full ones, the
// last one. Store-and-forward: a packet starts on a link when it has arrived in
// full and the one before it has left.
func (pt *path) packetTrain(first, full, last int32, packets int64) (before, arrived engine.Time) {
	gone := make([]engine.Time, len(pt.ports)) // when the newest packet left each link's sender
	send := func(size int32) (arrived engine.Time) {
		for j, p := range pt.ports {
			at, size := pt.afterMux(j, arrived, size)
			gone[j] = max(gone[j], at) + p.serialize(size)
			arrived = gone[j] + p.delay
		}
		return arrived
	}
	arrived = send(first)
	middle := packets - 2
	for range min(middle, settled) {
		arrived = send(full)
	}
	if middle > settled {
		slowest := engine.Time(0)
		for j, p := range pt.ports {
			_, size := pt.afterMux(j, 0, full)
			slowest = max(slowest, p.serialize(size))
			gone[j] += engine.Time(middle-settled) * slowest
		}
	}
	if packets > 1 {
		before = gone[len(gone)-1] + pt.ports[len(gone)-1].delay
		arrived = send(last)
	}
	return before, arrived
}

// idealTime returns a flow's completion time on an empty fabric: until the
// acknowledgement of its last byte is back.
func (n *Network) idealTime(f *flow) engine.Time {
	there, back := n.pathOf(f.key, f.src.ID), n.pathOf(f.reverseKey, f.dst.ID)
	if there == nil || back == nil || f.spec.Bytes == 0 {
		return 0
	}
	mtu := int64(n.cfg.MTU)
	packets := (f.size + mtu - 1) / mtu
	if n.cfg.HPCCIdeal {
		sum, total := n.pathMetrics(there), f.size+packets*hpccHeaders
		return sum.RTT() + there.delay + n.truncateNS3(engine.Transmit(total, sum.Rate))
	}
	first := n.dataSize(f, int32(min(f.size, mtu)), true)
	full := n.dataSize(f, n.cfg.MTU, false)
	last := n.dataSize(f, int32(f.size-(packets-1)*mtu), packets == 1)
	if f.rate < f.port.rate {
		// Paced: the last packet leaves when its rate permits.
		wait := engine.Time(0)
		if packets > 1 {
			wait = engine.Transmit(int64(first)+(packets-2)*int64(full), f.rate)
		}
		return wait + there.singlePacket(last) + back.singlePacket(n.ackSize(&f.key))
	}
	before, arrived := there.packetTrain(first, full, last, packets)
	// A last packet shorter than an acknowledgement does not delay it; the one
	// before it may.
	ack := n.ackSize(&f.key)
	if packets > 1 {
		arrived = max(arrived, before+back.ports[0].serialize(ack))
	}
	return arrived + back.singlePacket(ack)
}

// hpccHeaders is what HPCC's ideal adds to each packet, whatever congestion
// control adds.
const hpccHeaders = 48

// truncateNS3 truncates a time to nanoseconds with NS3.
func (n *Network) truncateNS3(t engine.Time) engine.Time {
	if n.cfg.NS3 {
		t -= t % engine.Nanosecond
	}
	return t
}

// pathMetrics sums up a path.
func (n *Network) pathMetrics(pt *path) PathMetrics {
	sum := PathMetrics{Rate: math.MaxInt64}
	for _, p := range pt.ports {
		sum = sum.addLink(p.rate, p.delay, int64(n.cfg.MTU), n.cfg.NS3)
	}
	return sum
}

// baseWindow returns the window of a flow and the round trip that it was
// computed from: those of its path, or with GlobalWindow the largest of any
// pair of hosts.
func (n *Network) baseWindow(f *flow) (window int64, rtt engine.Time) {
	if n.cfg.GlobalWindow {
		n.largestWindow.Do(func() {
			n.maxWindow, n.maxRTT = NewPathTable(n.routes, n.cfg.MTU, n.cfg.NS3).LargestWindow()
		})
		return n.maxWindow, n.maxRTT
	}
	pt := n.pathOf(f.key, f.src.ID)
	if pt == nil {
		return int64(n.cfg.MTU), engine.Microsecond
	}
	sum := n.pathMetrics(pt)
	return sum.Window(), sum.RTT()
}
