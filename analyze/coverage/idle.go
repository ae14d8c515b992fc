package coverage

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// ProbeFlow is a flow whose packets a host sends only to be labelled on their path.
type ProbeFlow struct {
	Host  model.NodeID
	Key   model.FlowKey
	Ports []model.Port // of the switches on the path, in their order
}

// The search for a probe is bounded, so that its time grows with the ports alone.
const (
	destinations = 4  // tried for a port
	sources      = 4  // tried for each of them
	sourcePorts  = 32 // tried for each pair of hosts: ECMP chooses the path by them
)

// PlanProbes chooses flows between hosts that together pass the given ports, each the
// one of those tried that passes the most ports that no flow before it does. It also
// returns the ports that none passes.
func PlanProbes(r *topo.Routes, ports []model.Port, dstPort uint16) (flows []ProbeFlow, unreached []model.Port) {
	p := probePlan{routes: r, hosts: r.Fabric().Hosts(), dstPort: dstPort, left: map[model.Port]bool{}}
	for _, port := range ports {
		p.left[port] = true
	}
	for _, port := range ports {
		if !p.left[port] {
			continue
		}
		delete(p.left, port)
		best, ok := p.flowThrough(port)
		if !ok {
			unreached = append(unreached, port)
			continue
		}
		for _, passed := range best.Ports {
			delete(p.left, passed)
		}
		flows = append(flows, best)
	}
	return flows, unreached
}

// probePlan is a plan in the making.
type probePlan struct {
	routes  *topo.Routes
	hosts   []model.NodeID
	dstPort uint16
	left    map[model.Port]bool // that no flow passes yet
	hops    []topo.Hop          // scratch space
}

// flowThrough returns the flow through a port that passes the most ports that are left.
func (p *probePlan) flowThrough(port model.Port) (best ProbeFlow, ok bool) {
	f, most, dsts := p.routes.Fabric(), -1, 0
	for _, dst := range p.hosts {
		addr := f.Node(dst).IPv4
		if dsts == destinations || !slices.Contains(p.routes.NextHops(port.Node, addr), port.Port) {
			continue
		}
		dsts++
		srcs := 0
		for _, src := range p.hosts {
			if srcs == sources || src == dst || !p.between(src, port.Node, addr) {
				continue
			}
			srcs++
			for i := range uint16(sourcePorts) {
				key := model.FlowKey{Src: f.Node(src).IPv4, Dst: addr, SrcPort: firstSourcePort + i, DstPort: p.dstPort, Proto: model.UDP}
				if n, passes := p.gain(key, src, port); passes && n > most {
					best, most, ok = ProbeFlow{Host: src, Key: key, Ports: p.passed()}, n, true
				}
			}
		}
	}
	return best, ok
}

// between reports whether a switch is on a shortest path from a host to an address.
func (p *probePlan) between(src, sw model.NodeID, dst model.Addr) bool {
	before, reaches := p.routes.Distance(src, p.routes.Fabric().Node(sw).IPv4)
	beyond, reached := p.routes.Distance(sw, dst)
	whole, ok := p.routes.Distance(src, dst)
	return reaches && reached && ok && before+beyond == whole
}

// firstSourcePort is the first of the ephemeral ports.
const firstSourcePort = 49152

// gain returns how many ports that are left a flow passes, and whether it passes port.
func (p *probePlan) gain(key model.FlowKey, src model.NodeID, port model.Port) (n int, passes bool) {
	var err error
	if p.hops, err = p.routes.AppendPath(p.hops[:0], key, src); err != nil {
		return 0, false
	}
	for _, h := range p.hops {
		out := model.Port{Node: h.Node, Port: h.Out}
		passes = passes || out == port
		if p.left[out] {
			n++
		}
	}
	return n, passes
}

// passed returns the ports of the switches on the path that gain looked at.
func (p *probePlan) passed() (list []model.Port) {
	for _, h := range p.hops {
		if h.Out != 0 && p.routes.Fabric().Node(h.Node).Role.IsSwitch() {
			list = append(list, model.Port{Node: h.Node, Port: h.Out})
		}
	}
	return list
}
