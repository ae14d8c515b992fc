package sim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// named returns a node of a fabric.
func (n *Network) named(t testing.TB, name string) model.NodeID {
	t.Helper()
	id, ok := n.fabric.ByName(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return id
}

// portTo returns the port of one node towards another.
func (n *Network) portTo(t testing.TB, from, to string) model.Port {
	t.Helper()
	id := n.named(t, from)
	ports := n.fabric.Node(id).PortsTo(n.named(t, to))
	if len(ports) == 0 {
		t.Fatalf("no link from %s to %s", from, to)
	}
	return model.Port{Node: id, Port: ports[0]}
}

func (n *Network) inject(t testing.TB, at, span time.Duration, f Fault) {
	t.Helper()
	if err := n.Inject(Injection{At: model.Time(at), For: span, Fault: f}); err != nil {
		t.Fatal(err)
	}
}

// steady is an RDMA flow that runs for the whole test.
func steady(src, dst model.NodeID) traffic.Flow {
	return traffic.Flow{Src: src, Dst: dst, Stop: 1e12, Priority: 3, Rate: 10 * model.Gbps}
}

func prefix(a model.Addr) netip.Prefix { return netip.PrefixFrom(a.Netip(), 32) }

// TestFaultsDropWithTheirReason injects each fault that drops packets and
// checks where and why they were dropped, and that it ends when it should.
func TestFaultsDropWithTheirReason(t *testing.T) {
	race.LeaveToPlainRun(t)
	for name, tc := range map[string]struct {
		fault func(t *testing.T, n *Network) Fault
		want  Reason
	}{
		"link down": {func(t *testing.T, n *Network) Fault { return LinkDown{Port: n.portTo(t, "tor7", "h15")} }, DropLinkDown},
		"link flap": {func(t *testing.T, n *Network) Fault {
			return LinkDown{Port: n.portTo(t, "tor7", "h15"), Down: 20 * time.Microsecond, Up: 20 * time.Microsecond}
		}, DropLinkDown},
		"silent loss": {func(t *testing.T, n *Network) Fault { return Lossy{Port: n.portTo(t, "tor7", "h15"), Share: 0.1} }, DropSilent},
		"corruption": {func(t *testing.T, n *Network) Fault {
			return Lossy{Port: n.portTo(t, "tor7", "h15"), Share: 0.1, Damaged: true}
		}, DropCorrupt},
		"bad switch": {func(t *testing.T, n *Network) Fault { return LossySwitch{Switch: n.named(t, "tor7"), Share: 0.1} }, DropSilent},
		"blackhole": {func(t *testing.T, n *Network) Fault {
			return Reroute{[]Entry{{Switch: n.named(t, "tor7"), To: prefix(n.fabric.Node(15).IPv4)}}}
		}, DropBlackhole},
		"blackhole of a flow": {func(t *testing.T, n *Network) Fault {
			return Reroute{[]Entry{{Switch: n.named(t, "tor0"), Flow: n.flows[0].key}}}
		}, DropBlackhole},
		"loop of two": {func(t *testing.T, n *Network) Fault {
			to := prefix(n.fabric.Node(15).IPv4)
			return Reroute{[]Entry{
				{Switch: n.named(t, "tor7"), To: to, Via: []model.NodeID{n.named(t, "leaf6")}},
				{Switch: n.named(t, "leaf6"), To: to, Via: []model.NodeID{n.named(t, "tor7")}},
			}}
		}, DropTTL},
		"table bit flip": {func(t *testing.T, n *Network) Fault { return CorruptTable{Switch: n.named(t, "tor7"), Share: 1} }, DropBlackhole},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Congestion = nil
			n := fatTree(t, 4, cfg)
			n.add(t, steady(0, 15))
			n.inject(t, 200*time.Microsecond, 300*time.Microsecond, tc.fault(t, n))
			n.run(199 * time.Microsecond)
			if n.Counts.Drops != [numReasons]int64{} {
				t.Fatalf("drops %v before the fault; want none", n.Counts.Drops)
			}
			n.run(600 * time.Microsecond)
			during := n.Counts.Drops
			if during[tc.want] == 0 {
				t.Errorf("drops %v during the fault; want some for %v", during, tc.want)
			}
			for r, count := range during {
				if Reason(r) != tc.want && count != 0 {
					t.Errorf("%d drops for %v; want only %v", count, Reason(r), tc.want)
				}
			}
			acked := n.flows[0].acked
			n.run(20 * time.Millisecond)
			if n.Counts.Drops != during {
				t.Errorf("drops %v after the fault; want no more than %v", n.Counts.Drops, during)
			}
			if n.flows[0].acked <= acked {
				t.Error("the flow does not recover after the fault")
			}
		})
	}
}

