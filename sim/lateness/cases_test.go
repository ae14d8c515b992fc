package lateness

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// Nodes of tree: hosts 0 and 1 at leaf 6, 2 and 3 at leaf 7, 4 and 5 at leaf 8,
// and the spine 9.
const (
	leaf7 = 7
	spine = 9
)

// queue is the class 3 queue from a node to another.
func (b *bed) queue(from, to model.NodeID) Queue {
	return Queue{model.Port{Node: from, Port: b.Fabric().Node(from).PortsTo(to)[0]}, 3}
}

// packet returns when the i-th packet of a flow was sent.
func (b *bed) packet(flow, i int) (key model.FlowKey, sent engine.Time) {
	b.t.Helper()
	key, _ = b.FlowKey(flow)
	b.each(func(k model.FlowKey, at engine.Time) {
		if k == key {
			if i == 0 {
				sent = at
			}
			i--
		}
	})
	if i >= 0 {
		b.t.Fatalf("flow %d has too few packets", flow)
	}
	return key, sent
}

func (b *bed) account(flow, i int) *Account {
	b.t.Helper()
	key, sent := b.packet(flow, i)
	a, err := b.o.Account(key, sent)
	b.check(&a, err)
	return &a
}

// size is of the packets of udp: 500 bytes and their headers take 542 ns.
const size = 542 * engine.Nanosecond

// udp are packets at line rate, without acknowledgements.
func udp(src, dst model.NodeID, packets int) traffic.Flow {
	return traffic.Flow{
		Src: src, Dst: dst, Bytes: model.Bytes(500 * packets), Priority: 3, Transport: traffic.UDP, Start: 1000,
	}
}

// roomy never pauses by itself.
func roomy() (sim.Config, func(*testing.T) *bed) {
	cfg, l := slow()
	cfg.Buffer, cfg.Xoff, cfg.Xon = 10*model.MB, 500*model.KB, 400*model.KB
	return cfg, func(t *testing.T) *bed { return tree(t, cfg, l) }
}

// Two flows meet at the spine's port to leaf 7, packet by packet. The fourth of
// the second is behind four: two of either flow.
func TestIncastAtOnePort(t *testing.T) {
	_, lay := roomy()
	b := lay(t)
	b.add(udp(0, 2, 10), udp(4, 3, 10))
	b.run(100 * time.Microsecond)
	a := b.account(1, 3)
	if len(a.Terms) != 1 || a.Late != 4*size {
		t.Fatalf("%v\nwant one term of %v", a, 4*size)
	}
	first, _ := b.FlowKey(0)
	want := Term{Place: b.queue(spine, leaf7), Kind: Contention, Time: 4 * size}
	got := a.Terms[0]
	if got.Place != want.Place || got.Kind != want.Kind || len(got.Via) != 0 || len(got.Parties) != 2 {
		t.Errorf("term %+v; want %+v and two parties", got, want)
	}
	for _, p := range got.Parties {
		if p.Time != 2*size || p.Flow != first && p.Flow != a.Flow {
			t.Errorf("party %+v; want %v or %v with %v", p, first, a.Flow, 2*size)
		}
	}
	if hop := a.Hops[2]; hop.Queue != want.Place || hop.Queued != 4*size || hop.Paused != 0 {
		t.Errorf("hop %+v; want %v queued for %v", hop, want.Place, 4*size)
	}
}

