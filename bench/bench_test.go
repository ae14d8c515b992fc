package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/packet"
)

func TestLessJudgesByRatio(t *testing.T) {
	for _, tc := range []struct {
		value, peer, goal float64
		pass              bool
	}{{10, 60, 5, true}, {10, 40, 5, false}, {0, 40, 5, false}} {
		if r := lowerIsBetter("x", tc.value, "ns", "p", tc.peer, tc.goal); r.Pass != tc.pass {
			t.Errorf("less(%v against %v, goal %v) = %+v; want pass %v", tc.value, tc.peer, tc.goal, r, tc.pass)
		}
	}
}

// TestSidesAgree checks that both sides do the same work: a peer that does less
// would make a ratio worthless.
func TestSidesAgree(t *testing.T) {
	var p packet.Packet
	if err := p.Parse(vxlanFrame(tcpFrame(100))); err != nil || p.Inner.Key.DstPort != 80 {
		t.Errorf("Parse of the tunnelled frame = %v, %v; want the inner flow", p.Inner.Key, err)
	}
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	plain := newObviousRoutes(f)
	for _, sw := range f.Switches() {
		for _, h := range f.Hosts() {
			dst := f.Node(h).IPv4
			got, want := routes.NextHops(sw, dst), plain.next[sw][h]
			if !slices.Equal(got, want) {
				t.Errorf("NextHops(%s, %s) = %v; want %v", f.Node(sw).Name, f.Node(h).Name, got, want)
			}
		}
	}
}

func TestRaceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := alternateRounds(ctx, func(int) {}); err != context.Canceled {
		t.Errorf("race on a cancelled context = %v; want context.Canceled", err)
	}
}

func TestFindNamesTheSuites(t *testing.T) {
	for _, s := range Suites() {
		if got, err := Find(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("Find(%q) = %v, %v", s.Name, got.Name, err)
		}
	}
	if _, err := Find("nonsense"); err == nil {
		t.Error("Find(nonsense) = nil; want an error")
	}
}

func TestPairedIsTheMedianOfNeighbours(t *testing.T) {
	// The machine is ten times as slow in the middle round, for both sides.
	r := comparePaired("x", []float64{20, 2.2, 24}, "M/s", "p", []float64{10, 1, 10}, 2.1)
	want := Result{Name: "x", Value: 20, Unit: "M/s", Peer: "p", PeerValue: 10, Ratio: 2.2, RatioLow: 2, RatioHigh: 2.4, Goal: 2.1, Pass: true}
	if r != want {
		t.Errorf("paired = %+v; want %+v", r, want)
	}
}

func TestDuelTakesTurns(t *testing.T) {
	var order string
	now := time.Duration(0)
	side := func(name string, took time.Duration) roundWork {
		return roundWork{ready: func() { now += time.Hour }, ops: 5, times: 2, run: func() error {
			order += name
			now += took
			return nil
		}}
	}
	a, b, err := pairedRounds(t.Context(), 2, func() time.Duration { return now }, side("a", 5), side("b", 50))
	if order != "aabbbbaaaabb" || !slices.Equal(a, []float64{1000, 1000}) || !slices.Equal(b, []float64{100, 100}) || err != nil {
		t.Errorf("duel = %v, %v, %v in the order %s; want 1000 and 100 M/s twice in the order aabbbbaaaabb", a, b, err, order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := pairedRounds(ctx, 1, threadTime, side("a", 1), side("b", 1)); err != context.Canceled {
		t.Errorf("duel on a cancelled context = %v; want context.Canceled", err)
	}
}
