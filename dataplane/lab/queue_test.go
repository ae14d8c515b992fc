package lab_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// pair is a lab of one leaf and two hosts, without a collector.
type pair struct {
	t      *testing.T
	lab    *lab.Lab
	fabric *topo.Fabric
}

func newPair(t *testing.T) *pair {
	t.Helper()
	needsRoot(t)
	f, err := topo.LeafSpine(1, 1, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(lab.Config{
		Routes: r, Agent: agentConfig(t, netip.MustParseAddrPort("127.0.0.1:9")),
		List: func(id model.NodeID) dta.ListID { return dta.ListID(id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLab(t, l) })
	return &pair{t, l, f}
}

// toHost is the port of the leaf to a host.
func (p *pair) toHost(name string) model.Port {
	p.t.Helper()
	leaf, _ := p.fabric.ByName("leaf0")
	host, ok := p.fabric.ByName(name)
	if !ok {
		p.t.Fatalf("no host %s", name)
	}
	return model.Port{Node: leaf, Port: p.fabric.Node(leaf).PortsTo(host)[0]}
}

// send runs traffic until a condition holds.
func (p *pair) send(cfg lab.TrafficConfig, enough func(*lab.Traffic) bool) *lab.Traffic {
	p.t.Helper()
	traffic, err := lab.NewTraffic(p.lab, cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); traffic.Run(ctx) }()
	for began := time.Now(); !enough(traffic); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			break
		}
	}
	cancel()
	<-done
	if !enough(traffic) {
		p.t.Fatalf("not within %v", patience)
	}
	return traffic
}

