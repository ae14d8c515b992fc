package routeview

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/topo"
)

// lab is a fat-tree whose tor0 is monitored.
type lab struct {
	t      testing.TB
	fabric *topo.Fabric
	routes *topo.Routes
	view   *View
	board  *Board
	now    model.Time
}

func newLab(t testing.TB) *lab {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, fabric: f, routes: r, view: New(DefaultConfig(), f), board: NewBoard(f), now: 1e9}
}

func (l *lab) node(name string) *topo.Node {
	id, ok := l.fabric.ByName(name)
	if !ok {
		l.t.Fatalf("no node %s", name)
	}
	return l.fabric.Node(id)
}

func (l *lab) addr(name string) netip.Addr { return l.node(name).IPv4.Netip() }

func (l *lab) apply(sw string, u bgproute.Update) {
	u.At, u.Node = l.now, l.node(sw).ID
	l.view.Apply(&u)
}

// announce announces the address of a host by a neighbour, which is known by its loopback.
func (l *lab) announce(sw, by, host string, pathLen uint16) {
	a := l.addr(host)
	l.apply(sw, bgproute.Update{
		Event: bgproute.Announced, Peer: l.addr(by), Prefix: netip.PrefixFrom(a, 32),
		Route: bgproute.Route{NextHop: l.addr(by), LocalPref: bgproute.DefaultLocalPref, PathLen: pathLen},
	})
}

func (l *lab) withdraw(sw, by, host string) {
	l.apply(sw, bgproute.Update{Event: bgproute.Withdrawn, Peer: l.addr(by), Prefix: netip.PrefixFrom(l.addr(host), 32)})
}

// connect begins the session of a switch, with peers that have sent everything as intended.
func (l *lab) connect(sw string) {
	l.apply(sw, bgproute.Update{Event: bgproute.SessionUp})
	n := l.node(sw)
	for i := range n.Ports {
		peer := l.fabric.Node(n.Ports[i].Peer.Node)
		if !peer.Role.IsSwitch() {
			continue
		}
		l.apply(sw, bgproute.Update{Event: bgproute.PeerUp, Peer: peer.IPv4.Netip(), PeerID: peer.IPv4.Netip()})
		for _, h := range l.fabric.Hosts() {
			if slices.Contains(l.routes.NextHops(n.ID, l.fabric.Node(h).IPv4), n.Ports[i].ID) {
				l.announce(sw, peer.Name, l.fabric.Node(h).Name, 2)
			}
		}
		l.apply(sw, bgproute.Update{Event: bgproute.EndOfRIB, Peer: peer.IPv4.Netip()})
	}
}

// drifts lets time pass, and returns what has lasted.
func (l *lab) drifts(after time.Duration) (list []string) {
	l.compare()
	l.now += model.Time(after)
	l.compare()
	l.board.Drifts(func(d *Drift) { list = append(list, d.Kind.String()+": "+d.Text(l.fabric)) })
	return list
}

// compare hands tables to the board, as they are read by another process.
func (l *lab) compare() {
	l.view.Compare(l.now, l.routes)
	l.view.Tables(func(t *Table) {
		var read Table
		w := fieldcodec.NewWriter(nil)
		t.Code(w)
		r := fieldcodec.NewReader(w.Written())
		if read.Code(r); r.End() != nil {
			l.t.Fatalf("%+v is read with %v", t, r.End())
		}
		if err := l.board.Set(&read); err != nil {
			l.t.Error(err)
		}
	})
}

func (l *lab) want(what string, after time.Duration, want ...string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.drifts(after)); diff != "" {
		l.t.Errorf("%s (- want, + got):\n%s", what, diff)
	}
}

// TestDrift: each difference from the intended routes is found after it has lasted, and gone
// when it is mended.
func TestDrift(t *testing.T) {
	l := newLab(t)
	l.connect("tor0")
	l.connect("leaf0")
	l.want("as intended", time.Minute)

	l.withdraw("tor0", "leaf0", "h4")
	l.want("one of two next hops, at first", time.Second)
	l.want("one of two next hops", 5*time.Second, "fewer-next-hops: tor0 has a route (10.1.0.2/32) to h4 by leaf1 alone, intended: by leaf0, leaf1")
	l.withdraw("tor0", "leaf1", "h4")
	l.want("no next hop, at first", time.Second)
	l.want("no next hop", 5*time.Second, "no-route: tor0 has no route to h4 by BGP, intended: by leaf0, leaf1")
	l.announce("tor0", "leaf0", "h4", 2)
	l.announce("tor0", "leaf1", "h4", 2)
	l.want("mended", 0)

	l.announce("leaf0", "tor1", "h0", 1)
	l.want("a better route by another switch", 5*time.Second, "other-next-hop: leaf0 has a route (10.0.0.2/32) to h0 by tor1, intended: by tor0")
	l.announce("leaf0", "tor1", "h0", 2)
	l.want("an equal one, at first", 0)
	l.want("an equal one", 5*time.Second, "extra-next-hop: leaf0 has a route (10.0.0.2/32) to h0 by tor0, tor1, intended: by tor0")
	l.announce("leaf0", "tor1", "h0", 3)
	l.want("a worse one", time.Minute)

	l.apply("tor0", bgproute.Update{Event: bgproute.PeerDown, Peer: l.addr("leaf0")})
	l.apply("tor0", bgproute.Update{Event: bgproute.PeerDown, Peer: l.addr("leaf1")})
	l.want("no peer", 5*time.Second, "no-route: tor0 has no route to h2 and 13 other hosts by BGP, intended: by leaf0, leaf1")
	l.apply("tor0", bgproute.Update{Event: bgproute.Gap})
	l.want("a gap", 5*time.Second)
	l.apply("tor0", bgproute.Update{Event: bgproute.SessionDown})
	if l.want("no session", 5*time.Second); l.board.Rows(l.node("tor0").ID) != nil {
		t.Error("routes of a switch without a session are known")
	}
}

