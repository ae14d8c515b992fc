package bmp

import (
	"encoding/binary"
	"net/netip"
	"sync"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/osrg/gobgp/v3/pkg/packet/bmp"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
)

// decoder makes updates of messages. Several goroutines may use it.
type decoder struct {
	out      source.Output
	names    *identity.Table
	switches map[model.NodeID]*source.Switch

	mu       sync.Mutex
	sessions map[netip.AddrPort]*session
	newest   map[model.NodeID]*session // a switch that connects again is not the one before
	stats    stats
}

// session is a connection of a switch.
type session struct {
	node  model.NodeID
	peers map[netip.Addr]*peer
}

type stats struct {
	messages, used               uint64
	malformed, denied, unknown   uint64
	superseded, uninitiated      uint64
	otherMessage, otherRIB       uint64
	tooManySessions, otherFamily uint64
}

// maxSessions bounds connections of which no end was seen, as in a recording with gaps.
const maxSessions = 4 * maxConnections

func newDecoder(f *source.Fabric, out source.Output) *decoder {
	d := &decoder{
		out: out, names: f.Identity, switches: map[model.NodeID]*source.Switch{},
		sessions: map[netip.AddrPort]*session{}, newest: map[model.NodeID]*session{},
	}
	for i := range f.Switches {
		d.switches[f.Switches[i].ID] = &f.Switches[i]
	}
	return d
}

// Decode is part of source.Decoder: data is one message.
func (d *decoder) Decode(at model.Time, from netip.AddrPort, data []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.messages++
	used := d.message(at, from, data)
	if used {
		d.stats.used++
	}
	return used
}

func (d *decoder) message(at model.Time, from netip.AddrPort, data []byte) bool {
	if len(data) < bmp.BMP_HEADER_SIZE || binary.BigEndian.Uint32(data[1:5]) != uint32(len(data)) {
		d.stats.malformed++
		return false
	}
	switch kind := data[5]; kind {
	case bmp.BMP_MSG_STATISTICS_REPORT, bmp.BMP_MSG_ROUTE_MIRRORING:
		d.stats.otherMessage++
		return false
	case bmp.BMP_MSG_TERMINATION:
		return d.terminate(at, from)
	case bmp.BMP_MSG_INITIATION:
		return d.initiate(at, from, data)
	}
	s := d.sessions[from]
	switch {
	case s == nil:
		d.stats.uninitiated++
		return false
	case d.newest[s.node] != s:
		d.stats.superseded++
		return false
	}
	m, err := bmp.ParseBMPMessageWithOptions(data, s.options)
	if err != nil {
		d.stats.malformed++
		d.out.Route(&bgproute.Update{At: at, Node: s.node, Event: bgproute.Gap})
		return false
	}
	h := &m.PeerHeader
	rib, ok := ribOf(h)
	if !ok {
		d.stats.otherRIB++
		return false
	}
	u := bgproute.Update{At: at, Node: s.node, RIB: rib, Peer: peerOf(h)}
	switch body := m.Body.(type) {
	case *bmp.BMPPeerUpNotification:
		u.Event, u.Local, u.PeerID = bgproute.PeerUp, address(body.LocalAddress), address(h.PeerBGPID)
		if open, ok := body.SentOpenMsg.Body.(*bgp.BGPOpen); ok {
			u.LocalID = address(open.ID)
		}
		s.negotiate(u.Peer, h, body)
		d.out.Route(&u)
	case *bmp.BMPPeerDownNotification:
		u.Event = bgproute.PeerDown
		delete(s.peers, u.Peer)
		d.out.Route(&u)
	case *bmp.BMPRouteMonitoring:
		update, ok := body.BGPUpdate.Body.(*bgp.BGPUpdate)
		if !ok {
			d.stats.malformed++
			return false
		}
		d.routes(s, &u, update)
	}
	return true
}

