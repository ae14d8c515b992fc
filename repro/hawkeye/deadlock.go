package hawkeye

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// bufferCycle is a cyclic buffer dependency between two switches of a tier, low,
// and two of the tier above, high:
//
//	low[0] -> high[0] -> low[1] -> high[1] -> low[0]
//
// Packets to the host dst[0] take the first three of these links, those to
// dst[1] the last two and the first: each high[i] has a wrong route, which sends
// them down although their host is not below.
type bufferCycle struct {
	low, high [2]model.NodeID
	src       [2][]model.NodeID // hosts that send through low[i], each through a separate port as far as there are
	dst       [2]model.NodeID
}

// drawCycle draws a cycle of ToRs and leaves of a pod, or of leaves and spines.
func (d *draft) drawCycle() (c bufferCycle) {
	f := d.fabric
	lowRole := topo.ToR
	if d.IntN(2) == 0 || d.tierOf(topo.ToR) == nil {
		lowRole = topo.Leaf
	}
	lows := d.tierOf(lowRole)
	for {
		c.low = [2]model.NodeID{d.pickHost(lows), d.pickHost(lows)}
		up := d.above(c.low[0])
		if c.low[0] == c.low[1] || len(f.Node(c.low[1]).PortsTo(up[0])) == 0 || lowRole == topo.ToR &&
			f.Node(c.low[0]).Pod != f.Node(c.low[1]).Pod {
			continue
		}
		d.Shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
		c.high = [2]model.NodeID{up[0], up[1]}
		break
	}
	for i := range 2 {
		c.src[i] = d.below(c.low[i])
	}
	away := d.pickOthers(2, func(h model.NodeID) bool { return d.near(h, c.src[0][0]) || d.near(h, c.src[1][0]) })
	c.dst = [2]model.NodeID{away[0], away[1]}
	return c
}

// tierOf returns the switches of a role.
func (d *draft) tierOf(role topo.Role) (list []model.NodeID) {
	for _, id := range d.fabric.Switches() {
		if d.fabric.Node(id).Role == role {
			list = append(list, id)
		}
	}
	return list
}

// above returns the switches of the next tier that a switch is connected to.
func (d *draft) above(sw model.NodeID) (list []model.NodeID) {
	for _, p := range d.fabric.Node(sw).Ports {
		if d.fabric.Node(p.Peer.Node).Tier > d.fabric.Node(sw).Tier {
			list = append(list, p.Peer.Node)
		}
	}
	return list
}

// below returns the hosts that reach a switch from below, first one of each of
// its ports.
func (d *draft) below(sw model.NodeID) (list []model.NodeID) {
	var rest []model.NodeID
	for _, p := range d.fabric.Node(sw).Ports {
		peer := p.Peer.Node
		if d.fabric.Node(peer).Tier > d.fabric.Node(sw).Tier {
			continue
		}
		if !d.fabric.Node(peer).Role.IsSwitch() {
			list = append(list, peer)
			continue
		}
		hosts := d.below(peer)
		list, rest = append(list, hosts[0]), append(rest, hosts[1:]...)
	}
	return append(list, rest...)
}

// addWrongRoutes routes the packets of both hosts along the cycle.
func (d *draft) addWrongRoutes(c bufferCycle) {
	for i := range 2 {
		to := d.prefix(c.dst[i])
		enter := func(at, via model.NodeID) {
			d.wrongRoutes = append(d.wrongRoutes, sim.Entry{Switch: at, To: to, Via: []model.NodeID{via}})
		}
		for _, h := range c.src[i] {
			if tor := d.rack(h); tor != c.low[i] {
				enter(tor, c.low[i])
			}
		}
		enter(c.low[i], c.high[i])
		enter(c.high[i], c.low[1-i])
		enter(c.low[1-i], c.high[1-i])
	}
}