// TestFaultsOverlap holds that the end of one fault leaves another in force.
func TestFaultsOverlap(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	n.add(t, steady(0, 15))
	port := n.portTo(t, "tor7", "h15")
	n.inject(t, 20*time.Microsecond, 200*time.Microsecond, Lossy{Port: port, Share: 0.5})
	n.inject(t, 50*time.Microsecond, 0, LinkDown{Port: port})
	n.run(300 * time.Microsecond)
	delivered := n.flows[0].expected
	n.run(20 * time.Millisecond)
	if got := n.flows[0].expected; got != delivered {
		t.Errorf("%d bytes arrived over a link that is down", got-delivered)
	}
}

// TestStormPausesTheSwitch holds that a host that sends PAUSE pauses the port
// to it, and that its queue resumes when the storm ends.
func TestStormPausesTheSwitch(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	n.add(t, steady(0, 15))
	n.inject(t, 100*time.Microsecond, 500*time.Microsecond, Storm{Host: 15, Priority: 3})
	n.run(150 * time.Microsecond)
	port := n.Port(n.portTo(t, "tor7", "h15"))
	if !port.Paused(3) {
		t.Fatal("the port to the storming host is not paused")
	}
	acked := n.flows[0].acked
	n.run(590 * time.Microsecond)
	if got := n.flows[0].acked - acked; got > 0 {
		t.Errorf("%d bytes were acknowledged during the storm; want none", got)
	}
	n.run(2 * time.Millisecond)
	if port.Paused(3) || n.flows[0].acked == acked {
		t.Error("the flow does not go on after the storm")
	}
	if n.Counts.Drops != [numReasons]int64{} {
		t.Errorf("drops %v; want none", n.Counts.Drops)
	}
}

// TestSlowReceiverHoldsItsRate holds that a slow receiver gets what it can
// take, that its switch is paused now and then, and that nothing is lost.
func TestSlowReceiverHoldsItsRate(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Congestion = nil
	n := fatTree(t, 4, cfg)
	n.add(t, traffic.Flow{Src: 0, Dst: 15, Stop: 1e12, Priority: 3})
	n.inject(t, 0, 0, SlowReceiver{Host: 15, Rate: 20 * model.Gbps, Priority: 3})
	n.run(1 * time.Millisecond)
	before := n.flows[0].acked
	n.run(3 * time.Millisecond)
	rate := float64(n.flows[0].acked-before) * 8 / 0.002 / 1e9
	if rate < 17 || rate > 20 {
		t.Errorf("the receiver takes %.1f Gb/s of payload; want a little below 20", rate)
	}
	if p := n.Port(n.portTo(t, "tor7", "h15")); p.PausesReceived == 0 {
		t.Error("the switch was never paused")
	}
	if n.Counts.Drops != [numReasons]int64{} {
		t.Errorf("drops %v; want none", n.Counts.Drops)
	}
}