// ribOf returns the table that a message is about. Those of VRFs, and what is sent to peers, are
// none that the fabric's topology says anything of.
func ribOf(h *bmp.BMPPeerHeader) (bgproute.RIB, bool) {
	switch {
	case h.PeerDistinguisher != 0 || h.PeerType != bmp.BMP_PEER_TYPE_LOCAL_RIB && h.IsAdjRIBOut():
		return 0, false
	case h.PeerType == bmp.BMP_PEER_TYPE_LOCAL_RIB:
		return bgproute.LocRIB, true
	case h.PeerType != bmp.BMP_PEER_TYPE_GLOBAL:
		return 0, false
	case h.IsPostPolicy():
		return bgproute.AdjRIBInPost, true
	}
	return bgproute.AdjRIBIn, true
}

// peerOf is the peer of a message; none in a Loc-RIB.
func peerOf(h *bmp.BMPPeerHeader) netip.Addr {
	if h.PeerType == bmp.BMP_PEER_TYPE_LOCAL_RIB {
		return netip.Addr{}
	}
	return address(h.PeerAddress)
}

// address converts an address; the zero value if it has another length.
func address(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

// initiate begins the session of a switch: known by its address, or by the name that it says,
// if its reports may come from there.
func (d *decoder) initiate(at model.Time, from netip.AddrPort, data []byte) bool {
	m, err := bmp.ParseBMPMessage(data)
	if err != nil {
		d.stats.malformed++
		return false
	}
	a := from.Addr().Unmap()
	sw, ok := d.names.NodeByName(systemName(m.Body.(*bmp.BMPInitiation)))
	if !ok {
		sw, ok = d.names.NodeByAddr(a)
	}
	switch {
	case !ok:
		d.stats.unknown++
		d.refuse(a, translate.UnknownReporter)
		return false
	case !d.switches[sw].SendsFrom(a):
		d.stats.denied++
		d.refuse(a, translate.AddressNotAllowed)
		return false
	case d.sessions[from] == nil && len(d.sessions) >= maxSessions:
		d.stats.tooManySessions++
		return false
	}
	s := &session{node: sw, peers: map[netip.Addr]*peer{}}
	d.sessions[from], d.newest[sw] = s, s
	d.out.Route(&bgproute.Update{At: at, Node: sw, Event: bgproute.SessionUp})
	return true
}

// systemName is the sysName of an Initiation.
func systemName(b *bmp.BMPInitiation) string {
	for _, one := range b.Info {
		if s, ok := one.(*bmp.BMPInfoTLVString); ok && s.Type == bmp.BMP_INIT_TLV_TYPE_SYS_NAME {
			return s.Value
		}
	}
	return ""
}

// terminate ends a session.
func (d *decoder) terminate(at model.Time, from netip.AddrPort) bool {
	s := d.sessions[from]
	delete(d.sessions, from)
	if s == nil || d.newest[s.node] != s {
		return false
	}
	delete(d.newest, s.node)
	d.out.Route(&bgproute.Update{At: at, Node: s.node, Event: bgproute.SessionDown})
	return true
}

func (d *decoder) refuse(from netip.Addr, why translate.Refusal) {
	if d.out.Refused != nil {
		d.out.Refused(from, why, 0)
	}
}

// Counters is part of source.Decoder.
func (d *decoder) Counters() source.Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.stats
	return source.Counters{Unit: "messages", In: s.messages, Out: s.used, Losses: []source.Loss{
		{Reason: "malformed", About: "messages; the switch's routes are not judged until it connects again", Count: s.malformed},
		{Reason: translate.AddressNotAllowed.String(), About: "messages", Count: s.denied},
		{Reason: "unknown sender", About: "connections of no switch's address or name", Count: s.unknown},
		{Reason: "no initiation", About: "messages of a connection that has not said who it is", Count: s.uninitiated},
		{Reason: "superseded", About: "messages of a switch that has connected again", Count: s.superseded},
		{Reason: "too many sessions", About: "connections", Count: s.tooManySessions},
		{Reason: "other message", About: "statistics and mirrored messages", Count: s.otherMessage, Expected: true},
		{Reason: "other RIB", About: "messages of VRFs, and of what is sent to peers", Count: s.otherRIB, Expected: true},
		{Reason: "other family", About: "routes that are neither IPv4 nor IPv6 unicast", Count: s.otherFamily, Expected: true},
	}}
}
