package control

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/topo"
)

// TestRouteDriftOpensAnIncident: a switch whose BGP sends packets elsewhere is an incident while
// it does, and one that lacks a next hop is none.
func TestRouteDriftOpensAnIncident(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(DefaultConfig(intentOf(t, f)), NoDevices{}, Output{})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBackend(c, nil, nil)
	id := func(name string) model.NodeID {
		n, _ := f.ByName(name)
		return n
	}
	leaf := f.Node(id("leaf0"))
	route := func(e bgproute.Event, by model.NodeID, host string, pathLen uint16) {
		u := bgproute.Update{At: c.now, Node: leaf.ID, Event: e}
		if e >= bgproute.PeerUp {
			u.Peer = f.Node(by).IPv4.Netip()
			u.Route = bgproute.Route{NextHop: u.Peer, LocalPref: bgproute.DefaultLocalPref, PathLen: pathLen}
		}
		if host != "" {
			u.Prefix = netip.PrefixFrom(f.Node(id(host)).IPv4.Netip(), 32)
		}
		c.IngestRoute(&u)
	}
	pass := func(d time.Duration) {
		for end := c.now.Add(d); c.now < end; {
			c.now = c.now.Add(50 * time.Millisecond)
			c.concludeRoutes(c.now)
			c.correlator.CloseQuiet(c.now)
		}
	}
	states := func(drift bool) (list []string) {
		rows, _ := b.Routes(f.Switches(), drift, 100)
		for _, r := range rows {
			if !slices.Contains(list, r.State) {
				list = append(list, r.State)
			}
		}
		return list
	}
	c.now = model.Time(time.Second)
	route(bgproute.SessionUp, 0, "", 0)
	for i := range leaf.Ports {
		peer := leaf.Ports[i].Peer.Node
		route(bgproute.PeerUp, peer, "", 0)
		for _, h := range f.Hosts() {
			if slices.Contains(c.cfg.Intent.At(0).NextHops(leaf.ID, f.Node(h).IPv4), leaf.Ports[i].ID) {
				route(bgproute.Announced, peer, f.Node(h).Name, 2)
			}
		}
		route(bgproute.EndOfRIB, peer, "", 0)
	}
	pass(10 * time.Second)
	if got := states(false); !slices.Equal(got, []string{"same"}) || len(c.correlator.OpenIncidents()) > 0 {
		t.Fatalf("routes are %v with %d incidents; want the intended ones, and none", got, len(c.correlator.OpenIncidents()))
	}

	spine := leaf.Ports[slices.IndexFunc(leaf.Ports, func(p topo.Port) bool { return f.Node(p.Peer.Node).Tier > leaf.Tier })].Peer.Node
	route(bgproute.Withdrawn, spine, "h12", 0)
	pass(10 * time.Second)
	if got := states(true); !slices.Equal(got, []string{"fewer-next-hops"}) || len(c.correlator.OpenIncidents()) > 0 {
		t.Errorf("routes that differ are %v with %d incidents; want fewer next hops, and none", got, len(c.correlator.OpenIncidents()))
	}
	route(bgproute.Announced, spine, "h12", 2)

	route(bgproute.Announced, id("tor1"), "h0", 1)
	pass(10 * time.Second)
	open := c.correlator.OpenIncidents()
	if len(open) != 1 || open[0].Cause != anomaly.WrongRoute || open[0].Location != c.portNamed(t, "leaf0", "tor1") || open[0].Sources[anomaly.Routes] == 0 {
		t.Fatalf("incidents %+v; want a wrong route at leaf0's port to tor1, by routes", open)
	}
	if got := states(true); !slices.Equal(got, []string{"other-next-hop"}) {
		t.Errorf("routes that differ are %v; want another next hop", got)
	}
	if _, omitted := b.Routes(f.Switches(), false, 1); omitted == 0 {
		t.Error("none is omitted beyond a limit of 1")
	}
	if err := c.Rebase(c.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	pass(10 * time.Second)
	if n := len(c.correlator.OpenIncidents()); n != 1 {
		t.Errorf("%d incidents after the clock was set; want one", n)
	}
	route(bgproute.Withdrawn, id("tor1"), "h0", 0)
	pass(10 * time.Second)
	if got := states(true); len(got) > 0 || len(c.correlator.OpenIncidents()) > 0 {
		t.Errorf("mended: routes that differ are %v with %d incidents; want none", got, len(c.correlator.OpenIncidents()))
	}
	if s := c.RouteStats(); s.Switches != 1 || s.Refused != 0 {
		t.Errorf("RouteStats = %+v; want one switch", s)
	}
}
