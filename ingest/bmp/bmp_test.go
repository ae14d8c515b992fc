package bmp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/osrg/gobgp/v3/pkg/packet/bmp"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
)

// fabric has the switch tor0, which sends from 127.0.0.1, and tor1, which sends from 10.0.0.6
// alone.
func fabric(t testing.TB) *source.Fabric {
	local, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.6")
	port := func(string) (model.PortID, bool) { return 0, false }
	ids, err := identity.New([]identity.Switch{
		{ID: 5, Name: "tor0", Addrs: []netip.Addr{local}, Port: port}, {ID: 6, Name: "tor1", Addrs: []netip.Addr{other}, Port: port},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &source.Fabric{Identity: ids, Switches: []source.Switch{
		{ID: 5, Name: "tor0"}, {ID: 6, Name: "tor1", Prefixes: []netip.Prefix{netip.PrefixFrom(other, 32)}},
	}}
}

func serialize(t testing.TB, m *bmp.BMPMessage) []byte {
	b, err := m.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func initiation(t testing.TB, name string) []byte {
	var info []bmp.BMPInfoTLVInterface
	if name != "" {
		info = append(info, bmp.NewBMPInfoTLVString(bmp.BMP_INIT_TLV_TYPE_SYS_NAME, name))
	}
	return serialize(t, bmp.NewBMPInitiation(info))
}

func header(kind, flags uint8, addr string) bmp.BMPPeerHeader {
	return *bmp.NewBMPPeerHeader(kind, flags, 0, addr, 65001, "10.0.0.9", 0)
}

// peerUp is of a session of AS 65000; with additional paths if asked for.
func peerUp(t testing.TB, addr string, addPaths bool) []byte {
	open := func(as uint32, mode bgp.BGPAddPathMode, id string) *bgp.BGPMessage {
		caps := []bgp.ParameterCapabilityInterface{bgp.NewCapFourOctetASNumber(as)}
		if addPaths {
			caps = append(caps, bgp.NewCapAddPath([]*bgp.CapAddPathTuple{bgp.NewCapAddPathTuple(bgp.RF_IPv4_UC, mode)}))
		}
		return bgp.NewBGPOpenMessage(bgp.AS_TRANS, 90, id, []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(caps)})
	}
	return serialize(t, bmp.NewBMPPeerUpNotification(header(0, 0, addr), "192.0.2.1", 1, 2,
		open(65000, bgp.BGP_ADD_PATH_RECEIVE, "10.0.0.5"), open(65001, bgp.BGP_ADD_PATH_SEND, "10.0.0.9")))
}

func monitoring(t testing.TB, h bmp.BMPPeerHeader, m *bgp.BGPMessage, options ...*bgp.MarshallingOption) []byte {
	b, err := m.Serialize(options...)
	if err != nil {
		t.Fatal(err)
	}
	return serialize(t, &bmp.BMPMessage{
		Header: bmp.BMPHeader{Version: bmp.BMP_VERSION, Type: bmp.BMP_MSG_ROUTE_MONITORING}, PeerHeader: h,
		Body: &bmp.BMPRouteMonitoring{BGPUpdatePayload: b},
	})
}

func attributes(nextHop string, extra ...bgp.PathAttributeInterface) []bgp.PathAttributeInterface {
	return append([]bgp.PathAttributeInterface{
		bgp.NewPathAttributeOrigin(2),
		bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{65001, 65002})}),
		bgp.NewPathAttributeNextHop(nextHop),
	}, extra...)
}

// script is a session of tor0 with every message that matters.
func script(t testing.TB) [][]byte {
	pre, post := header(0, 0, "192.0.2.2"), header(0, bmp.BMP_PEER_FLAG_POST_POLICY, "192.0.2.2")
	v4 := []*bgp.IPAddrPrefix{bgp.NewIPAddrPrefix(24, "10.1.0.0"), bgp.NewIPAddrPrefix(0, "0.0.0.0")}
	v6 := []bgp.AddrPrefixInterface{bgp.NewIPv6AddrPrefix(64, "2001:db8::")}
	return [][]byte{
		initiation(t, "tor0"),
		peerUp(t, "192.0.2.2", false),
		monitoring(t, post, bgp.NewBGPUpdateMessage(nil, attributes("192.0.2.2", bgp.NewPathAttributeLocalPref(200)), v4)),
		monitoring(t, pre, bgp.NewBGPUpdateMessage(v4[:1], nil, nil)),
		monitoring(t, post, bgp.NewBGPUpdateMessage(nil, attributes("192.0.2.2", bgp.NewPathAttributeMpReachNLRI("fe80::2", v6)), nil)),
		monitoring(t, post, bgp.NewBGPUpdateMessage(nil, []bgp.PathAttributeInterface{bgp.NewPathAttributeMpUnreachNLRI(v6)}, nil)),
		monitoring(t, post, bgp.NewEndOfRib(bgp.RF_IPv4_UC)),
		monitoring(t, header(bmp.BMP_PEER_TYPE_LOCAL_RIB, 0, "0.0.0.0"), bgp.NewBGPUpdateMessage(nil, attributes("192.0.2.2"), v4[:1])),
		monitoring(t, header(0, bmp.BMP_PEER_FLAG_ADJ_RIB_TYP, "192.0.2.2"), bgp.NewBGPUpdateMessage(nil, attributes("192.0.2.1"), v4[:1])),
		serialize(t, bmp.NewBMPStatisticsReport(pre, []bmp.BMPStatsTLVInterface{bmp.NewBMPStatsTLV32(bmp.BMP_STAT_TYPE_REJECTED, 1)})),
		serialize(t, bmp.NewBMPPeerDownNotification(pre, bmp.BMP_PEER_DOWN_REASON_REMOTE_NO_NOTIFICATION, nil, nil)),
		ended,
	}
}