// TestRateDropsWhatDoesNotFit limits a port to less than what is sent through it: its queue drops
// packets, and no other. A TCP connection adapts, and loses nothing.
func TestRateDropsWhatDoesNotFit(t *testing.T) {
	p := newPair(t)
	slow := p.toHost("h1")
	wide, err := p.lab.LimitRate(slow, 20*model.Mbps)
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := p.lab.LimitRate(slow, model.Mbps)
	if err != nil {
		t.Fatal(err)
	}
	drops := func(port model.Port) uint64 {
		n, err := p.lab.QueueDrops(port)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	traffic := p.send(lab.TrafficConfig{UDP: 4, IPv4: true, IPv6: true, Pause: time.Millisecond}, func(tr *lab.Traffic) bool { return drops(slow) >= 100 })
	defer traffic.Close()
	lost := uint64(0)
	for _, f := range traffic.Flows() {
		n := f.Sent.Load() - f.Received.Load()
		if to := p.fabric.Node(f.To).Name; to != "h1" && n > 0 {
			t.Errorf("%d packets to %s lost; want none", n, to)
		}
		lost += n
	}
	// The leaf itself sends multicast listener reports (RFC 3810) and a neighbour solicitation
	// (RFC 4862) as it comes up, which may be dropped as well.
	const own = 4
	if n := drops(slow); n < lost || n > lost+own {
		t.Errorf("the queue dropped %d packets, and %d are lost; want the same, and %d packets of the leaf's at most", n, lost, own)
	}
	t.Logf("the queue dropped %d packets, %d of them of the traffic", drops(slow), lost)
	for _, r := range []model.Rate{1, 1000 * 1000 * model.Mbps} {
		if _, err := p.lab.LimitRate(slow, r); err == nil || !strings.Contains(err.Error(), "want at least") {
			t.Errorf("LimitRate(%v) = %v; want an error with the range", r, err)
		}
	}
	if err := narrow(); err != nil { // 20 Mb/s again
		t.Fatal(err)
	}
	streams := p.send(lab.TrafficConfig{TCP: 2, IPv4: true, IPv6: true, Pause: time.Millisecond}, func(tr *lab.Traffic) bool {
		return !slices.ContainsFunc(tr.Connections(), func(c *lab.Connection) bool { return c.Received.Load() < 100_000 })
	})
	defer streams.Close()
	if err := wide(); err != nil {
		t.Error(err)
	}
	for _, c := range streams.Connections() {
		if err := c.Err(); err != nil && !errors.Is(err, lab.ErrSentAgain) || c.Received.Load() != c.Sent.Load() || c.Damaged.Load() {
			t.Errorf("connection of %d to %d: %d bytes sent, %d received, %v; want all", c.From, c.To, c.Sent.Load(), c.Received.Load(), err)
		}
	}
}

// TestCorruptPacketsAreNotDelivered damages packets on their way: receivers drop them by their
// checksums, and TCP sends them again.
func TestCorruptPacketsAreNotDelivered(t *testing.T) {
	p := newPair(t)
	// So many that of 140 segments, and of 200 packets, some are damaged, and so few that no
	// segment is damaged so often that TCP waits for minutes.
	bad, err := p.lab.Corrupt(p.toHost("h1"), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	h1, _ := p.fabric.ByName("h1")
	traffic := p.send(lab.TrafficConfig{UDP: 1, TCP: 1, IPv4: true, IPv6: true, Pause: 2 * time.Millisecond}, func(tr *lab.Traffic) bool {
		return !slices.ContainsFunc(tr.Connections(), func(c *lab.Connection) bool { return c.Received.Load() < 200_000 }) &&
			!slices.ContainsFunc(tr.Flows(), func(f *lab.Flow) bool { return f.Key.Proto == model.UDP && f.Sent.Load() < 200 })
	})
	defer traffic.Close()
	if err := bad.Close(); err != nil {
		t.Error(err)
	}
	for _, f := range traffic.Flows() {
		if f.Key.Proto != model.UDP {
			continue
		}
		sent, received := f.Sent.Load(), f.Received.Load()
		if f.Damaged.Load() > 0 || (received == sent) != (f.To != h1) {
			t.Errorf("%v: %d sent, %d received, %d damaged; want losses to h1 alone, and none damaged", f.Key, sent, received, f.Damaged.Load())
		}
	}
	for _, c := range traffic.Connections() {
		if c.Damaged.Load() || c.Received.Load() != c.Sent.Load() || c.To == h1 && c.Again.Load() == 0 && c.Err() == nil {
			t.Errorf("connection of %d to %d: %d bytes sent, %d received, damaged: %v, %d segments again, %v; want all bytes, and segments to h1 again",
				c.From, c.To, c.Sent.Load(), c.Received.Load(), c.Damaged.Load(), c.Again.Load(), c.Err())
		}
	}
	if _, err := p.lab.Corrupt(model.Port{Node: h1, Port: p.fabric.Node(h1).Ports[0].ID}, 0.5); err == nil || !strings.Contains(err.Error(), "want a switch") {
		t.Errorf("Corrupt of a host = %v; want an error", err)
	}
}

// received reports whether every flow has received packets.
func received(tr *lab.Traffic) bool {
	return !slices.ContainsFunc(tr.Flows(), func(f *lab.Flow) bool { return f.Received.Load() == 0 })
}

// TestDelay delays a port where the kernel can, and says that it cannot elsewhere.
func TestDelay(t *testing.T) {
	p := newPair(t)
	const delay = 50 * time.Millisecond
	if _, err := p.lab.Delay(p.toHost("h1"), delay); errors.Is(err, lab.ErrNoNetem) {
		t.Log(err)
		// The port works as before.
		traffic := p.send(lab.TrafficConfig{UDP: 1, IPv4: true, Pause: 2 * time.Millisecond}, received)
		defer traffic.Close()
		return
	} else if err != nil {
		t.Fatal(err)
	}
	traffic := p.send(lab.TrafficConfig{TCP: 1, IPv4: true, Pause: 2 * time.Millisecond}, func(tr *lab.Traffic) bool {
		return !slices.ContainsFunc(tr.Connections(), func(c *lab.Connection) bool { return c.Received.Load() == 0 })
	})
	defer traffic.Close()
	for _, c := range traffic.Connections() {
		if c.Err() != nil || c.LeastRTT < delay {
			t.Errorf("connection of %d to %d: RTT %v, %v; want at least %v", c.From, c.To, c.LeastRTT, c.Err(), delay)
		}
	}
}

// TestOnlyOwnNamespacesAreRemoved: one that another has made stays, and is not taken.
func TestOnlyOwnNamespacesAreRemoved(t *testing.T) {
	needsRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	foreign, err := netns.NewNamed("weft-leaf0")
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := netns.Set(before); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := netns.DeleteNamed("weft-leaf0"); err != nil {
			t.Error(err)
		}
	}()
	_, err = lab.Up(lab.Config{
		Routes: routes(t), Agent: agentConfig(t, netip.MustParseAddrPort("127.0.0.1:9")),
		List: func(id model.NodeID) dta.ListID { return dta.ListID(id) },
	})
	if err == nil || !strings.Contains(err.Error(), "weft-leaf0 exists") {
		t.Errorf("Up = %v; want an error that names the namespace", err)
	}
	if left, err := lab.Remove(); err != nil || len(left) != 0 {
		t.Errorf("Remove = %v, %v; want nothing left", left, err)
	}
	if _, err := os.Stat(filepath.Join("/run/netns", "weft-leaf0")); err != nil {
		t.Errorf("the namespace of another: %v; want it there", err)
	}
}
