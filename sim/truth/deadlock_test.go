package truth

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// cycle is the ring's clockwise queues.
func (b *bed) cycle() (queues []Node) {
	for i := range model.NodeID(4) {
		queues = append(queues, QueueNode(b.clockwise(i), 3))
	}
	return queues
}

// one returns the only deadlock of a run.
func (b *bed) one() Deadlock {
	b.t.Helper()
	if all := b.r.Deadlocks(); len(all) != 1 {
		b.t.Fatalf("%d deadlocks %+v; want one\n%v", len(all), all, WaitFor(b.Network))
	}
	return b.r.Deadlocks()[0]
}

func TestRingDeadlocks(t *testing.T) {
	for name, pause := range map[string]time.Duration{"pauses expire": 300 * time.Microsecond, "pauses last": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := unthrottled()
			cfg.PauseTime = pause
			b := ring(t, cfg, All())
			b.add(around(5_000_000)...)
			b.run(5 * time.Millisecond)
			d := b.one()
			if !slices.Equal(d.Cycle, b.cycle()) {
				t.Errorf("loop %+v; want the clockwise queues %+v", d.Cycle, b.cycle())
			}
			if !d.Persistent || d.Formed <= 0 || d.Formed > 100*engine.Microsecond || d.Found-d.Formed < engine.Millisecond {
				t.Errorf("formed %v, found %v, persistent %v; want within 100µs, 1ms later, true", d.Formed, d.Found, d.Persistent)
			}
			if len(d.Roots) != 0 || !d.SelfSustaining {
				t.Errorf("roots besides the loop %+v, alone %v; want none, true", d.Roots, d.SelfSustaining)
			}
			// Nothing moves any more, for any length of time.
			delivered, hops := b.Counts.Delivered, b.Counts.Hops
			b.run(50 * time.Millisecond)
			if d = b.one(); !d.Persistent || d.Ended != 0 || b.Counts.Delivered != delivered || b.Counts.Hops != hops {
				t.Errorf("after 50ms: persistent %v, ended %v, %d more delivered, %d more hops; want true, never, 0, 0",
					d.Persistent, d.Ended, b.Counts.Delivered-delivered, b.Counts.Hops-hops)
			}
			g := WaitFor(b.Network)
			c := g.Closure(FlowNode(0, false))
			roots := c.Roots()
			if len(roots) != 1 || roots[0].Kind != RootCycle || !slices.Equal(roots[0].Nodes, b.cycle()) {
				t.Errorf("roots of flow 0 %+v; want the loop\n%v", roots, g)
			}
			if got, want := c.Switches(), []model.NodeID{4, 5, 6, 7}; !slices.Equal(got, want) {
				t.Errorf("switches that flow 0 waits for %v; want %v", got, want)
			}
		})
	}
}

func TestFaultEndsDeadlock(t *testing.T) {
	b := ring(t, unthrottled(), All())
	b.add(around(200_000)...)
	const at, lasts = 10 * time.Millisecond, time.Millisecond
	b.inject(sim.Injection{At: model.Time(at), For: lasts, Fault: sim.LinkDown{Port: b.clockwise(1)}})
	b.run(9 * time.Millisecond)
	if d := b.one(); !d.Persistent {
		t.Fatalf("before the fault: %+v; want it to be persistent", d)
	}
	b.run(60 * time.Millisecond)
	// The neighbour's frames no longer arrive, so the pause runs out.
	d := b.r.Deadlocks()[0]
	if d.Persistent || d.Ended < engine.Of(at) || d.Ended > engine.Of(at+400*time.Microsecond) {
		t.Errorf("persistent %v, ended %v; want false, within 400µs of %v", d.Persistent, d.Ended, at)
	}
	if b.Counts.Drops[sim.DropLinkDown] == 0 {
		t.Errorf("drops %v; want some on the dead link", b.Counts.Drops)
	}
}

