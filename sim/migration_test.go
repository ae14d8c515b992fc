package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

func (n *Network) moveAt(t testing.TB, at time.Duration, m Migration) {
	t.Helper()
	if err := n.Migrate(model.Time(at), m); err != nil {
		t.Fatal(err)
	}
}

// balance says by how many packets the books are off; the network must be idle.
func (n *Network) balance() (off int64) {
	off = n.Counts.Originated - n.Counts.Delivered - n.Counts.Consumed
	for _, h := range n.hosts {
		for _, p := range h.ports {
			off += p.TxPkts
		}
	}
	for _, d := range n.Counts.Drops {
		off -= d
	}
	return off
}

// TestMovedFlowsGoOn migrates an address away under flows to it and from it,
// and home again: they end, at the host where the address then is.
func TestMovedFlowsGoOn(t *testing.T) {
	for name, f := range map[string]traffic.Flow{
		"rdma to it":   {Src: 4, To: vm4, Priority: 3},
		"rdma from it": {Src: 0, From: vm4, Dst: 4, Priority: 3},
		"tcp to it":    {Src: 4, To: vm4, Transport: traffic.TCP},
		"tcp from it":  {Src: 0, From: vm4, Dst: 4, Transport: traffic.TCP},
		"its own host": {Src: 3, To: vm4, Priority: 3}, // where it migrates to
		"its old host": {Src: 0, To: vm4, Priority: 3, Start: 500_000},
		"starts later": {Src: 0, From: vm4, Dst: 4, Priority: 3, Start: 500_000},
		"udp from it":  {Src: 0, From: vm4, Dst: 4, Transport: traffic.UDP},
		"paced":        {Src: 0, From: vm4, Dst: 4, Priority: 3, Rate: 10 * model.Gbps},
		"outside":      {Src: 8, From: outside4, To: vm4, Transport: traffic.TCP},
	} {
		t.Run(name, func(t *testing.T) {
			n := yard(t, func(c *Config) { c.RTO = time.Millisecond })
			n.moveAt(t, 200*time.Microsecond, Migration{Addr: vm4, To: 3})
			n.moveAt(t, 900*time.Microsecond, Migration{Addr: vm4, To: 0, Delay: 20 * time.Microsecond, Spread: 20 * time.Microsecond})
			f.Bytes = 12_000_000
			if f.Start == 0 {
				f.Start = 1000
			}
			if name == "its old host" {
				n.run(400 * time.Microsecond) // before, it cannot send to itself
			}
			n.add(t, f)
			fl := n.flows[0]
			end := func() *Host { // where the address is
				if f.From == vm4 {
					return fl.src
				}
				return fl.dst
			}
			n.run(600 * time.Microsecond)
			acked := max(fl.acked, fl.expected)
			if end().Name != "h3" || acked == 0 || n.Host(3).ports[0].TxPkts == 0 {
				t.Errorf("the flow is at %s, %d bytes on, after the first move; want h3", end().Name, acked)
			}
			n.run(20 * time.Second)
			if r := n.Records(); len(r) != 1 || !r[0].Finished || end().Name != "h0" || f.Transport != traffic.UDP && fl.expected != fl.size {
				t.Errorf("records %+v, at %s; want it finished, at h0", r, end().Name)
			}
			if off := n.balance(); off != 0 || !n.Idle() {
				t.Errorf("%d packets are missing, idle %v", off, n.Idle())
			}
			if got := fl.started; name == "starts later" && got != n.nextWindow(500*engine.Microsecond) {
				t.Errorf("the flow begins at %v; want at 500 µs, as soon as its new host can know", got)
			}
		})
	}
}