// describe prints what matters of an update.
func describe(u *bgproute.Update) string {
	s := fmt.Sprintf("%d %v", u.Node, u.Event)
	if u.Peer.IsValid() {
		s += " " + u.Peer.String()
	}
	switch u.Event {
	case bgproute.PeerUp:
		s += fmt.Sprintf(" local %v %v peer %v", u.Local, u.LocalID, u.PeerID)
	case bgproute.Withdrawn:
		s += fmt.Sprintf(" rib %d %v", u.RIB, u.Prefix)
	case bgproute.Announced:
		s += fmt.Sprintf(" rib %d %v %+v", u.RIB, u.Prefix, u.Route)
		if u.PathID != 0 {
			s += fmt.Sprintf(" path %d", u.PathID)
		}
	}
	return s
}

func newTestDecoder(t testing.TB, emit func(*bgproute.Update)) source.Decoder {
	d, err := Source.NewConfig().(*Config).NewDecoder(fabric(t), source.Output{Route: emit})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var local = netip.MustParseAddrPort("127.0.0.1:40000")

func TestSession(t *testing.T) {
	var got []string
	d := newTestDecoder(t, func(u *bgproute.Update) { got = append(got, describe(u)) })
	for _, m := range script(t) {
		d.Decode(1, local, m)
	}
	want := []string{
		"5 session up",
		"5 peer up 192.0.2.2 local 192.0.2.1 10.0.0.5 peer 10.0.0.9",
		"5 announced 192.0.2.2 rib 1 10.1.0.0/24 {NextHop:192.0.2.2 LocalPref:200 PathLen:2 Origin:2 Internal:false}",
		"5 announced 192.0.2.2 rib 1 0.0.0.0/0 {NextHop:192.0.2.2 LocalPref:200 PathLen:2 Origin:2 Internal:false}",
		"5 withdrawn 192.0.2.2 rib 0 10.1.0.0/24",
		"5 announced 192.0.2.2 rib 1 2001:db8::/64 {NextHop:fe80::2 LocalPref:100 PathLen:2 Origin:2 Internal:false}",
		"5 withdrawn 192.0.2.2 rib 1 2001:db8::/64",
		"5 end of RIB 192.0.2.2",
		"5 announced rib 2 10.1.0.0/24 {NextHop:192.0.2.2 LocalPref:100 PathLen:2 Origin:2 Internal:false}",
		"5 peer down 192.0.2.2",
		"5 session down",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("updates (- want, + got):\n%s", diff)
	}
	if c := d.Counters(); c.In != 12 || c.Out != 10 || lost(c, "other RIB") != 1 || lost(c, "other message") != 1 {
		t.Errorf("Counters = %+v; want 12 in, 10 used, one of another RIB and one of statistics", c)
	}
}

func lost(c source.Counters, reason string) uint64 {
	for _, l := range c.Losses {
		if l.Reason == reason {
			return l.Count
		}
	}
	return 0
}

// TestAdditionalPaths: path ids are read where both ends have agreed on them.
func TestAdditionalPaths(t *testing.T) {
	var got []string
	d := newTestDecoder(t, func(u *bgproute.Update) { got = append(got, describe(u)) })
	p := bgp.NewIPAddrPrefix(24, "10.1.0.0")
	p.SetPathLocalIdentifier(7)
	with := &bgp.MarshallingOption{AddPath: map[bgp.RouteFamily]bgp.BGPAddPathMode{bgp.RF_IPv4_UC: bgp.BGP_ADD_PATH_SEND}}
	d.Decode(1, local, initiation(t, ""))
	d.Decode(1, local, peerUp(t, "192.0.2.2", true))
	d.Decode(1, local, monitoring(t, header(0, 0, "192.0.2.2"), bgp.NewBGPUpdateMessage(nil, attributes("192.0.2.2"), []*bgp.IPAddrPrefix{p}), with))
	if want := "10.1.0.0/24 {NextHop:192.0.2.2 LocalPref:100 PathLen:2 Origin:2 Internal:false} path 7"; len(got) != 3 || !strings.HasSuffix(got[2], want) {
		t.Errorf("updates %q; want one that ends with %q", got, want)
	}
}

// TestStrangers: who is no switch, or does not say who it is, changes nothing; nor does the connection
// that a switch has left.
func TestStrangers(t *testing.T) {
	var got []string
	d := newTestDecoder(t, func(u *bgproute.Update) { got = append(got, describe(u)) })
	stranger, newer := netip.MustParseAddrPort("10.0.0.7:1"), netip.MustParseAddrPort("127.0.0.1:40001")
	up := peerUp(t, "192.0.2.2", false)
	short := slices.Clone(up[:len(up)-3])
	short[4] = byte(len(short))
	for _, one := range []struct {
		from   netip.AddrPort
		data   []byte
		reason string
	}{
		{local, up, "no initiation"},
		{stranger, initiation(t, ""), "unknown sender"},
		{local, initiation(t, "tor1"), translate.AddressNotAllowed.String()},
		{local, initiation(t, ""), ""},
		{newer, initiation(t, ""), ""},
		{local, up, "superseded"},
		{local, ended, ""},
		{newer, short, "malformed"},
		{newer, up[:len(up)-3], "malformed"},
		{newer, []byte{3}, "malformed"},
	} {
		before := lost(d.Counters(), one.reason)
		if d.Decode(1, one.from, one.data); one.reason != "" && lost(d.Counters(), one.reason) != before+1 {
			t.Errorf("%x from %v is not counted as %q", one.data, one.from, one.reason)
		}
	}
	if diff := cmp.Diff([]string{"5 session up", "5 session up", "5 gap"}, got); diff != "" {
		t.Errorf("updates (- want, + got):\n%s", diff)
	}
}

// doorkeeper refuses after a number of messages.
type doorkeeper struct {
	admits int
	why    translate.Refusal
}

func (d *doorkeeper) Datagram(model.Time, netip.Addr) translate.Refusal {
	if d.admits--; d.admits < 0 {
		return d.why
	}
	return translate.Admitted
}
func (d *doorkeeper) Refused(netip.Addr, translate.Refusal, int) {}

// TestListener: messages arrive in order, and a connection that ends without a Termination has
// one in what is recorded.
func TestListener(t *testing.T) {
	for name, tc := range map[string]struct {
		guard  source.Guard
		extra  []byte
		reason string
		want   int // messages recorded
	}{
		"closed":       {nil, nil, "", 12},
		"refused":      {&doorkeeper{3, translate.SourceRateLimit}, nil, translate.SourceRateLimit.String(), 4},
		"not BMP":      {nil, []byte("GET / HTTP/1.1"), "bad length", 12},
		"cut off":      {nil, []byte{3, 0, 0, 0, 99, 0, 1}, "", 12},
		"other length": {nil, []byte{3, 255, 0, 0, 0, 0}, "bad length", 12},
	} {
		t.Run(name, func(t *testing.T) {
			ends := make(chan struct{})
			d := newTestDecoder(t, func(u *bgproute.Update) {
				if u.Event == bgproute.SessionDown {
					close(ends)
				}
			})
			l, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), d, tc.guard)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			var taps int
			go func() {
				done <- l.Run(ctx, func(_ model.Time, _, _ netip.AddrPort, _ []byte, _ bool) { taps++ })
			}()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			all := script(t)
			var stream []byte
			for _, m := range all[:len(all)-1] {
				stream = append(stream, m...)
			}
			// The listener may close its end first, if it refuses.
			if _, err := c.Write(append(stream, tc.extra...)); err != nil && tc.guard == nil {
				t.Fatal(err)
			}
			c.Close()
			<-ends
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run = %v", err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			if tc.reason != "" && lost(l.Counters(), tc.reason) != 1 {
				t.Errorf("%d %s; want 1", lost(l.Counters(), tc.reason), tc.reason)
			}
			if taps != tc.want {
				t.Errorf("%d messages recorded; want %d", taps, tc.want)
			}
		})
	}
}

// FuzzDecode: no message makes the decoder panic, or emit a route that is no prefix.
func FuzzDecode(f *testing.F) {
	for _, m := range script(f) {
		f.Add(m)
	}
	up := peerUp(f, "192.0.2.2", true)
	f.Add(up)
	f.Fuzz(func(t *testing.T, m []byte) {
		d := newTestDecoder(t, func(u *bgproute.Update) {
			if (u.Event == bgproute.Announced || u.Event == bgproute.Withdrawn) && (!u.Prefix.IsValid() || u.Prefix != u.Prefix.Masked()) {
				t.Errorf("a route to %v", u.Prefix)
			}
		})
		d.Decode(1, local, initiation(t, "tor0"))
		d.Decode(1, local, up)
		d.Decode(1, local, m)
	})
}
