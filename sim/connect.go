package sim

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/roce"
)

// connect sets a flow's hosts, its 5-tuple and its egress ports.
func (n *Network) connect(f *flow) (err error) {
	s := &f.spec
	named := s.To == model.Addr{} // the destination is a host, not an address
	if n.hostAt(s.Src) == nil || named && n.hostAt(s.Dst) == nil {
		return fmt.Errorf("from node %d to node %d, want two hosts of the fabric", s.Src, s.Dst)
	}
	f.src = n.hostAt(s.Src)
	if named && s.Src == s.Dst {
		return fmt.Errorf("from %s to itself", f.src.Name)
	}
	if err = n.assignAddresses(f); err != nil {
		return err
	}
	if f.dst, err = n.respondingHost(f.key, s.Src); err != nil {
		return err
	}
	s.Dst = f.dst.ID
	f.port = n.egressPort(f.src, f.key)
	f.ackPort = n.egressPort(f.dst, f.reverseKey)
	if f.dst == f.src {
		f.ackPort = n.egressPortOrFirst(f.dst, f.reverseKey) // the host is its own backend
	}
	if f.port == nil || f.ackPort == nil {
		return fmt.Errorf("no route between %s and %s for %v", f.src.Name, f.dst.Name, f.key)
	}
	return nil
}

// hostAt returns a host, or nil if the fabric has none of this id.
func (n *Network) hostAt(id model.NodeID) *Host {
	if !n.fabric.HasNode(id) {
		return nil
	}
	return n.Host(id)
}

// egressPort returns the port by which a host sends packets of a key; nil if it
// has no route.
func (n *Network) egressPort(h *Host, key model.FlowKey) *Port {
	out, ok := n.routes.NextHop(h.ID, key)
	if !ok || out == 0 {
		return nil
	}
	return h.ports[out-1]
}

// egressPortOrFirst is egressPort for packets that must be sent: to its own
// address a host sends by its first port, and the switch there sends them back.
func (n *Network) egressPortOrFirst(h *Host, key model.FlowKey) *Port {
	if p := n.egressPort(h, key); p != nil {
		return p
	}
	return h.ports[0]
}

// firstSourcePort is HPCC's; the range up to 65535 is enough for the flows of
// one pair in any run.
const firstSourcePort = 10000

// assignAddresses chooses the 5-tuple. Every flow between two addresses has a
// separate source port, as queue pairs have.
func (n *Network) assignAddresses(f *flow) error {
	s := &f.spec
	none := model.Addr{}
	switch {
	case s.To != none:
		s.V6 = !s.To.Is4()
	case s.From != none:
		s.V6 = !s.From.Is4()
	}
	a, b := s.From, s.To
	if a == none {
		a = n.nodeAddr(s.Src, s.V6)
	} else if n.services[a] != nil || !n.routes.Owns(s.Src, a) {
		return fmt.Errorf("from %v, want an address of %s that is not virtual", a, f.src.Name)
	}
	if b == none {
		b = n.nodeAddr(s.Dst, s.V6)
	}
	if a.Is4() != b.Is4() {
		return fmt.Errorf("from %v to %v, want two addresses of one family", a, b)
	}
	proto, dport := model.UDP, uint16(roce.Port)
	switch s.Transport {
	case traffic.TCP:
		proto, dport = model.TCP, 80
	case traffic.UDP:
		dport = 9
	}
	if s.DstPort != 0 {
		dport = s.DstPort
	}
	sport := s.SrcPort
	if sport == 0 {
		pair := [2]model.Addr{a, b}
		sport = firstSourcePort + n.nextSourcePort[pair]
		n.nextSourcePort[pair]++
	}
	f.key = model.NewFlowKey(netip.AddrPortFrom(a.Netip(), sport), netip.AddrPortFrom(b.Netip(), dport), proto)
	f.reverseKey = f.key.Reverse()
	if s.Transport == traffic.RDMA && !n.cfg.HPCC {
		f.reverseKey = roce.AckKey(f.key)
	}
	return nil
}

// nodeAddr returns a node's address of a family.
func (n *Network) nodeAddr(id model.NodeID, v6 bool) model.Addr {
	if v6 {
		return n.fabric.Node(id).IPv6
	}
	return n.fabric.Node(id).IPv4
}

// respondingHost returns the host that answers packets of a key sent from a
// node: the owner of the destination, or the backend that a mux picks.
func (n *Network) respondingHost(key model.FlowKey, from model.NodeID) (*Host, error) {
	h, err := n.destinationHost(key, from)
	if err != nil || h.mux == nil || key.Dst == n.nodeAddr(h.ID, key.V6) {
		return h, err
	}
	s := n.services[key.Dst]
	if s == nil {
		return nil, fmt.Errorf("to %v, which %s answers for; want one of the services", key.Dst, h.Name)
	}
	return n.destinationHost(h.mux.outerHeader(key, s.pick(key)), h.ID)
}

// destinationHost returns the host that packets of a key reach by the intended
// routes.
func (n *Network) destinationHost(key model.FlowKey, from model.NodeID) (*Host, error) {
	var id model.NodeID
	switch owners := n.routes.Owners(key.Dst); len(owners) {
	case 0:
		return nil, fmt.Errorf("to %v, which no node owns", key.Dst)
	case 1:
		id = owners[0]
	default:
		hops, err := n.routes.Path(key, from)
		if err != nil {
			return nil, err
		}
		id = hops[len(hops)-1].Node
	}
	h := n.Host(id)
	if h == nil {
		return nil, fmt.Errorf("to %v, which switch %s owns, want a host", key.Dst, n.fabric.Node(id).Name)
	}
	return h, nil
}
