package trace

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

func TestEnds(t *testing.T) {
	w := pathTo(t, 15)
	for name, tc := range map[string]struct {
		hops []int // of the path, by TTL 64 and less
		end  End
		lost int
	}{
		"whole":                  {[]int{0, 1, 2, 3, 4}, Arrived, 0},
		"in any order":           {[]int{3, 0, 4, 2, 1}, Arrived, 0},
		"a mirror is lost":       {[]int{0, 1, 3, 4}, Arrived, 1},
		"two mirrors are lost":   {[]int{0, 3, 4}, Arrived, 2},
		"the first is lost":      {[]int{1, 2, 3, 4}, Arrived, 1},
		"only the last":          {[]int{4}, Arrived, 1},
		"lost at the spine":      {[]int{0, 1, 2}, Lost, 0},
		"lost at the first":      {[]int{0}, Lost, 0},
		"lost, and a mirror too": {[]int{0, 2}, Lost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			list, _ := gather(t, noPorts(), func(a *Assembler) {
				for i, hop := range tc.hops {
					a.AddMirror(model.Time(i), seen(w[hop], 15, uint8(64-hop), 7, model.Time(1000*hop)))
				}
			})
			if len(list) != 1 {
				t.Fatalf("%d traces; want 1", len(list))
			}
			got := list[0]
			var want []model.NodeID
			slices.Sort(tc.hops)
			for _, hop := range tc.hops {
				want = append(want, w[hop])
			}
			if diff := cmp.Diff(want, switches(got)); diff != "" || got.End != tc.end || got.MirrorsLost != tc.lost {
				t.Errorf("%v, %d mirrors lost, by %v; want %v, %d, %v", got.End, got.MirrorsLost, switches(got), tc.end, tc.lost, want)
			}
		})
	}
}

func switches(t *Trace) (list []model.NodeID) {
	for i := range t.Hops {
		list = append(list, t.Hops[i].Switch)
	}
	return list
}

// TestOutPortsTell: a last hop that has no route, or sends the packet to the
// wrong host, did not deliver it.
func TestOutPortsTell(t *testing.T) {
	tor := fabric.Node(15).Ports[0].Peer
	for out, want := range map[model.PortID]End{tor.Port: Arrived, 0: Lost, 3 - tor.Port: Lost} {
		list, _ := gather(t, DefaultConfig(), func(a *Assembler) {
			m := seen(tor.Node, 15, 60, 7, 0)
			m.Out = out
			a.AddMirror(0, m)
		})
		if list[0].End != want {
			t.Errorf("by port %d it %v; want %v", out, list[0].End, want)
		}
	}
}

// TestRetransmissionIsNoLoop: a packet that left a loop with few hops to live, and its
// retransmission, are two packets at the switch of their receiver. One that comes back from
// a port to another switch loops.
func TestRetransmissionIsNoLoop(t *testing.T) {
	tor := fabric.Node(15).Ports[0].Peer
	for out, want := range map[model.PortID]End{tor.Port: Arrived, 3: Looped} {
		list, _ := gather(t, DefaultConfig(), func(a *Assembler) {
			for i, ttl := range []uint8{60, 42} {
				m := seen(tor.Node, 15, ttl, 7, model.Time(i))
				m.Out = out
				a.AddMirror(model.Time(i), m)
			}
		})
		if list[0].End != want {
			t.Errorf("twice by port %d it %v; want %v", out, list[0].End, want)
		}
	}
}