// A host behind two switches pauses. The only flow contends with itself at most:
// the lateness is the host's, wherever the packet waited.
func TestStormBehindTwoSwitches(t *testing.T) {
	cfg, l := slow()
	b := tree(t, cfg, l)
	b.add(udp(0, 2, 60))
	b.inject(sim.Injection{At: 2_000, For: 40 * time.Microsecond, Fault: sim.Storm{Host: 2, Priority: 3}})
	b.run(200 * time.Microsecond)
	chains := map[int]bool{}
	for i := range 60 {
		for _, term := range b.account(0, i).Terms {
			if term.Kind == Contention && term.Time < size {
				continue // with the packet of its own flow that was on the wire when a switch paused
			}
			if term.Kind != HostInjection || term.Place != b.queue(leaf7, 2) || term.Parties[0].Host != 2 {
				t.Fatalf("packet %d: %+v; want host injection of host 2 at %v", i, term, b.queue(leaf7, 2))
			}
			for k, q := range term.Via {
				if whole := []Queue{b.queue(6, spine), b.queue(spine, leaf7)}; q != whole[len(whole)-len(term.Via)+k] {
					t.Fatalf("packet %d via %v; want the end of %v", i, term.Via, whole)
				}
			}
			chains[len(term.Via)] = true
		}
	}
	if len(chains) != 3 {
		t.Errorf("chains of %v paused queues; want of 0, 1 and 2", chains)
	}
}

// A backlog that was there before the pause is contention; what the pause adds
// is the host's. Without the pause the packet is late by the contention alone.
func TestBacklogBeforeThePause(t *testing.T) {
	_, lay := roomy()
	for i := range 30 {
		calm, stormy := lay(t), lay(t)
		for _, b := range []*bed{calm, stormy} {
			b.add(udp(0, 2, 30), udp(3, 2, 30))
		}
		stormy.inject(sim.Injection{At: 10_000, For: 7 * time.Microsecond, Fault: sim.Storm{Host: 2, Priority: 3}})
		calm.run(100 * time.Microsecond)
		stormy.run(100 * time.Microsecond)
		contention, a := calm.account(0, i).Late, stormy.account(0, i)
		got := map[Kind]engine.Time{}
		for _, term := range a.Terms {
			got[term.Kind] += term.Time
			if term.Place != stormy.queue(leaf7, 2) || len(term.Via) != 0 {
				t.Errorf("packet %d: %+v; want all of it at %v", i, term, stormy.queue(leaf7, 2))
			}
		}
		if got[Contention] != contention || got[HostInjection] != a.Late-contention {
			t.Errorf("packet %d: %v; want contention %v, as without the pause, and host injection %v", i, got, contention, a.Late-contention)
		}
		if i == 29 && got[HostInjection] < 6*engine.Microsecond {
			t.Errorf("the last packet owes %v to the pause; want most of 7µs", got[HostInjection])
		}
	}
}

// The spine's queue to leaf 7 is paused because of two queues there: one is
// congested, the other paused by its host.
func TestTwoCausesAtOnePort(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg, l := slow()
	b := tree(t, cfg, l)
	b.add(udp(0, 2, 40), udp(4, 3, 40), udp(3, 2, 40))
	b.inject(sim.Injection{At: 2_000, For: 60 * time.Microsecond, Fault: sim.Storm{Host: 3, Priority: 3}})
	b.run(200 * time.Microsecond)
	got := map[Kind]engine.Time{}
	a := b.account(0, 30)
	for _, term := range a.Terms {
		switch {
		case term.Kind == HostInjection && term.Place == b.queue(leaf7, 3) && term.Parties[0].Host == 3:
		case term.Kind == Contention && (term.Place == b.queue(leaf7, 2) || term.Place == b.queue(spine, leaf7)):
		case term.Time < size: // of a packet on the wire
		default:
			t.Errorf("%+v; want host 3, or contention on the path", term)
		}
		got[term.Kind] += term.Time
	}
	if got[HostInjection] < a.Late/4 || got[Contention] < a.Late/20 {
		t.Errorf("%v; want much of both kinds", a)
	}
	if late := b.compare(7, 0.005); late == 0 {
		t.Error("no packet was late")
	}
}

// around are flows that each go so many switches clockwise.
func around(switches model.NodeID, bytes model.Bytes) (flows []traffic.Flow) {
	for i := range model.NodeID(4) {
		flows = append(flows, traffic.Flow{Src: i, Dst: (i + switches) % 4, Bytes: bytes, Priority: 3, Start: 1000})
	}
	return flows
}