// TestFlappingIsNotDrift: a difference must last without a break.
func TestFlappingIsNotDrift(t *testing.T) {
	l := newLab(t)
	l.connect("tor0")
	for range 20 {
		l.withdraw("tor0", "leaf0", "h4")
		l.withdraw("tor0", "leaf1", "h4")
		l.want("withdrawn", 4*time.Second)
		l.announce("tor0", "leaf0", "h4", 2)
		l.announce("tor0", "leaf1", "h4", 2)
		l.want("announced", time.Second)
	}
}

// TestFirstRoutesAreAwaited: a switch is not judged before its peers have sent all that they had, or
// had time to.
func TestFirstRoutesAreAwaited(t *testing.T) {
	l := newLab(t)
	l.apply("tor0", bgproute.Update{Event: bgproute.SessionUp})
	for _, by := range []string{"leaf0", "leaf1"} {
		l.apply("tor0", bgproute.Update{Event: bgproute.PeerUp, Peer: l.addr(by)})
		l.announce("tor0", by, "h4", 2)
	}
	for range 59 {
		l.announce("tor0", "leaf0", "h4", 2) // the switch is still sending
		l.want("before the end of the RIB", time.Second)
	}
	l.announce("tor0", "leaf0", "h4", 2)
	l.want("after a minute, at first", time.Second)
	want := "no-route: tor0 has no route to h2 and 12 other hosts by BGP, intended: by leaf0, leaf1"
	l.want("after a minute", 5*time.Second, want)
	l.apply("tor0", bgproute.Update{Event: bgproute.PeerUp, Peer: netip.MustParseAddr("192.0.2.9")})
	l.want("another peer", 4*time.Second)
	l.drifts(time.Second)
	l.want("another peer that sends nothing", 5*time.Second, want)
}

// TestNextHopsOfSessions: interface addresses are those of the switch whose session has them, and
// link-local ones lead to the peer with the BGP identifier.
func TestNextHopsOfSessions(t *testing.T) {
	l := newLab(t)
	l.connect("tor0")
	a, link := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")
	prefix := netip.PrefixFrom(l.addr("h4"), 32)
	l.withdraw("tor0", "leaf1", "h4")
	announce := func(peer, hop netip.Addr) {
		l.apply("tor0", bgproute.Update{Event: bgproute.Announced, Peer: peer, Prefix: prefix, Route: bgproute.Route{NextHop: hop, LocalPref: bgproute.DefaultLocalPref, PathLen: 2}})
	}
	announce(a, a)
	l.want("an address of nobody", time.Minute)
	l.apply("leaf1", bgproute.Update{Event: bgproute.SessionUp})
	l.apply("leaf1", bgproute.Update{Event: bgproute.PeerUp, Peer: l.addr("tor0"), Local: a})
	l.want("an address of leaf1", 30*time.Second)
	row := l.board.Rows(l.node("tor0").ID)[0]
	if row.Kind != Same {
		t.Errorf("with leaf1's session: %+v; want all the same", row)
	}
	l.apply("tor0", bgproute.Update{Event: bgproute.Withdrawn, Peer: a, Prefix: prefix})
	l.apply("tor0", bgproute.Update{Event: bgproute.PeerUp, Peer: link, PeerID: l.addr("leaf1")})
	announce(link, link)
	l.apply("tor0", bgproute.Update{Event: bgproute.EndOfRIB, Peer: link})
	l.want("link-local", 30*time.Second)
	if row := l.board.Rows(l.node("tor0").ID)[0]; row.Kind != Same {
		t.Errorf("link-local: %+v; want all the same", row)
	}
}

