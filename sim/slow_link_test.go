package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestSlowLinkDelaysExactly: one packet takes the added delay longer, and the time
// that the slower rate takes longer on each slow link; before and after the fault,
// and for its ideal, nothing changes.
func TestSlowLinkDelaysExactly(t *testing.T) {
	const size = 1000
	at := func(n *Network) model.Port { return n.portTo(t, "h0", n.fabric.Node(n.fabric.Switches()[0]).Name) }
	for name, tc := range map[string]struct {
		fault func(n *Network) Fault
		late  func(frame int64) engine.Time
	}{
		"delay": {
			func(n *Network) Fault { return SlowLink{Port: at(n), Delay: 3 * time.Microsecond} },
			func(int64) engine.Time { return engine.Of(3 * time.Microsecond) },
		},
		"rate": {
			func(n *Network) Fault { return SlowLink{Port: at(n), Rate: 10 * model.Gbps} },
			func(frame int64) engine.Time {
				return engine.Transmit(frame, 10*model.Gbps) - engine.Transmit(frame, 100*model.Gbps)
			},
		},
		"both, by the other end": {
			func(n *Network) Fault {
				return SlowLink{Port: n.portTo(t, n.fabric.Node(n.fabric.Switches()[0]).Name, "h0"), Rate: 10 * model.Gbps, Delay: time.Microsecond}
			},
			func(frame int64) engine.Time {
				return engine.Of(time.Microsecond) + engine.Transmit(frame, 10*model.Gbps) - engine.Transmit(frame, 100*model.Gbps)
			},
		},
		"slow NIC": {
			func(*Network) Fault { return SlowNIC{Host: 1, Rate: 40 * model.Gbps} },
			func(frame int64) engine.Time {
				return engine.Transmit(frame, 40*model.Gbps) - engine.Transmit(frame, 100*model.Gbps)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := computeNet(t)
			n.inject(t, 100*time.Microsecond, 100*time.Microsecond, tc.fault(n))
			for _, start := range []model.Time{10_000, 110_000, 210_000} {
				n.add(t, traffic.Flow{Src: 0, Dst: 1, Bytes: size, Start: start, Priority: 3})
			}
			n.run(time.Millisecond)
			r := n.Records()
			if len(r) != 3 {
				t.Fatalf("%d flows finished; want 3", len(r))
			}
			took := func(i int) engine.Time { return r[i].Arrived - r[i].Start }
			frame := int64(n.dataSize(n.flows[0], size, true))
			if got, want := took(1)-took(0), tc.late(frame); got != want {
				t.Errorf("during the fault a packet takes %v longer; want %v", got, want)
			}
			if took(2) != took(0) {
				t.Errorf("after the fault a packet takes %v; want %v as before", took(2), took(0))
			}
			if r[0].Ideal != r[1].Ideal {
				t.Errorf("ideals %v and %v; want the same with and without the fault", r[0].Ideal, r[1].Ideal)
			}
		})
	}
}

// TestSlowLinksDoNotReorder: delays that begin and end at any time, also several at
// once, leave every packet of a flow in its order: nothing is sent again.
func TestSlowLinksDoNotReorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := computeNet(t)
		port := n.Host(0).ports[0]
		if err := n.AddFlows([]traffic.Flow{{Src: 0, Dst: 1, Bytes: 300 * model.KB, Priority: 3}}); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			f := SlowLink{Port: model.Port{Node: port.Node, Port: port.ID}}
			if f.Delay = time.Duration(rapid.IntRange(0, 20_000).Draw(t, "delay")); f.Delay == 0 || rapid.Bool().Draw(t, "slower") {
				f.Rate = model.Rate(rapid.IntRange(1, 99).Draw(t, "Gb/s")) * model.Gbps
			}
			in := Injection{
				At: model.Time(rapid.IntRange(0, 40_000).Draw(t, "at")), Fault: f,
				For: time.Duration(rapid.IntRange(1, 40_000).Draw(t, "for")),
			}
			if err := n.Inject(in); err != nil {
				t.Fatal(err)
			}
		}
		n.Run(engine.Of(20 * time.Millisecond))
		r := n.Records()
		if len(r) != 1 || r[0].Retransmitted != 0 {
			t.Fatalf("flows %+v; want one that finished without a retransmission", r)
		}
		if len(port.impair) != 0 || len(port.peer.impair) != 0 {
			t.Fatalf("%d and %d impairments are left; want none", len(port.impair), len(port.peer.impair))
		}
	})
}

// TestSlowRateIsTheThroughput: a long flow takes its size over the slow rate.
func TestSlowRateIsTheThroughput(t *testing.T) {
	for name, fault := range map[string]Fault{
		"link":     SlowLink{Port: model.Port{Node: 0, Port: 1}, Rate: 25 * model.Gbps},
		"receiver": SlowNIC{Host: 1, Rate: 25 * model.Gbps},
	} {
		n := computeNet(t)
		n.inject(t, 0, 0, fault)
		n.add(t, traffic.Flow{Src: 0, Dst: 1, Bytes: 10 * model.MB, Start: 1000, Priority: 3, NoCC: true})
		n.run(100 * time.Millisecond)
		r := n.Records()
		if len(r) != 1 {
			t.Fatalf("%s: %d flows finished; want 1", name, len(r))
		}
		payload := engine.Transmit(10_000_000, 25*model.Gbps)
		if got := float64(r[0].FCT()) / float64(payload); got < 1.02 || got > 1.12 {
			t.Errorf("%s: takes %.3f times its payload at 25 Gb/s; want that and 7 %% of headers", name, got)
		}
		if n.Counts.Drops != [numReasons]int64{} {
			t.Errorf("%s: drops %v; want none", name, n.Counts.Drops)
		}
	}
}