// TestLoops: twice at a device is a loop only with a smaller TTL and in one
// segment of the path.
func TestLoops(t *testing.T) {
	tor := fabric.Node(0).Ports[0].Peer.Node
	leaf := fabric.Node(tor).Ports[2].Peer.Node
	type visit struct {
		at      model.NodeID
		headers []header
	}
	a, b := ipOf(0), ipOf(15)
	own := func(id model.NodeID) model.Addr { return fabric.Node(id).IPv4 }
	for name, tc := range map[string]struct {
		visits []visit
		loop   bool
	}{
		"round and round":   {[]visit{{tor, []header{{a, b, 64}}}, {leaf, []header{{a, b, 63}}}, {tor, []header{{a, b, 62}}}}, true},
		"in a tunnel":       {[]visit{{tor, []header{{a, b, 64}, {a, b, 9}}}, {leaf, []header{{a, b, 63}, {a, b, 9}}}, {tor, []header{{a, b, 62}, {a, b, 9}}}}, true},
		"to a mux and back": {[]visit{{tor, []header{{a, b, 64}}}, {tor, []header{{ipOf(1), b, 64}, {a, b, 62}}}, {leaf, []header{{ipOf(1), b, 63}, {a, b, 62}}}}, false},
		"a probe there and back": {[]visit{
			{tor, []header{{a, own(tor), 64}, {a, own(leaf), 64}, {a, own(tor), 64}, {a, b, 64}}},
			{leaf, []header{{a, own(leaf), 63}, {a, own(tor), 64}, {a, b, 64}}},
			{tor, []header{{a, own(tor), 63}, {a, b, 64}}},
			{leaf, []header{{a, b, 63}}},
		}, false},
		"sent again": {[]visit{{tor, []header{{a, b, 64}}}, {leaf, []header{{a, b, 63}}}, {tor, []header{{a, b, 64}}}, {leaf, []header{{a, b, 63}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			list, _ := gather(t, noPorts(), func(x *Assembler) {
				for i, v := range tc.visits {
					f := frame(v.headers, 1, 7, []byte("payload"))
					x.AddMirror(0, &mirror.Mirror{Switch: v.at, Time: model.Time(i), Length: uint16(len(f)), Frame: f})
				}
			})
			if len(list) != 1 {
				t.Fatalf("%d traces; want one", len(list))
			}
			if got := list[0].End == Looped; got != tc.loop {
				t.Errorf("%v, hops %+v; want a loop %v", list[0].End, list[0].Hops, tc.loop)
			}
		})
	}
}

// TestDetours: a packet that looped and arrived was in flight while routes
// were put right; one that did not makes a loop of both.
func TestDetours(t *testing.T) {
	tor := fabric.Node(0).Ports[0].Peer.Node
	leaf := fabric.Node(tor).Ports[2].Peer.Node
	last := fabric.Node(15).Ports[0].Peer.Node
	a, b := ipOf(0), ipOf(15)
	list, _ := gather(t, noPorts(), func(x *Assembler) {
		for id, path := range [][]model.NodeID{{tor, leaf, tor, leaf, last}, {tor, leaf, tor, leaf}} {
			for i, sw := range path {
				f := frame([]header{{a, b, uint8(64 - i)}}, 1, uint16(id), []byte("payload"))
				x.AddMirror(0, &mirror.Mirror{Switch: sw, Time: model.Time(i), Length: uint16(len(f)), Frame: f})
			}
		}
	})
	if len(list) != 2 {
		t.Fatalf("%d traces; want two", len(list))
	}
	slices.SortFunc(list, func(a, b *Trace) int { return int(a.IPID) - int(b.IPID) })
	j, err := NewJudge(DefaultJudgeConfig(), fabric)
	if err != nil {
		t.Fatal(err)
	}
	for i, detour := range []bool{true, false} {
		j.AddTrace(list[i])
		got := j.Findings()
		if len(got) != 1 || got[0].Kind != Loop || got[0].Ended != uint64(i+1) || got[0].Escaped != 1 || got[0].Detour() != detour {
			t.Errorf("after %d packets: %+v; want a finding of all that looped, one that arrived, a detour: %v", i+1, got, detour)
		}
	}
}

// TestRoutesOfItsTime: what was right before a change is right, and what
// happens around it is not judged.
func TestRoutesOfItsTime(t *testing.T) {
	b := topo.NewBuilder("two racks")
	guest := netip.MustParsePrefix("10.99.0.0/24")
	h0 := b.AddNode(topo.NodeSpec{Name: "h0", Pod: topo.NoPod})
	h1 := b.AddNode(topo.NodeSpec{Name: "h1", Pod: topo.NoPod, Nets: []netip.Prefix{guest}})
	after := b.AddNode(topo.NodeSpec{Name: "a", Role: topo.ToR, Pod: topo.NoPod})
	before := b.AddNode(topo.NodeSpec{Name: "b", Role: topo.ToR, Pod: topo.NoPod})
	spine := b.AddNode(topo.NodeSpec{Name: "s", Role: topo.Spine, Pod: topo.NoPod})
	for _, l := range [][2]model.NodeID{{h0, after}, {h1, before}, {after, spine}, {before, spine}} {
		b.Connect(l[0], l[1], topo.DefaultLinks().Fabric)
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	old, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	to := model.AddrOf(netip.MustParseAddr("10.99.0.5"))
	r, err := topo.NewRoutes(f, topo.RouteConfig{Moved: map[model.Addr]model.NodeID{to: h0}})
	if err != nil {
		t.Fatal(err)
	}
	history := topo.NewIntent(old)
	const change = model.Time(10 * time.Second)
	if err := history.Set(change, r); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		at   model.NodeID
		when model.Time
		end  End
	}{
		"old location, before":     {before, change - 1, Arrived},
		"old location, just after": {before, change + 1000, Arrived},
		"old location, long after": {before, change + model.Time(5*time.Second), Lost},
		"new location, before":     {after, change - model.Time(time.Second), Lost},
		"new location, after":      {after, change + 1, Arrived},
		"nowhere, just after":      {spine, change + 1, Unsettled},
	} {
		var got End
		a, err := NewAssembler(noPorts(), history, func(tr *Trace) { got = tr.End })
		if err != nil {
			t.Fatal(err)
		}
		packet := frame([]header{{f.Node(h1).IPv4, to, 60}}, 1, 7, nil)
		a.AddMirror(tc.when, &mirror.Mirror{Switch: tc.at, Frame: packet, Length: uint16(len(packet))})
		a.Flush()
		if got != tc.end {
			t.Errorf("%s: %v; want %v", name, got, tc.end)
		}
	}
}

// TestPacketsThatLeaveALoop: a packet whose switch sends it out of the loop at its
// second visit was in flight while routes were put right, wherever it is lost later.
func TestPacketsThatLeaveALoop(t *testing.T) {
	tor := fabric.Node(0).Ports[0].Peer.Node
	up := fabric.Node(tor).Ports[2]
	leaf := fabric.Node(up.Peer.Node)
	back, out := up.Peer.Port, leaf.Ports[len(leaf.Ports)-1].ID
	for last, detour := range map[model.PortID]bool{back: false, out: true} {
		list, _ := gather(t, DefaultConfig(), func(x *Assembler) {
			for i, hop := range []model.Port{{Node: tor, Port: up.ID}, {Node: leaf.ID, Port: back}, {Node: tor, Port: up.ID}, {Node: leaf.ID, Port: last}} {
				f := frame([]header{{ipOf(0), ipOf(15), uint8(64 - i)}}, 1, 7, []byte("payload"))
				x.AddMirror(0, &mirror.Mirror{Switch: hop.Node, Out: hop.Port, Time: model.Time(i), Length: uint16(len(f)), Frame: f})
			}
		})
		j, err := NewJudge(DefaultJudgeConfig(), fabric)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			j.AddTrace(one)
		}
		if got := j.Findings(); len(got) != 1 || got[0].Kind != Loop || got[0].Detour() != detour {
			t.Errorf("last sent by port %d: %+v; want a loop, a detour: %v", last, got, detour)
		}
	}
}