// TestNearestRIBCounts: routes after the policy replace those before it, and a Loc-RIB shows one
// of several next hops.
func TestNearestRIBCounts(t *testing.T) {
	l := newLab(t)
	l.connect("tor0")
	chosen := bgproute.Update{Event: bgproute.Announced, RIB: bgproute.LocRIB, Route: bgproute.Route{NextHop: l.addr("leaf0"), LocalPref: 100}}
	for _, h := range l.fabric.Hosts() {
		chosen.Prefix = netip.PrefixFrom(l.fabric.Node(h).IPv4.Netip(), 32)
		l.apply("tor0", chosen)
	}
	l.apply("tor0", bgproute.Update{Event: bgproute.EndOfRIB, RIB: bgproute.LocRIB})
	l.withdraw("tor0", "leaf0", "h4") // of the RIB that no longer counts
	l.want("one of the intended", 2*time.Minute)
	l.apply("tor0", bgproute.Update{Event: bgproute.Withdrawn, RIB: bgproute.LocRIB, Prefix: netip.PrefixFrom(l.addr("h4"), 32)})
	l.want("none", 5*time.Second, "no-route: tor0 has no route to h4 by BGP, intended: by leaf0, leaf1")
}

// TestBounds: routes beyond the bound are refused, counted, and their switch is not judged.
func TestBounds(t *testing.T) {
	l := newLab(t)
	l.view.cfg.MaxSwitchRoutes = 10
	l.connect("tor0")
	if s := l.view.Stats(); s.Routes != 10 || s.Refused != 2*14-10 || s.Switches != 1 {
		t.Errorf("Stats = %+v; want 10 routes, and 18 refused", s)
	}
	l.want("not complete", time.Hour)
	l.apply("tor0", bgproute.Update{Event: bgproute.SessionDown})
	if s := l.view.Stats(); s.Routes != 0 {
		t.Errorf("%d routes after the session; want 0", s.Routes)
	}
}

// reference is the routes of one switch as a list, newest last.
type reference []bgproute.Update

func (r reference) apply(u bgproute.Update) reference {
	r = slices.DeleteFunc(r, func(o bgproute.Update) bool {
		return u.Event == bgproute.SessionUp || o.Peer == u.Peer && (u.Event == bgproute.PeerUp || u.Event == bgproute.PeerDown || o.Prefix == u.Prefix && o.PathID == u.PathID)
	})
	if u.Event == bgproute.Announced {
		r = append(r, u)
	}
	return r
}

// nextHops looks at all routes: those of the longest prefix, then the best of them.
func (r reference) nextHops(a netip.Addr) (list []netip.Addr) {
	bits := -1
	for i := range r {
		if r[i].Prefix.Contains(a) {
			bits = max(bits, r[i].Prefix.Bits())
		}
	}
	for i := range r {
		if !r[i].Prefix.Contains(a) || r[i].Prefix.Bits() != bits {
			continue
		}
		best := true
		for k := range r {
			if r[k].Prefix == r[i].Prefix && compareRoutes(&r[k].Route, &r[i].Route) < 0 {
				best = false
			}
		}
		if best {
			list = append(list, r[i].Route.NextHop)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// TestViewEqualsReference compares next hops after any updates with those of a list of all routes.
func TestViewEqualsReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t)
		l.apply("tor0", bgproute.Update{Event: bgproute.SessionUp})
		peers := []string{"leaf0", "leaf1", "h0", "h1"}
		var ref reference
		for range rapid.IntRange(1, 60).Draw(rt, "updates") {
			events := []bgproute.Event{bgproute.Announced, bgproute.Announced, bgproute.Announced, bgproute.Withdrawn, bgproute.PeerUp, bgproute.PeerDown}
			u := bgproute.Update{
				Event: rapid.SampledFrom(events).Draw(rt, "event"), Peer: l.addr(rapid.SampledFrom(peers).Draw(rt, "peer")),
				PathID: rapid.Uint32Range(0, 1).Draw(rt, "path id"),
				Route: bgproute.Route{
					NextHop: l.addr(rapid.SampledFrom(peers).Draw(rt, "next hop")), LocalPref: rapid.Uint32Range(100, 101).Draw(rt, "preference"),
					PathLen: rapid.Uint16Range(1, 2).Draw(rt, "path"), Internal: rapid.Bool().Draw(rt, "internal"),
				},
			}
			u.Prefix, _ = l.addr(rapid.SampledFrom([]string{"h4", "h5", "h6"}).Draw(rt, "host")).Prefix(rapid.SampledFrom([]int{0, 8, 24, 31, 32}).Draw(rt, "bits"))
			l.apply("tor0", u)
			ref = ref.apply(u)
		}
		sw := l.node("tor0").ID
		table := l.view.tables[sw]
		if table.routes != len(ref) || l.view.Stats().Routes != len(ref) {
			rt.Fatalf("%d routes, %d of all; want %d", table.routes, l.view.Stats().Routes, len(ref))
		}
		for _, h := range []string{"h4", "h5", "h6", "h15"} {
			var got []netip.Addr
			if e, ok := table.prefixes.Lookup(l.node(h).IPv4); ok {
				list, others := l.view.nextHops(sw, table, e)
				if others {
					rt.Fatalf("next hops of no neighbour")
				}
				for _, id := range list {
					got = append(got, l.fabric.Node(id).IPv4.Netip())
				}
			}
			slices.SortFunc(got, netip.Addr.Compare)
			if want := ref.nextHops(l.addr(h)); fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("next hops to %s = %v; want %v", h, got, want)
			}
		}
	})
}
