package sim

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo/fib"
)

// LoadBalancing is how a switch chooses among equal-cost ports for RDMA payload.
type LoadBalancing uint8

// Kinds of load balancing.
const (
	// ECMP hashes the 5-tuple: a flow has one path.
	ECMP LoadBalancing = iota
	// Spray draws a port for every packet.
	Spray
	// Adaptive takes the port of the shortest wait for every packet: link up,
	// priority not paused, least time until what it holds has left.
	Adaptive
)

var loadBalancingNames = [...]string{"ecmp", "spray", "adaptive"}

// String prints the name that scenario files use.
func (b LoadBalancing) String() string {
	if int(b) < len(loadBalancingNames) {
		return loadBalancingNames[b]
	}
	return fmt.Sprintf("load balancing %d", uint8(b))
}

// FindLoadBalancing returns the load balancing of a name.
func FindLoadBalancing(name string) (LoadBalancing, bool) {
	i := slices.Index(loadBalancingNames[:], name)
	return LoadBalancing(max(i, 0)), i >= 0
}

// spreads reports whether switches may send the packet by another port than the
// one before it. Acknowledgements, TCP and UDP keep the order of their flow.
func (p *Packet) spreads() bool { return p.Kind == KindData || p.Kind == KindTrimmed }

// balance is lookup for a packet that spreads.
func (sw *Switch) balance(p *Packet) *Port {
	if p.tunnelled() {
		return sw.lookup(p)
	}
	if len(sw.misrouted) > 0 {
		if _, hit := sw.misrouted.match(p.Key); hit {
			return sw.lookup(p)
		}
	}
	ports, verdict := sw.table.Candidates(p.Key)
	if verdict != fib.Forward || len(ports) < 2 {
		return sw.lookup(p)
	}
	first := int(sw.node.random() * float64(len(ports)))
	if sw.net.cfg.LoadBalancing == Adaptive {
		return sw.leastLoaded(ports, first, p.Priority)
	}
	return sw.ports[ports[first]-1]
}

// leastLoaded returns the port with the shortest wait; of equals the next from
// an index on.
func (sw *Switch) leastLoaded(ports []model.PortID, first int, prio model.Priority) *Port {
	var best *Port
	least := engine.Forever
	for i := range ports {
		at := first + i
		if at >= len(ports) {
			at -= len(ports)
		}
		out := sw.ports[ports[at]-1]
		if wait := out.wait(prio); best == nil || wait < least {
			best, least = out, wait
		}
	}
	return best
}

// unusable is the wait at a port that sends nothing of a priority now.
const unusable = engine.Forever / 2

// wait returns how long the wire is taken by what the port has for it: the rest of
// the packet that is leaving, the control queue, and the queue of a priority.
func (p *Port) wait(prio model.Priority) engine.Time {
	wait := max(0, p.busyUntil-p.w.now)
	if p.nonEmpty&(1<<prio|controlBit) != 0 {
		wait += engine.Transmit(p.queues[prio].bytes+p.queues[controlQueue].bytes, p.rate)
	}
	if p.paused>>prio&1 != 0 {
		wait += unusable
	}
	for _, im := range p.impair {
		if im.down {
			wait += unusable
		}
	}
	return wait
}