// TestMovedSenderLeavesNothingBehind migrates a sender next to its receiver,
// while no table follows: its packets take the short path, and its timer is the
// new host's.
func TestMovedSenderLeavesNothingBehind(t *testing.T) {
	n := yard(t, nil)
	n.add(t, traffic.Flow{Src: 0, From: vm4, Dst: 4, Stop: 1e12, Priority: 3, Rate: 10 * model.Gbps, Start: 1000})
	n.moveAt(t, 200*time.Microsecond, Migration{Addr: vm4, To: 3, Delay: time.Second})
	n.run(250 * time.Microsecond)
	fromSpines := func() (data int64) {
		for _, p := range n.Switch(n.named(t, "tor1")).ports {
			if p.peer.sw != nil {
				data += p.peer.TxPkts
			}
		}
		return data
	}
	before, sent := fromSpines(), n.Host(3).ports[0].TxPkts
	n.run(400 * time.Microsecond)
	if got := fromSpines() - before; got != 0 || n.Host(3).ports[0].TxPkts == sent {
		t.Errorf("%d packets come to tor1 from above, %d from h3; want none and some", got, n.Host(3).ports[0].TxPkts-sent)
	}
	f := n.flows[0]
	for _, h := range n.hosts {
		timers := 0
		for _, tm := range h.node.timers {
			if tm.kind == flowTimeout && tm.gen == f.timerGen {
				timers++
			}
		}
		if (timers == 1) != (h == f.src) || timers > 1 {
			t.Errorf("%s has %d timers of the flow at %s; want 1 there alone", h.Name, timers, f.src.Name)
		}
	}
}

// TestTablesFollowAMove lets some switches take their time.
func TestTablesFollowAMove(t *testing.T) {
	for name, tc := range map[string]struct {
		late []string
		want Reason
	}{
		"no time":   {nil, DropHost}, // what was in flight then
		"blackhole": {[]string{"tor0", "spine0", "spine1", "tor1"}, DropHost},
		"loop":      {[]string{"spine0", "spine1", "tor1"}, DropTTL},
	} {
		t.Run(name, func(t *testing.T) {
			n := yard(t, nil)
			n.add(t, traffic.Flow{Src: 4, To: vm4, Stop: 1e12, Priority: 3, Rate: model.Gbps, Start: 1000})
			m := Migration{Addr: vm4, To: 2, Late: map[model.NodeID]time.Duration{}}
			if name == "loop" {
				m.To = 5 // below another switch: tor0 sends packets up that come down again
			}
			for _, s := range tc.late {
				m.Late[n.named(t, s)] = time.Millisecond
			}
			n.moveAt(t, time.Millisecond, m)
			n.run(time.Millisecond + 20*time.Microsecond)
			early := n.Counts.Drops[tc.want]
			n.run(1900 * time.Microsecond)
			if got := n.Counts.Drops[tc.want] - early; (got > 20) != (tc.late != nil) {
				t.Errorf("drops %v before tables follow; want many for %v: %v", n.Counts.Drops, tc.want, tc.late != nil)
			}
			for r, count := range n.Counts.Drops {
				if count != 0 && Reason(r) != tc.want && Reason(r) != DropHost {
					t.Errorf("%d drops for %v; want %v", count, Reason(r), tc.want)
				}
			}
			n.run(2100 * time.Microsecond)
			before := n.Counts.Drops
			n.run(30 * time.Millisecond)
			f := n.flows[0]
			if n.Counts.Drops != before || f.dst.ID != m.To || f.acked*8/1e6 < 20 {
				t.Errorf("drops %v, then %v; %d bytes acknowledged at %s; want no more drops and 1 Gb/s", before, n.Counts.Drops, f.acked, f.dst.Name)
			}
		})
	}
}

// TestNewestMoveWins holds that a switch whose table follows late does not undo
// a later migration.
func TestNewestMoveWins(t *testing.T) {
	n := yard(t, nil)
	tor0 := n.named(t, "tor0")
	n.moveAt(t, 0, Migration{Addr: vm4, To: 3, Late: map[model.NodeID]time.Duration{tor0: time.Millisecond}})
	n.moveAt(t, 100*time.Microsecond, Migration{Addr: vm4, To: 1})
	n.run(2 * time.Millisecond)
	key := model.FlowKey{Src: n.fabric.Node(2).IPv4, Dst: vm4, Proto: model.UDP}
	for _, sw := range n.switches {
		out, ok := sw.NextHop(key)
		if !ok {
			t.Errorf("%s has no route to the address", sw.Name)
			continue
		}
		if want := n.routes.NextHops(sw.ID, n.fabric.Node(1).IPv4); !slices.Contains(want, out.ID) {
			t.Errorf("%s sends packets to the address by port %d; want one of ports %v, to h1", sw.Name, out.ID, want)
		}
	}
}

