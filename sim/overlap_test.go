package sim

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestFaultsOfOneKindOverlap has two faults of one kind at one location, the
// second from the middle of the first to after its end: while one of them
// lasts, it acts; after both, nothing does.
func TestFaultsOfOneKindOverlap(t *testing.T) {
	const unit = 320 * time.Microsecond // two repetitions of a pause
	for name, tc := range map[string]struct {
		first, second func(n *Network) Fault
		acts          func(n *Network) int64 // counts on while the fault acts
	}{
		"bad table": {
			func(n *Network) Fault { return CorruptTable{Switch: n.named(t, "tor7"), Share: 1} },
			func(n *Network) Fault { return CorruptTable{Switch: n.named(t, "tor7"), Share: 1} },
			func(n *Network) int64 { return n.Counts.Drops[DropBlackhole] },
		},
		"reroute": {
			func(n *Network) Fault {
				return Reroute{Entries: []Entry{{Switch: n.named(t, "tor7"), To: prefix(n.fabric.Node(15).IPv4)}}}
			},
			func(n *Network) Fault {
				return Reroute{Entries: []Entry{{Switch: n.named(t, "tor7"), To: prefix(n.fabric.Node(15).IPv4)}}}
			},
			func(n *Network) int64 { return n.Counts.Drops[DropBlackhole] },
		},
		"storm": {
			func(*Network) Fault { return Storm{Host: 15, Priority: 3} },
			func(*Network) Fault { return Storm{Host: 15, Priority: 3} },
			func(n *Network) int64 { return n.Port(n.portTo(t, "tor7", "h15")).PausesReceived },
		},
		"slow receiver": {
			func(*Network) Fault { return SlowReceiver{Host: 15, Rate: model.Gbps, Priority: 3} },
			func(*Network) Fault { return SlowReceiver{Host: 15, Rate: 2 * model.Gbps, Priority: 3} },
			func(n *Network) int64 { return n.Port(n.portTo(t, "tor7", "h15")).PausesReceived },
		},
		"slow receiver and storm": {
			func(*Network) Fault { return SlowReceiver{Host: 15, Rate: model.Gbps, Priority: 3} },
			func(*Network) Fault { return Storm{Host: 15, Priority: 3} },
			func(n *Network) int64 { return n.Port(n.portTo(t, "tor7", "h15")).PausesReceived },
		},
		"link down": {
			func(n *Network) Fault { return LinkDown{Port: n.portTo(t, "tor7", "h15")} },
			func(n *Network) Fault { return LinkDown{Port: n.portTo(t, "h15", "tor7")} },
			func(n *Network) int64 { return n.Counts.Drops[DropLinkDown] },
		},
		"storm over a flap": {
			func(*Network) Fault { return Storm{Host: 15, Priority: 3} },
			func(n *Network) Fault {
				return LinkDown{Port: n.portTo(t, "tor7", "h15"), Down: 50 * time.Microsecond, Up: time.Second}
			},
			func(n *Network) int64 {
				return n.Port(n.portTo(t, "tor7", "h15")).PausesReceived + n.Counts.Drops[DropLinkDown]
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Congestion, cfg.RTO = nil, 200*time.Microsecond
			n := fatTree(t, 4, cfg)
			n.add(t, steady(0, 15))
			n.inject(t, 1*unit, 3*unit, tc.first(n))
			n.inject(t, 2*unit, 4*unit, tc.second(n))
			var last int64
			for _, step := range []struct {
				until time.Duration
				acts  bool
			}{{1*unit - 1, false}, {2 * unit, true}, {3 * unit, true}, {4 * unit, true}, {5 * unit, true}, {6 * unit, true}, {7 * unit, false}, {9 * unit, false}} {
				if name == "storm over a flap" && step.until > 4*unit {
					continue // the link is up and the storm is over
				}
				n.run(step.until)
				now := tc.acts(n)
				if acts := now > last; acts != step.acts && step.until != 7*unit {
					t.Errorf("acts before %v: %v (%d, %d before); want %v", step.until, acts, now, last, step.acts)
				}
				last = now
			}
			before := n.flows[0].acked
			n.run(14 * unit)
			if got := n.flows[0].acked - before; got < 500_000 {
				t.Errorf("%d bytes acknowledged after the faults; want the flow to run", got)
			}
		})
	}
}

