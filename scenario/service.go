package scenario

import (
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
)

// serviceSpec is one item of the section services: a virtual address and its
// backends.
type serviceSpec struct {
	sourcePos
	VIP      ref           `yaml:"vip"`
	Backends []ref         `yaml:"backends"` // hosts, or addresses of hosts
	Delay    time.Duration `yaml:"delay"`    // of a mux per packet
}

func (sc *schema) resolveServices(s *Scenario, e *env) error {
	for i := range sc.Services {
		spec := &sc.Services[i]
		if !spec.VIP.given() || len(spec.Backends) == 0 {
			return spec.errorf("", "service %d, want a vip and backends", i+1)
		}
		vip, ok := spec.VIP.address()
		if !ok {
			return spec.VIP.Errorf("vip %q, want an address such as 192.0.2.10", spec.VIP.text)
		}
		service := Service{Position: spec.Position, Service: sim.Service{VIP: vip, Delay: spec.Delay}}
		for _, r := range spec.Backends {
			for _, one := range e.expand(r) {
				dip, err := e.hostOrAddress(one, !vip.Is4())
				if err != nil {
					return err
				}
				service.Backends = append(service.Backends, dip)
			}
		}
		s.Services = append(s.Services, service)
	}
	return nil
}

// bgpSpec is the section bgp.
type bgpSpec struct {
	sourcePos
	Keepalive time.Duration `yaml:"keepalive"` // interval
}

func (b *bgpSpec) interval() (time.Duration, error) {
	if b.Keepalive <= 0 && len(b.keys) > 0 {
		return 0, b.errorf("keepalive", "keepalive %v, want above 0", b.Keepalive)
	}
	return b.Keepalive, nil
}

// address parses an address, if it is one.
func (p *ref) address() (model.Addr, bool) {
	a, err := netip.ParseAddr(p.text)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return model.Addr{}, false
	}
	return model.AddrOf(a), true
}

// endpoint reads an endpoint of a flow: a host, or an address and the nodes
// that own it.
func (n names) endpoint(r ref) (host model.NodeID, a model.Addr, owners []model.NodeID, err error) {
	if _, named := n.fabric.ByName(r.text); named {
		host, err = n.host(r)
		return host, a, nil, err
	}
	a, ok := r.address()
	if !ok {
		return 0, a, nil, r.Errorf("there is no node %q, want one of the topology, or an address", r.text)
	}
	if owners = n.fabric.Owners(a); len(owners) == 0 {
		return 0, a, nil, r.Errorf("no node owns %v, want an address of the topology's nodes or nets", a)
	}
	return 0, a, owners, nil
}

// source reads the source of a flow: a host, or an address of one.
func (n names) source(r ref) (model.NodeID, model.Addr, error) {
	id, a, owners, err := n.endpoint(r)
	if err != nil || owners == nil {
		return id, a, err
	}
	if len(owners) > 1 || n.fabric.Node(owners[0]).Role != topo.Host {
		return 0, a, r.Errorf("%v belongs to %s, want an address of one host", a, n.list(owners))
	}
	return owners[0], a, nil
}

// hostOrAddress reads a host, for its address of a family, or an address.
func (n names) hostOrAddress(r ref, v6 bool) (model.Addr, error) {
	id, a, owners, err := n.endpoint(r)
	if err != nil || owners != nil {
		return a, err
	}
	if v6 {
		return n.fabric.Node(id).IPv6, nil
	}
	return n.fabric.Node(id).IPv4, nil
}

func (n names) mux(r ref) (model.NodeID, error) {
	id, err := n.node(r)
	if err == nil && n.fabric.Node(id).Role != topo.Mux {
		return 0, r.Errorf("%s is a %v, want a mux", r.text, n.fabric.Node(id).Role)
	}
	return id, err
}

// list prints the names of nodes.
func (n names) list(ids []model.NodeID) (text string) {
	for i, id := range ids {
		if i > 0 {
			text += ", "
		}
		text += n.fabric.Node(id).Name
	}
	return text
}

// slowMuxSpec adds a delay to a mux.
type slowMuxSpec struct {
	schedule
	Mux   ref           `yaml:"mux"`
	Delay time.Duration `yaml:"delay"` // added to the service's
}

func (s *slowMuxSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("mux", s.Mux); err != nil {
		return nil, err
	}
	if s.Delay == 0 {
		return nil, s.errorf("delay", "slow-mux with delay %v, want above 0", s.Delay)
	}
	id, err := e.mux(s.Mux)
	return sim.SlowMux{Host: id, Delay: s.Delay}, err
}

// misdirectingMuxSpec makes a mux misdirect some flows.
type misdirectingMuxSpec struct {
	schedule
	Mux   ref    `yaml:"mux"`
	Share share  `yaml:"share"`
	To    ref    `yaml:"to"`   // a host or an address that does not serve them; none: dropped
	Seed  uint64 `yaml:"seed"` // 0: the scenario's
}

func (s *misdirectingMuxSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("mux", s.Mux); err != nil {
		return nil, err
	}
	if err := s.needShare(s.Share); err != nil {
		return nil, err
	}
	id, err := e.mux(s.Mux)
	if err != nil {
		return nil, err
	}
	f := sim.MisdirectingMux{Host: id, Share: float64(s.Share), Seed: s.Seed}
	if s.To.given() {
		f.To, err = e.hostOrAddress(s.To, false)
	}
	return f, err
}