func TestDeadlockRing(t *testing.T) {
	for name, tc := range map[string]struct {
		flows []traffic.Flow
		storm bool
		want  Kind
	}{
		"contention in the cycle": {around(2, 5*model.MB), false, Contention},
		"a host outside":          {append(around(3, 5*model.MB), around(2, 5*model.MB)...), true, HostInjection},
	} {
		t.Run(name, func(t *testing.T) {
			b := ring(t, unthrottled(), 5*time.Millisecond)
			b.add(tc.flows...)
			if tc.storm {
				b.inject(sim.Injection{At: 1_000, For: 500 * time.Microsecond, Fault: sim.Storm{Host: 2, Priority: 3}})
			}
			b.run(time.Millisecond)
			// The newest packet of flow 0 that no host has.
			key, _ := b.FlowKey(0)
			sent, ok := b.o.Nearest(key, b.Now())
			if !ok {
				t.Fatal("flow 0 sent nothing")
			}
			a, err := b.o.Account(key, sent)
			b.check(&a, err)
			top := a.Terms[0]
			cycle := []Queue{b.queue(4, 5), b.queue(5, 6), b.queue(6, 7), b.queue(7, 4)}
			if !a.InFlight || top.Kind != DeadlockCycle || !slices.Equal(top.Deadlock.Cycle, cycle) || !top.Deadlock.Persistent {
				t.Fatalf("%v\nwant a persistent deadlock of %v first", &a, cycle)
			}
			d := top.Deadlock
			if alone := b.Now() - d.Begin; top.Time < alone*9/10 {
				t.Errorf("%v owed to the deadlock; want nine tenths of the %v that it lasts", top.Time, alone)
			}
			closed := d.Closing[0] // by the most of it
			if closed.Kind != tc.want || !tc.storm && !slices.Contains(cycle, closed.Place) || tc.storm && closed.Place != b.queue(6, 2) {
				t.Errorf("the deadlock since %v was closed by %v at %v; want %v", d.Begin, closed.Kind, closed.Place, tc.want)
			}
			sum := engine.Time(0)
			for i := range d.Closing {
				sum += d.Closing[i].Time
			}
			if want := engine.Time(len(cycle)) * engine.Microsecond; sum != want {
				t.Errorf("what closed %d queues adds up to %v; want %v", len(cycle), sum, want)
			}
		})
	}
}

func TestNoAccount(t *testing.T) {
	_, lay := roomy()
	b := lay(t)
	b.add(udp(0, 2, 10), udp(4, 3, 10))
	b.inject(sim.Injection{Fault: sim.Lossy{Port: b.queue(leaf7, 3).Port, Share: 1}})
	b.run(100 * time.Microsecond)
	key, sent := b.packet(0, 0)
	if _, err := b.o.Account(key, sent+1); !errors.Is(err, ErrUnknown) {
		t.Errorf("nothing was sent then: %v; want ErrUnknown", err)
	}
	if _, err := b.o.Account(model.FlowKey{}, sent); !errors.Is(err, ErrUnknown) {
		t.Errorf("no such key: %v; want ErrUnknown", err)
	}
	if at, ok := b.o.Nearest(key, sent+1); !ok || at != sent {
		t.Errorf("nearest %v, %v; want %v", at, ok, sent)
	}
	if at, ok := b.o.Nearest(key, sent-1); !ok || at != sent {
		t.Errorf("nearest %v, %v; want %v", at, ok, sent)
	}
	key, sent = b.packet(1, 0)
	if _, err := b.o.Account(key, sent); !errors.Is(err, ErrLost) {
		t.Errorf("lost on the last link: %v; want ErrLost", err)
	}
	if _, err := Watch(b.Network, time.Second); err == nil {
		t.Error("a run that has started; want an error")
	}
}