// TestMisdirectingMuxesOverlap: of two wrong choices the newer counts, and the older
// when it is over.
func TestMisdirectingMuxesOverlap(t *testing.T) {
	n := yard(t, nil)
	n.add(t, traffic.Flow{Src: 1, To: vip4, Stop: 1e12, Transport: traffic.UDP, Rate: model.Gbps})
	mux := n.named(t, "mux0")
	n.inject(t, 1*time.Millisecond, 3*time.Millisecond, MisdirectingMux{Host: mux, Share: 1, To: n.fabric.Node(3).IPv4})
	n.inject(t, 2*time.Millisecond, 1*time.Millisecond, MisdirectingMux{Host: mux, Share: 1})
	at := func(until time.Duration) [2]int64 {
		before := n.Counts.Drops
		n.run(until)
		return [2]int64{n.Counts.Drops[DropHost] - before[DropHost], n.Counts.Drops[DropSilent] - before[DropSilent]}
	}
	at(1050 * time.Microsecond)
	for _, step := range []struct {
		until      time.Duration
		host, drop bool
	}{{2 * time.Millisecond, true, false}, {2050 * time.Microsecond, true, true}, {3 * time.Millisecond, false, true}, {4 * time.Millisecond, true, true}} {
		if got := at(step.until); (got[0] > 0) != step.host || (got[1] > 0) != step.drop && step.until != 4*time.Millisecond {
			t.Errorf("before %v: %d sent to another host, %d dropped; want %v, %v", step.until, got[0], got[1], step.host, step.drop)
		}
	}
	at(4050 * time.Microsecond)
	if got := at(6 * time.Millisecond); got != [2]int64{} {
		t.Errorf("after both: %v; want none", got)
	}
}

// TestPolarisedTablesFollowMoves: all switches use the same hash for the whole
// of the fault, whatever routes they follow during it, and late ones stay late.
func TestPolarisedTablesFollowMoves(t *testing.T) {
	n := yard(t, nil)
	tor0, tor1 := n.named(t, "tor0"), n.named(t, "tor1")
	n.inject(t, 1*time.Millisecond, 3*time.Millisecond, HashPolarization{})
	n.moveAt(t, 2*time.Millisecond, Migration{Addr: vm4, To: 5, Late: map[model.NodeID]time.Duration{tor0: 3 * time.Millisecond}})
	alike := func() bool { // both ToRs choose the same uplink for every flow
		for port := range uint16(64) {
			key := model.FlowKey{Src: n.nodeAddr(1, false), Dst: outside4, SrcPort: port, Proto: model.UDP}
			a, _ := n.Switch(tor0).NextHop(key)
			b, _ := n.Switch(tor1).NextHop(key)
			if a.peer.Node != b.peer.Node {
				return false
			}
		}
		return true
	}
	toVM := func(sw model.NodeID) model.NodeID {
		out, _ := n.Switch(sw).NextHop(model.FlowKey{Src: n.nodeAddr(1, false), Dst: vm4, Proto: model.UDP})
		return out.peer.Node
	}
	for _, step := range []struct {
		at           time.Duration
		alike, moved bool
	}{
		{500 * time.Microsecond, false, false},
		{1500 * time.Microsecond, true, false},
		{2500 * time.Microsecond, true, false},
		{4500 * time.Microsecond, false, false},
		{5500 * time.Microsecond, false, true},
	} {
		n.run(step.at)
		if got := toVM(tor0) != 0; alike() != step.alike || got != step.moved {
			t.Errorf("at %v: same hash %v, tor0 sends to the new host %v; want %v, %v", step.at, alike(), got, step.alike, step.moved)
		}
		if got := toVM(tor1) == 5; got != (step.at > 2*time.Millisecond) {
			t.Errorf("at %v: tor1 sends to the new host: %v", step.at, got)
		}
	}
}