// TestBackendsMove migrates the only backend of a service.
func TestBackendsMove(t *testing.T) {
	n := yardOf(t, nil)
	n.serve(t, Service{VIP: vip4, Backends: []model.Addr{vm4}})
	n.add(t, traffic.Flow{Src: 1, To: vip4, Bytes: 10_000_000, Transport: traffic.TCP, Start: 1000})
	n.moveAt(t, 300*time.Microsecond, Migration{Addr: vm4, To: 5, Delay: 10 * time.Microsecond})
	n.run(200 * time.Microsecond)
	if n.flows[0].dst.Name != "h0" || n.flows[0].expected == 0 {
		t.Errorf("%d bytes at %s before the move; want some at h0", n.flows[0].expected, n.flows[0].dst.Name)
	}
	n.run(time.Second)
	if n.Finished != 1 || n.flows[0].dst.Name != "h5" || n.balance() != 0 {
		t.Errorf("%d flows finished at %s, books off by %d; want one at h5, 0", n.Finished, n.flows[0].dst.Name, n.balance())
	}
}

func TestMigrationErrors(t *testing.T) {
	n := yard(t, nil)
	for name, m := range map[string]Migration{
		"a host's own":  {Addr: n.fabric.Node(1).IPv4, To: 2},
		"virtual":       {Addr: vip4, To: 2},
		"outside":       {Addr: outside4, To: 2},
		"to a switch":   {Addr: vm4, To: n.named(t, "tor0")},
		"to a mux":      {Addr: vm4, To: n.named(t, "mux0")},
		"to nowhere":    {Addr: vm4, To: 999},
		"back in time":  {Addr: vm4, To: 2, Delay: -1},
		"late before":   {Addr: vm4, To: 2, Late: map[model.NodeID]time.Duration{n.named(t, "tor0"): -1}},
		"host as late":  {Addr: vm4, To: 2, Late: map[model.NodeID]time.Duration{1: 1}},
		"no such late":  {Addr: vm4, To: 2, Late: map[model.NodeID]time.Duration{999: 1}},
		"nobody's":      {To: 2},
		"below nothing": {Addr: vm4, To: 2, Spread: -1},
	} {
		if err := n.Migrate(0, m); err == nil {
			t.Errorf("%s: Migrate(%+v) = nil; want an error", name, m)
		}
	}
}

