package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Service is a virtual address (VIP) and its backends (DIPs). Every mux that
// owns the VIP encapsulates its packets to a DIP, chosen by hash of the
// 5-tuple, the same at all muxes. The host of the DIP decapsulates them and
// answers the client directly, with the VIP as its source.
type Service struct {
	VIP      model.Addr
	Backends []model.Addr  // of the VIP's family: addresses of hosts, or ones that migrate
	Delay    time.Duration // of a mux per packet; it processes packets of all services in order
}

// service is a Service as muxes use it.
type service struct {
	dips  []model.Addr
	delay engine.Time
	seed  uint64
}

// pick chooses the backend of a flow.
func (s *service) pick(key model.FlowKey) model.Addr {
	return s.dips[key.Hash(s.seed)%uint64(len(s.dips))]
}

// muxSeed makes the choice of a backend independent of ECMP hashes.
const muxSeed = 0x6d75786d75786d75

// AddService adds a service to its muxes, before the run and before flows to
// its address are added.
func (n *Network) AddService(s Service) error {
	if err := n.checkService(s); err != nil {
		return fmt.Errorf("sim: service %v: %w", s.VIP, err)
	}
	n.services[s.VIP] = &service{slices.Clone(s.Backends), engine.Of(s.Delay), n.cfg.Seed ^ muxSeed}
	return nil
}

func (n *Network) checkService(s Service) error {
	if n.services[s.VIP] != nil {
		return fmt.Errorf("listed twice, want it once with all its backends")
	}
	if s.Delay < 0 {
		return fmt.Errorf("delay %v, want at least 0", s.Delay)
	}
	owners := n.fabric.Owners(s.VIP)
	if len(owners) == 0 {
		return fmt.Errorf("no node owns the address, want a mux")
	}
	for _, id := range owners {
		if o := n.fabric.Node(id); o.Role != topo.Mux || s.VIP == o.IPv4 || s.VIP == o.IPv6 {
			return fmt.Errorf("the address is that of %s, want one of the prefixes of a mux", o.Name)
		}
	}
	if len(s.Backends) == 0 {
		return fmt.Errorf("no backends, want at least one")
	}
	for _, dip := range s.Backends {
		owners := n.fabric.Owners(dip)
		if len(owners) != 1 || n.fabric.Node(owners[0]).Role != topo.Host || dip.Is4() != s.VIP.Is4() {
			return fmt.Errorf("backend %v, want an address of one host, of the same family", dip)
		}
	}
	return nil
}

// tunnelOverhead returns what muxes add to the longest frame: a header of
// either family, because a faulty mux may pick a backend of the other.
func tunnelOverhead(f *topo.Fabric) int32 {
	for _, id := range f.Hosts() {
		if tn := f.Node(id); tn.Role == topo.Mux && len(tn.Nets) > 0 {
			return packet.IPv6Size
		}
	}
	return 0
}

// mux is the load balancer of a host of that role. It is stateless, so any mux
// can handle any packet. Its memory has no limit: when it is paused, packets
// wait in the queue of its port.
type mux struct {
	host *Host
	work linkQueue   // packets in process, in order
	last engine.Time // when the newest of them is done
	done func()

	extraDelay engine.Time // added by a SlowMux fault

	// misdirected overrides the backend of some flows; the zero address drops
	// them.
	misdirected diversions[model.Addr]
}

func newMux(h *Host) *mux {
	m := &mux{host: h}
	m.done = m.forward
	return m
}

// receive processes a packet that arrived at a port, if its destination is
// virtual.
func (m *mux) receive(in *Port, p *Packet) bool {
	h, n := m.host, m.host.net
	if p.tunnelled() || p.Key.Dst == n.nodeAddr(h.ID, p.Key.V6) || !n.routes.Owns(h.ID, p.Key.Dst) {
		return false
	}
	s := n.services[p.Key.Dst]
	if s == nil {
		n.drop(p, in, DropNoRoute)
		return true
	}
	if p.TTL <= 1 {
		n.drop(p, in, DropTTL)
		return true
	}
	dip := s.pick(p.Key)
	if other, hit := m.misdirected.match(p.Key); hit {
		dip = other
	}
	if dip == (model.Addr{}) {
		n.drop(p, in, DropSilent)
		return true
	}
	p.TTL--
	h.w.encapsulate(p, m.outerHeader(p.Key, dip))
	h.w.counts.Consumed++
	m.last = max(m.last, h.w.now+s.delay+m.extraDelay) // no reordering when a slow mux recovers
	if m.work.push(m.last, p) {
		h.node.addTimer(timer{at: m.last, kind: runFunc, run: m.done})
	}
	return true
}

// forward sends the first processed packet.
func (m *mux) forward() {
	h, n := m.host, m.host.net
	p := m.work.pop()
	if next := m.work.at; next != engine.Forever {
		h.node.addTimer(timer{at: next, kind: runFunc, run: m.done})
	}
	n.egressPortOrFirst(h, p.Extra.Outer[0]).enqueue(p)
}

// outerHeader returns the header from the mux to a backend. IP-in-IP has no
// ports, so all packets to one backend take one path.
func (m *mux) outerHeader(inner model.FlowKey, dip model.Addr) model.FlowKey {
	key := model.FlowKey{Dst: dip, Proto: model.IPIP, V6: !dip.Is4()}
	if inner.V6 {
		key.Proto = model.IPv6
	}
	key.Src = m.host.net.nodeAddr(m.host.ID, key.V6)
	return key
}