// addDeadlock adds a cycle, flows along it that it can carry, and what triggers
// a deadlock.
func (d *draft) addDeadlock(k kind, at time.Duration) {
	c := d.drawCycle()
	d.addWrongRoutes(c)
	for i := range 2 {
		for _, h := range c.src[i][:2] {
			d.addFlow(traffic.Flow{
				Src: h, Dst: c.dst[i], Start: model.Time(at - d.between(100*us, 300*us)), Stop: model.Time(d.time(20 * ms)),
				Rate: d.share(19 + d.IntN(5)), NoCC: true,
			})
		}
	}
	last := d.towards(d.rack(c.dst[0]), c.dst[0])
	switch k {
	case inLoop:
		d.causes = append(d.causes, injectedCause{
			anomaly.DeadlockInLoop, anomaly.ContendingFlows,
			[]model.Port{d.towards(c.low[0], c.high[0])},
			d.burstInCycle(c, at), d.cyclePorts(c),
		})
	case outContention:
		flows, ports := d.incastDownstream(c, at)
		d.causes = append(d.causes, injectedCause{anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, ports, flows, d.cyclePorts(c)})
	case outInjection:
		d.storms = append(d.storms, sim.Injection{At: model.Time(at), Fault: sim.Storm{
			Host: c.dst[0], Priority: class, On: d.between(80*us, 150*us), Off: d.between(20*us, 40*us),
		}})
		d.causes = append(d.causes, injectedCause{anomaly.DeadlockOutOfLoop, anomaly.HostInjection, []model.Port{last}, nil, d.cyclePorts(c)})
	}
}

// cyclePorts returns the ports of a cycle, in its order.
func (d *draft) cyclePorts(c bufferCycle) []model.Port {
	return []model.Port{
		d.towards(c.low[0], c.high[0]), d.towards(c.high[0], c.low[1]),
		d.towards(c.low[1], c.high[1]), d.towards(c.high[1], c.low[0]),
	}
}

// burstInCycle adds a burst into the cycle's first link.
func (d *draft) burstInCycle(c bufferCycle, at time.Duration) (flows []int) {
	for i := range 4 {
		flows = append(flows, d.addFlow(traffic.Flow{
			Src: c.src[0][i%2], Dst: c.dst[0], Bytes: d.size(3*model.MB, 4*model.MB),
			Start: model.Time(at + d.between(0, 5*us)), NoCC: true,
		}))
	}
	return flows
}

// incastDownstream adds an incast to a host that the cycle's flows go to, half
// of it through the same leaf as they.
func (d *draft) incastDownstream(c bufferCycle, at time.Duration) (flows []int, ports []model.Port) {
	to := c.dst[0]
	tor := d.rack(to)
	ports = append(ports, d.towards(tor, to))
	leaves := d.above(tor)
	for i, leaf := range leaves {
		if d.connects(leaf, c.high[1]) {
			leaves[0], leaves[i] = leaves[i], leaves[0]
			ports = append(ports, d.towards(leaf, tor))
		}
	}
	senders := d.pickOthers(6, func(h model.NodeID) bool {
		return d.rack(h) == tor || d.near(h, c.src[0][0]) || d.near(h, c.src[1][0])
	})
	for i, h := range senders {
		port, err := d.portVia(h, to, leaves[i%2])
		if err != nil {
			panic(err) // every host of another rack reaches it through every leaf
		}
		flows = append(flows, d.addFlow(traffic.Flow{
			Src: h, Dst: to, Bytes: d.size(4*model.MB, 5*model.MB),
			Start: model.Time(at + d.between(0, 5*us)), NoCC: true, SrcPort: port,
		}))
	}
	return flows, ports
}

// connects reports whether a leaf is connected to a spine, or to the same
// spines as another leaf.
func (d *draft) connects(leaf, to model.NodeID) bool {
	if d.fabric.Node(to).Role == topo.Spine {
		return len(d.fabric.Node(leaf).PortsTo(to)) > 0
	}
	return len(d.fabric.Node(to).PortsTo(d.above(leaf)[0])) > 0
}
