package bmp

import (
	"net/netip"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/osrg/gobgp/v3/pkg/packet/bmp"

	"github.com/weft-telemetry/weft/model/bgproute"
)

// peer is what both OPENs of a peer say of its routes.
type peer struct {
	internal bool // iBGP
	addPaths map[bgp.RouteFamily]bgp.BGPAddPathMode
}

// maxPeers bounds the peers of a switch whose OPENs are remembered.
const maxPeers = 4096

// negotiate remembers what a Peer Up says.
func (s *session) negotiate(a netip.Addr, h *bmp.BMPPeerHeader, body *bmp.BMPPeerUpNotification) {
	sent, _ := body.SentOpenMsg.Body.(*bgp.BGPOpen)
	received, _ := body.ReceivedOpenMsg.Body.(*bgp.BGPOpen)
	if _, known := s.peers[a]; sent == nil || received == nil || !known && len(s.peers) >= maxPeers {
		return
	}
	p := &peer{addPaths: map[bgp.RouteFamily]bgp.BGPAddPathMode{}}
	as, takes := capabilities(sent)
	_, sends := capabilities(received)
	p.internal = as == h.PeerAS
	for family, mode := range takes {
		if mode&bgp.BGP_ADD_PATH_RECEIVE != 0 && sends[family]&bgp.BGP_ADD_PATH_SEND != 0 {
			p.addPaths[family] = bgp.BGP_ADD_PATH_RECEIVE
		}
	}
	s.peers[a] = p
}

// capabilities returns the AS of an OPEN, and the families whose routes may have path ids.
func capabilities(open *bgp.BGPOpen) (as uint32, addPaths map[bgp.RouteFamily]bgp.BGPAddPathMode) {
	as, addPaths = uint32(open.MyAS), map[bgp.RouteFamily]bgp.BGPAddPathMode{}
	for _, param := range open.OptParams {
		caps, ok := param.(*bgp.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, one := range caps.Capability {
			switch c := one.(type) {
			case *bgp.CapFourOctetASNumber:
				as = c.CapValue
			case *bgp.CapAddPath:
				for _, t := range c.Tuples {
					addPaths[t.RouteFamily] = t.Mode
				}
			}
		}
	}
	return as, addPaths
}

// options are how routes of a peer are encoded.
func (s *session) options(h bmp.BMPPeerHeader) []*bgp.MarshallingOption {
	if p := s.peers[peerOf(&h)]; p != nil && len(p.addPaths) > 0 {
		return []*bgp.MarshallingOption{{AddPath: p.addPaths}}
	}
	return nil
}

// routes emits the routes of a BGP UPDATE.
func (d *decoder) routes(s *session, u *bgproute.Update, m *bgp.BGPUpdate) {
	if end, _ := m.IsEndOfRib(); end {
		u.Event = bgproute.EndOfRIB
		d.out.Route(u)
		return
	}
	r := &u.Route
	r.LocalPref = bgproute.DefaultLocalPref
	if p := s.peers[u.Peer]; p != nil {
		r.Internal = p.internal
	}
	var reach *bgp.PathAttributeMpReachNLRI
	var unreach *bgp.PathAttributeMpUnreachNLRI
	for _, a := range m.PathAttributes {
		switch a := a.(type) {
		case *bgp.PathAttributeNextHop:
			r.NextHop = address(a.Value)
		case *bgp.PathAttributeLocalPref:
			r.LocalPref = a.Value
		case *bgp.PathAttributeOrigin:
			r.Origin = bgproute.Origin(a.Value)
		case *bgp.PathAttributeAsPath:
			for _, segment := range a.Value {
				r.PathLen += uint16(segment.ASLen()) // at most 255, in a message of 64 KiB
			}
		case *bgp.PathAttributeMpReachNLRI:
			reach = a
		case *bgp.PathAttributeMpUnreachNLRI:
			unreach = a
		}
	}
	for _, n := range m.WithdrawnRoutes {
		d.route(u, bgproute.Withdrawn, n)
	}
	if unreach != nil {
		for _, n := range unreach.Value {
			d.route(u, bgproute.Withdrawn, n)
		}
	}
	for _, n := range m.NLRI {
		d.route(u, bgproute.Announced, n)
	}
	if reach != nil {
		// BGP unnumbered has a link-local next hop, alone or beside a global one.
		if r.NextHop = address(reach.Nexthop); !r.NextHop.IsValid() || r.NextHop.IsUnspecified() {
			r.NextHop = address(reach.LinkLocalNexthop)
		}
		for _, n := range reach.Value {
			d.route(u, bgproute.Announced, n)
		}
	}
}

// route emits one route of unicast.
func (d *decoder) route(u *bgproute.Update, e bgproute.Event, n bgp.AddrPrefixInterface) {
	var bits uint8
	var a netip.Addr
	switch n := n.(type) {
	case *bgp.IPAddrPrefix:
		a, bits = address(n.Prefix), n.Length
	case *bgp.IPv6AddrPrefix:
		// Not unmapped: ::ffff:0:0/96 is a prefix of IPv6.
		a, _ = netip.AddrFromSlice(n.Prefix.To16())
		bits = n.Length
	}
	p, err := a.Prefix(int(bits)) // no error, and no prefix, of no address
	if err != nil || !p.IsValid() {
		d.stats.otherFamily++
		return
	}
	u.Event, u.Prefix, u.PathID = e, p, n.PathIdentifier()
	d.out.Route(u)
}