// TestPolarisationLeavesLinksUnused holds that switches with the same hash use
// fewer uplinks.
func TestPolarisationLeavesLinksUnused(t *testing.T) {
	used := func(fault bool) (ports int) {
		n := fatTree(t, 8, DefaultConfig())
		if fault {
			n.inject(t, 0, 0, HashPolarization{})
			n.run(time.Nanosecond)
		}
		var flows []traffic.Flow
		for i := range 400 {
			flows = append(flows, traffic.Flow{Src: model.NodeID(i % 16), Dst: model.NodeID(64 + i%64), Bytes: 1000, Priority: 3, Start: 1000})
		}
		n.add(t, flows...)
		n.run(2 * time.Millisecond)
		for _, p := range n.ports {
			if p.TxPkts > 0 {
				ports++
			}
		}
		return ports
	}
	healthy, polarised := used(false), used(true)
	if polarised >= healthy*9/10 {
		t.Errorf("%d ports used when healthy, %d when all switches use the same hash; want clearly fewer", healthy, polarised)
	}
}

// TestMiscount holds that a counter deviates by its factor while the fault lasts, that its
// total never falls, and that packets pass as before.
func TestMiscount(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	port := n.portTo(t, "tor7", "h15")
	n.inject(t, time.Millisecond, time.Millisecond, Miscount{Port: port, Counter: TxPackets, Factor: 0.5})
	n.inject(t, 0, 0, Miscount{Port: model.Port{Node: port.Node}, Counter: FlowsetPackets, Factor: 1.25})
	n.add(t, traffic.Flow{Src: 0, Dst: 15, Priority: 3, Rate: 10 * model.Gbps, Stop: model.Time(3 * time.Millisecond)})
	p := n.Port(port)
	var shown, passed [4]uint64
	for i := range shown {
		n.run(time.Duration(i+1) * 999 * time.Microsecond)
		got := p.Sent()
		shown[i], passed[i] = got[TxPackets], uint64(p.TxPkts)
		if got[TxBytes] != uint64(p.TxData) {
			t.Errorf("%d bytes are shown, %d were sent; want the same", got[TxBytes], p.TxData)
		}
	}
	lost := (passed[1] - passed[0]) / 2
	if shown[0] != passed[0] || shown[1]+lost < passed[1]-1 || shown[1]+lost > passed[1]+1 || passed[3]-passed[2] != shown[3]-shown[2] || lost == 0 {
		t.Errorf("shown %v of %v packets; want half of those of the second millisecond missing", shown, passed)
	}
	times := 0
	for range 100 {
		times += n.Switch(port.Node).FlowsetCounts()
	}
	if times != 125 {
		t.Errorf("100 packets are counted %d times, want 125", times)
	}
}

func TestInjectErrors(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	for name, f := range map[string]Fault{
		"factor above two": Miscount{Port: n.portTo(t, "tor7", "h15"), Factor: 3},
		"no such port":     LinkDown{Port: model.Port{Node: 0, Port: 9}},
		"no such node":     Lossy{Port: model.Port{Node: 999, Port: 1}, Share: 0.5},
		"share above one":  LossySwitch{Switch: n.named(t, "tor0"), Share: 2},
		"host as switch":   CorruptTable{Switch: 0, Share: 0.5},
		"switch as host":   Storm{Host: n.named(t, "tor0"), Priority: 3},
		"no neighbour":     Reroute{[]Entry{{Switch: n.named(t, "tor0"), To: prefix(n.fabric.Node(1).IPv4), Via: []model.NodeID{n.named(t, "tor1")}}}},
		"empty reroute":    Reroute{},
		"rate of nothing":  SlowReceiver{Host: 0},
		"link not slower":  SlowLink{Port: n.portTo(t, "tor7", "h15")},
		"link as fast":     SlowLink{Port: n.portTo(t, "tor7", "h15"), Rate: 100 * model.Gbps},
		"delay below 0":    SlowLink{Port: n.portTo(t, "tor7", "h15"), Delay: -1},
		"NIC as fast":      SlowNIC{Host: 0, Rate: 100 * model.Gbps},
		"NIC of a switch":  SlowNIC{Host: n.named(t, "tor0"), Rate: model.Gbps},
		"entry to nowhere": Reroute{[]Entry{{Switch: n.named(t, "tor0")}}},
	} {
		if err := n.Inject(Injection{Fault: f}); err == nil {
			t.Errorf("%s: Inject(%+v) = nil; want an error", name, f)
		}
	}
}
