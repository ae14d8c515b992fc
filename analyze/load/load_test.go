package load

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

const slot = 10 * time.Millisecond

func fabric(t *testing.T) (*topo.Fabric, *topo.Routes) {
	f, err := topo.FatTree(8, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

func key(f *topo.Fabric, src, dst, port int) model.FlowKey {
	h := f.Hosts()
	return model.NewFlowKey(netip.AddrPortFrom(f.Node(h[src]).IPv4.Netip(), uint16(port)),
		netip.AddrPortFrom(f.Node(h[dst]).IPv4.Netip(), 4791), model.UDP)
}

// one is a map of a single switch.
func one(n int64, sw model.NodeID, records ...flows.Record) *paths.Map {
	m := paths.NewMap(n, slot)
	m.AddFlowset(&flows.Decoded{Switch: sw, Start: model.Time(n * int64(slot)), Length: slot, Records: records})
	return m
}

func TestBalanceDistinguishesHashFromBurst(t *testing.T) {
	f, routes := fabric(t)
	tor := f.Port(model.Port{Node: f.Hosts()[0], Port: 1}).Peer.Node
	far := routes.NextHops(tor, f.Node(f.Hosts()[127]).IPv4)
	fair := func(k model.FlowKey) model.PortID { return far[k.Hash(7)%uint64(len(far))] }
	for name, tc := range map[string]struct {
		port    func(model.FlowKey) model.PortID
		packets func(n int) uint64
		want    string // cause, or none
	}{
		"fair hash, even flows":  {fair, func(int) uint64 { return 10 }, "none"},
		"half of the bits stuck": {func(k model.FlowKey) model.PortID { return far[k.Hash(7)%2] }, func(int) uint64 { return 10 }, "hash"},
		"one flow of 400 bursts": {fair, func(n int) uint64 {
			if n == 17 {
				return 5000
			}
			return 10
		}, "burst"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := NewBalanceDetector(DefaultBalanceConfig(topo.NewIntent(routes)))
			if err != nil {
				t.Fatal(err)
			}
			for s := range int64(3) {
				var records []flows.Record
				for n := range 400 {
					k := key(f, 0, 64+n%64, n)
					records = append(records, flows.Record{Key: k, Out: tc.port(k), Packets: tc.packets(n), Grade: flows.Exact})
				}
				b.Observe(one(s, tor, records...))
			}
			list := b.TakeImbalances()
			if got := len(list); got != 0 && tc.want == "none" || got != 1 && tc.want != "none" {
				t.Fatalf("%d imbalances %+v; want cause %s", got, list, tc.want)
			}
			if tc.want == "none" {
				return
			}
			im := list[0]
			if im.Cause.String() != tc.want {
				t.Errorf("%s; want cause %s", im.Describe(f), tc.want)
			}
			if want := []model.FlowKey{key(f, 0, 64+17, 17)}; im.Cause == Burst && !slices.Equal(im.Heavy, want) {
				t.Errorf("heavy flows %v; want %v", im.Heavy, want)
			}
			if again := b.TakeImbalances(); len(again) != 0 {
				t.Errorf("second Take = %v; want an empty window", again)
			}
		})
	}
}

// TestFairHashIsNotReported simulates many fair groups: none may be reported.
func TestFairHashIsNotReported(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 5000 {
		counts := make([]int, 2+trial%7)
		for range 16 + trial%400 {
			counts[rng.IntN(len(counts))]++
		}
		if u := imbalanceSigma(counts); u > DefaultBalanceConfig(nil).Sigma+1 {
			t.Fatalf("uneven(%v) = %.1f; want below %v of a fair spread", counts, u, DefaultBalanceConfig(nil).Sigma+1)
		}
	}
}

func TestSpikeIsShortAndNamesItsFlows(t *testing.T) {
	f, _ := fabric(t)
	host := f.Port(model.Port{Node: f.Hosts()[0], Port: 1}).Peer
	full := float64(100e9) / 8 * slot.Seconds()
	for name, tc := range map[string]struct {
		burst int64 // slots
		want  int   // spikes
	}{"a burst of one slot": {1, 1}, "of four": {4, 1}, "a new elephant": {30, 0}} {
		t.Run(name, func(t *testing.T) {
			b, err := NewBurstDetector(DefaultBurstConfig(f))
			if err != nil {
				t.Fatal(err)
			}
			var got []Microburst
			for s := range int64(80) {
				records := []flows.Record{{Key: key(f, 9, 0, 1), Out: host.Port, Bytes: uint64(0.05 * full)}}
				if s >= 40 && s < 40+tc.burst {
					for n := range 8 {
						records = append(records, flows.Record{Key: key(f, 10+n, 0, 2), Out: host.Port, Bytes: uint64(0.05 * full)})
					}
				}
				spikes, rhythms := b.Observe(one(s, host.Node, records...))
				got = append(got, spikes...)
				if len(rhythms) != 0 {
					t.Errorf("rhythms %v; want none", rhythms)
				}
			}
			if len(got) != tc.want {
				t.Fatalf("spikes %+v; want %d", got, tc.want)
			}
			if tc.want == 1 && (got[0].Slot != 40 || got[0].Slots != tc.burst || got[0].New != 8 || len(got[0].Flows) != 8) {
				t.Errorf("spike %+v; want %d slots from 40 on, of 8 new flows", got[0], tc.burst)
			}
		})
	}
}

func TestRhythmOfAShrew(t *testing.T) {
	f, _ := fabric(t)
	host := f.Port(model.Port{Node: f.Hosts()[0], Port: 1}).Peer
	full := float64(100e9) / 8 * slot.Seconds()
	for name, tc := range map[string]struct {
		bursts func(s int64) bool
		want   bool
	}{
		"every 100 ms for 10 ms": {func(s int64) bool { return s%10 == 0 }, true},
		"every 75 ms":            {func(s int64) bool { return s*4/30 != (s-1)*4/30 }, true},
		"at random":              {func(s int64) bool { k := key(f, 1, 2, int(s)); return k.Hash(3)%10 == 0 }, false},
		"half of the time":       {func(s int64) bool { return s%10 < 5 }, false},
		"always":                 {func(int64) bool { return true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := NewBurstDetector(DefaultBurstConfig(f))
			if err != nil {
				t.Fatal(err)
			}
			var last PeriodicSender
			for s := range int64(150) {
				m := paths.NewMap(s, slot)
				if tc.bursts(s) {
					m = one(s, host.Node, flows.Record{Key: key(f, 9, 0, 1), Out: host.Port, Bytes: uint64(0.5 * full)})
				}
				if _, r := b.Observe(m); len(r) > 0 {
					last = r[0]
				}
			}
			if got := last.Bursts > 0; got != tc.want {
				t.Errorf("rhythm %+v; want one: %v", last, tc.want)
			}
		})
	}
}

func TestSizesCountEveryFlowOnce(t *testing.T) {
	f, _ := fabric(t)
	sw := f.Switches()
	s := NewSizes(3)
	for n := range int64(2) {
		m := paths.NewMap(n, slot)
		for hop := range 3 {
			m.AddFlowset(&flows.Decoded{Switch: sw[hop], Start: model.Time(n * int64(slot)), Length: slot, Records: []flows.Record{
				{Key: key(f, 0, 1, 1), Packets: uint64(100 - hop), Bytes: 1000, Grade: flows.Exact},
				{Key: key(f, 0, 1, 2), Packets: 5, Bytes: 50},
			}})
		}
		s.Observe(m)
	}
	want := []Size{{key(f, 0, 1, 1), 200, 2000, true}, {key(f, 0, 1, 2), 10, 100, false}}
	if got := s.Top(5); !slices.Equal(got, want) {
		t.Errorf("Top(5) = %+v; want %+v", got, want)
	}
	if got, want := s.Distribution(), []int{0, 0, 0, 0, 1, 0, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("Distribution() = %v; want %v", got, want)
	}
	m := one(2, sw[0], flows.Record{Key: key(f, 2, 3, 1), Packets: 1}, flows.Record{Key: key(f, 2, 3, 2), Packets: 1})
	if s.Observe(m); s.Untracked != 1 {
		t.Errorf("Untracked = %d with a limit of one of two; want 1", s.Untracked)
	}
}