// TestMovesLoseNoPacket draws flows of all sorts and migrations that overlap:
// all flows end, and every packet has one end. Where Run stops must not matter.
func TestMovesLoseNoPacket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var flows []traffic.Flow
		for range rapid.IntRange(1, 8).Draw(rt, "flows") {
			f := traffic.Flow{
				Src: model.NodeID(rapid.IntRange(1, 5).Draw(rt, "src")), Start: model.Time(rapid.IntRange(0, 200_000).Draw(rt, "start")),
				Bytes: model.Bytes(rapid.IntRange(1, 500_000).Draw(rt, "bytes")), Priority: model.Priority(rapid.SampledFrom([]int{0, 3}).Draw(rt, "priority")),
				Transport: traffic.Transport(rapid.IntRange(0, 2).Draw(rt, "transport")),
			}
			switch rapid.IntRange(0, 3).Draw(rt, "to") {
			case 0:
				f.To = vm4
			case 1:
				f.To = vip4
			case 2:
				f.To = outside4
			case 3:
				f.Src, f.From, f.Dst = 0, vm4, f.Src
			}
			flows = append(flows, f)
		}
		type step struct {
			at time.Duration
			m  Migration
		}
		var moves []step
		for range rapid.IntRange(0, 4).Draw(rt, "moves") {
			moves = append(moves, step{
				time.Duration(rapid.IntRange(0, 300_000).Draw(rt, "at")),
				Migration{
					Addr: vm4, To: model.NodeID(rapid.IntRange(0, 5).Draw(rt, "host")),
					Delay: time.Duration(rapid.IntRange(0, 100_000).Draw(rt, "delay")), Spread: time.Duration(rapid.IntRange(0, 100_000).Draw(rt, "spread")),
				},
			})
		}
		run := func(slice engine.Time) (Counts, int, *Network) {
			n := yardOf(t, func(c *Config) { c.RTO = 500 * time.Microsecond })
			n.serve(t, Service{VIP: vip4, Backends: []model.Addr{vm4, n.fabric.Node(2).IPv4, n.fabric.Node(4).IPv4}, Delay: muxDelay})
			n.add(t, flows...)
			for _, s := range moves {
				n.moveAt(t, s.at, s.m)
			}
			for n.Now() < 2*engine.Millisecond {
				n.Run(min(n.Now()+slice, 2*engine.Millisecond))
			}
			n.Run(300 * engine.Second)
			return n.Counts, n.Finished, n
		}
		counts, finished, n := run(2 * engine.Millisecond)
		if off := n.balance(); finished != len(flows) || off != 0 || !n.Idle() {
			rt.Fatalf("%d of %d flows finished, books off by %d, idle %v, %+v; want all, 0, true", finished, len(flows), off, n.Idle(), counts)
		}
		for _, f := range n.flows {
			if f.spec.Transport != traffic.UDP && f.expected != f.size {
				rt.Fatalf("flow %d: the receiver has %d of %d bytes", f.id, f.expected, f.size)
			}
		}
		if other, _, _ := run(777_777); other != counts {
			rt.Fatalf("in slices %+v; want %+v", other, counts)
		}
	})
}

// TestMovesOutlastOtherChanges makes routing react to a link that is down after
// a migration, and holds that the history of intended routes gives the path at
// every time.
func TestMovesOutlastOtherChanges(t *testing.T) {
	n := yard(t, nil)
	tor0, tor1 := n.named(t, "tor0"), n.named(t, "tor1")
	n.moveAt(t, time.Millisecond, Migration{Addr: vm4, To: 5, Delay: 100 * time.Microsecond})
	n.At(2*engine.Millisecond, func() {
		cfg := n.Routes().Config()
		cfg.Down = []int{n.fabric.Port(n.portTo(t, "tor0", "spine0")).Link}
		routes, err := topo.NewRoutes(n.fabric, cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.SetIntendedRoutes(routes, nil)
	})
	n.moveAt(t, 3*time.Millisecond, Migration{Addr: vm4, To: 0})
	n.run(2500 * time.Microsecond)
	for port := range uint16(32) {
		key := model.FlowKey{Src: n.fabric.Node(1).IPv4, Dst: vm4, SrcPort: port, Proto: model.UDP}
		if out, ok := n.Switch(tor0).NextHop(key); !ok || out.peer.Node != n.named(t, "spine1") {
			t.Fatalf("%v leaves tor0 by port %d; want to spine1, the remaining path", key, out.ID)
		}
	}
	n.run(4 * time.Millisecond)
	for at, want := range map[model.Time]model.NodeID{0: tor0, 999_999: tor0, 1e6: tor1, 1_050_000: tor1, 25e5: tor1, 3e6: tor0} {
		if got := n.Intent().At(at).ExpectedLastHops(vm4); !slices.Equal(got, []model.NodeID{want}) {
			t.Errorf("at %v packets to the address may end at %v; want %d", at, got, want)
		}
	}
	if got := n.Intent().At(25e5).Config().Down; len(got) != 1 || len(n.Routes().Config().Down) != 1 || len(n.Intent().At(15e5).Config().Down) != 0 {
		t.Errorf("links down at 2.5 ms: %v; want one, also after the move back, and none before", got)
	}
}