func TestRerouteBreaksTheCycle(t *testing.T) {
	b := ring(t, unthrottled(), All())
	b.add(around(5_000_000)...)
	// h3 to h1 in the other direction: no link is in a cycle then.
	b.inject(sim.Injection{Fault: sim.Reroute{Entries: []sim.Entry{
		{Switch: 7, To: b.just(1), Via: []model.NodeID{6}},
		{Switch: 6, To: b.just(1), Via: []model.NodeID{5}},
	}}})
	b.run(20 * time.Millisecond)
	if b.Finished != 4 || len(b.r.Deadlocks()) != 0 || len(b.r.Pauses()) == 0 {
		t.Errorf("%d flows finished, %d deadlocks, %d pauses; want 4, none, some\n%v",
			b.Finished, len(b.r.Deadlocks()), len(b.r.Pauses()), WaitFor(b.Network))
	}
}

// further are flows that each go three switches clockwise.
func further(size model.Bytes) []traffic.Flow {
	flows := around(size)
	for i := range flows {
		flows[i].Dst = (flows[i].Src + 3) % 4
	}
	return flows
}

// A storm from outside of the cycle leaves a self-sustaining deadlock.
func TestDeadlockOutlivesItsCause(t *testing.T) {
	b := ring(t, unthrottled(), All())
	b.add(append(further(5_000_000), around(5_000_000)...)...)
	b.inject(sim.Injection{At: 5_000, For: 3 * time.Millisecond, Fault: sim.Storm{Host: 2, Priority: 3}})
	b.run(2 * time.Millisecond)
	d := b.one()
	if len(d.Roots) != 1 || d.Roots[0].Kind != RootHost || d.Roots[0].Nodes[0] != HostNode(2) || d.SelfSustaining {
		t.Errorf("roots %+v, alone %v; want host 2, false\n%v", d.Roots, d.SelfSustaining, WaitFor(b.Network))
	}
	if wrong := b.r.ActiveCauses(d.Formed); len(wrong) != 1 || wrong[0].Kind != "storm" || wrong[0].Nodes[0] != 2 {
		t.Errorf("wrong when it formed: %+v; want the storm of host 2", wrong)
	}
	b.run(20 * time.Millisecond)
	if d = b.one(); !d.Persistent || !d.SelfSustaining || len(b.r.ActiveCauses(b.Now())) != 0 {
		t.Errorf("after the storm: persistent %v, self-sustaining %v, wrong %+v; want true, true, nothing", d.Persistent, d.SelfSustaining, b.r.ActiveCauses(b.Now()))
	}
}

// The same loop of pauses, but the hosts alone keep it.
func TestKeptCycleDissolves(t *testing.T) {
	b := ring(t, unthrottled(), All())
	flows := append(further(5_000_000), around(5_000_000)...)
	for i := range flows {
		flows[i].Rate = 15 * model.Gbps // five of them fit into a link
	}
	b.add(flows...)
	b.run(100 * time.Microsecond)
	if pauses := b.r.Pauses(); len(pauses) != 0 {
		t.Fatalf("pauses before the storm %+v; want none", pauses)
	}
	const ends = 3 * engine.Millisecond
	for h := range model.NodeID(4) {
		b.inject(sim.Injection{At: 200_000, For: ends.Duration() - 200_000, Fault: sim.Storm{Host: h, Priority: 3}})
	}
	b.run(15 * time.Millisecond)
	d := b.one()
	if d.Persistent || d.SelfSustaining || d.Ended < ends || d.Ended > ends+100*engine.Microsecond || len(d.Roots) != 4 {
		t.Errorf("persistent %v, self-sustaining %v, ended %v, roots %+v; want false, false, within 100µs of %v, four hosts", d.Persistent, d.SelfSustaining, d.Ended, d.Roots, ends)
	}
	if b.Finished != 8 {
		t.Errorf("%d flows finished; want 8", b.Finished)
	}
}

// Pauses under an incast go up a tree and never round.
func TestIncastIsNoDeadlock(t *testing.T) {
	o := All()
	o.Deadlock = 20 * time.Microsecond // shorter than many of the pauses
	b := fatTree(t, unthrottled(), o)
	b.add(incast(500_000)...)
	b.run(20 * time.Millisecond)
	if b.Finished != 15 || len(b.r.Deadlocks()) != 0 || len(b.r.Pauses()) == 0 {
		t.Errorf("%d flows finished, %d deadlocks, %d pauses; want 15, none, some", b.Finished, len(b.r.Deadlocks()), len(b.r.Pauses()))
	}
}
