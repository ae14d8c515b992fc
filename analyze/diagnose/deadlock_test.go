package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// deadlockRing is a ring of four switches, h0 and h1 at s0 and so on, with all
// traffic clockwise and every port of the cycle paused since 100 µs.
func deadlockRing(t *testing.T) *testFabric {
	b := ring(t, "s0", "s1", "s2", "s3")
	for _, p := range []string{"s0>s1", "s1>s2", "s2>s3", "s3>s0"} {
		b.addPausedQueue(p, 200*kb, 0, 100*µs)
	}
	b.addBacklog("h0>h4", 50*kb, "s0>s1", "s1>s2")
	b.addBacklog("h2>h6", 50*kb, "s1>s2", "s2>s3")
	b.addBacklog("h4>h0", 50*kb, "s2>s3", "s3>s0")
	b.addBacklog("h6>h2", 50*kb, "s3>s0", "s0>s1")
	return b
}

func (b *testFabric) wantCycle(v Verdict, persistent bool) {
	b.t.Helper()
	want := []model.Port{b.port("s0>s1"), b.port("s1>s2"), b.port("s2>s3"), b.port("s3>s0")}
	if !samePorts(v.DeadlockCycle, want) || v.Persistent != persistent {
		b.t.Errorf("cycle %v, persistent %v; want %v, %v", v.DeadlockCycle, v.Persistent, want, persistent)
	}
}

// TestCycleTriggeredInside: s2>s3 was congested when the first pause began.
func TestCycleTriggeredInside(t *testing.T) {
	b := deadlockRing(t)
	for i, sw := range []string{"s2", "s3", "s0", "s1"} { // against the traffic
		p := &b.reports[b.id(sw)].Pauses[0]
		p.LastStart, p.BurstStart = p.LastStart.Add(-time.Duration(10*i)*µs), p.BurstStart.Add(-time.Duration(10*i)*µs)
	}
	b.addEpisode("s2>s3", 100*µs, 100*µs, 180*kb)
	b.reports[b.id("s2")].Pauses[0].BytesAtBurstStart = 180 * kb
	b.addBacklog("h5>h0", 60*kb, "s2>s3")
	v := b.diagnoseInFlight("h0>h4", 90*µs)
	b.want(v[0], anomaly.DeadlockInLoop, anomaly.ContendingFlows, anomaly.MicroBurst, "s2>s3", "h5>h0", "h2>h6", "h4>h0")
	b.wantCycle(v[0], false)
	if want := now.Add(-100 * µs); v[0].CycleClosed < want.Add(-5*µs) || v[0].CycleClosed > want.Add(5*µs) {
		t.Errorf("the cycle closed at %v; want %v", v[0].CycleClosed, want)
	}
	if v[0].Share < 0.9 || v[0].Confidence < 0.9 || v[0].Account == nil || v[0].Account.Late < 80*µs {
		t.Errorf("share %v, confidence %v, account %+v; want about all of 90 µs", v[0].Share, v[0].Confidence, v[0].Account)
	}
}

// TestTriggerOfADeadlock: what the account says of it is in the verdict. Time that the
// trigger cost beside the deadlock is the same cause.
func TestTriggerOfADeadlock(t *testing.T) {
	b := deadlockRing(t)
	b.addQueue("s2>h4", 0)
	place := func(port string) attribution.Place {
		p := b.port(port)
		peer := b.fabric.Port(p).Peer
		return attribution.Place{Queue: attribution.Queue{Port: p, Class: class}, Peer: peer, PeerIsHost: strings.Contains(port, ">h")}
	}
	cycle := []attribution.Place{place("s0>s1"), place("s1>s2"), place("s2>s3"), place("s3>s0")}
	outside, inside := place("s2>h4"), place("s2>s3")
	flow := []attribution.Culprit{{Flow: b.flow("h0>h4"), Share: 1}}
	for _, tc := range []struct {
		deadlock attribution.DeadlockCycle
		anomaly  anomaly.Type
		cause    anomaly.RootCause
		initial  string
		culprits []string
	}{
		{attribution.DeadlockCycle{}, anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, "", nil},
		{attribution.DeadlockCycle{Trigger: &outside, TriggerKind: attribution.HostInjection}, anomaly.DeadlockOutOfLoop, anomaly.HostInjection, "s2>h4", nil},
		{attribution.DeadlockCycle{Trigger: &outside, TriggerKind: attribution.Contention}, anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, "s2>h4", []string{"h0>h4"}},
		{attribution.DeadlockCycle{Trigger: &inside, TriggerKind: attribution.Contention, Inside: true}, anomaly.DeadlockInLoop, anomaly.ContendingFlows, "s2>s3", []string{"h0>h4"}},
	} {
		m := b.newAnalysis("h0>h4")
		m.routes = m.cfg.Intent.At(m.g.To)
		m.accountForPacket()
		tc.deadlock.Cycle = cycle
		want := 0.6
		m.account = &attribution.Account{Late: 100 * µs, Deadlocks: []attribution.DeadlockCycle{tc.deadlock}, Terms: []attribution.Term{
			{Kind: attribution.Deadlock, Place: &cycle[0], Time: 60 * µs},
		}}
		if tc.deadlock.Trigger != nil {
			want = 0.9
			beside := attribution.Term{Kind: tc.deadlock.TriggerKind, Place: tc.deadlock.Trigger, Time: 30 * µs, Deadlock: -1}
			if beside.Kind == attribution.Contention {
				beside.Culprits = flow
			}
			m.account.Terms = append(m.account.Terms, beside)
		}
		causes := m.causes()
		if len(causes) != 1 {
			t.Fatalf("%d causes %+v; want one", len(causes), causes)
		}
		v := m.conclude(&causes[0])
		b.want(v, tc.anomaly, tc.cause, v.Detail, tc.initial, tc.culprits...)
		b.wantCycle(v, false)
		if v.Share < want-0.01 || v.Share > want+0.01 {
			t.Errorf("share %v; want %v", v.Share, want)
		}
	}
}

// TestCycleWithoutATrigger: nothing is left of it.
func TestCycleWithoutATrigger(t *testing.T) {
	b := deadlockRing(t)
	v := b.diagnoseInFlight("h0>h4", 90*µs)
	b.want(v[0], anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, anomaly.UnknownDetail, "")
	b.wantCycle(v[0], false)
}

// TestPausesAlongACycleAreNoDeadlock: one queue of the cycle was resumed before the
// last was paused.
func TestPausesAlongACycleAreNoDeadlock(t *testing.T) {
	b := deadlockRing(t)
	p := &b.reports[b.id("s1")].Pauses[0]
	p.BurstStart, p.LastStart, p.LastEnd = now.Add(-130*µs), now.Add(-130*µs), now.Add(-110*µs)
	b.reports[b.id("s1")].Ports[0].Paused = false
	for _, v := range b.diagnoseInFlight("h0>h4", 90*µs) {
		if len(v.DeadlockCycle) > 0 {
			t.Errorf("verdict %+v; want no deadlock", v)
		}
	}
}

func TestCompareSnapshots(t *testing.T) {
	first := deadlockRing(t)
	g := first.newAnalysis("h0>h4").g
	cycle := first.diagnoseInFlight("h0>h4", 90*µs)[0].DeadlockCycle
	for name, tc := range map[string]struct {
		change func(b *testFabric)
		want   Progress
	}{
		"nothing moved":     {func(*testFabric) {}, NoProgress},
		"a packet was sent": {func(b *testFabric) { b.reports[b.id("s1")].Ports[0].Sent++ }, Progressed},
		"one may send":      {func(b *testFabric) { b.reports[b.id("s1")].Ports[0].Paused = false }, Progressed},
		"one is not seen":   {func(b *testFabric) { delete(b.reports, b.id("s1")) }, ProgressUnknown},
		"one not seen, another moved": {func(b *testFabric) {
			delete(b.reports, b.id("s1"))
			b.reports[b.id("s3")].Ports[0].Sent++
		}, Progressed},
		"the same snapshot": {func(b *testFabric) { b.reports[b.id("s1")].Snapshot = now }, ProgressUnknown},
	} {
		second := deadlockRing(t)
		for _, r := range second.reports {
			r.Snapshot += model.Time(300 * µs)
		}
		tc.change(second)
		if got := CompareSnapshots(g, second.newAnalysis("h0>h4").g, cycle); got != tc.want {
			t.Errorf("%s: CompareSnapshots = %v; want %v", name, got, tc.want)
		}
	}
}

// TestRouteThatClosesACycle: s1 forwards packets for h0 clockwise, although s0 is
// its neighbour.
func TestRouteThatClosesACycle(t *testing.T) {
	b := deadlockRing(t)
	b.addBacklog("h2>h0", 90*kb, "s1>s2", "s2>s3", "s3>s0")
	v := b.diagnoseInFlight("h0>h4", 90*µs)
	if want := (RoutingFault{b.id("s1"), b.id("h0"), b.id("s2")}); v[0].Fault == nil || *v[0].Fault != want {
		t.Errorf("fault %+v; want %+v", v[0].Fault, want)
	}
}

func TestDetails(t *testing.T) {
	tree := func() *testFabric {
		f, err := topo.LeafSpine(2, 2, 4, topo.DefaultLinks()) // h0-h3 at leaf0
		b := newTestFabric(t, f, err, "leaf0", "leaf1", "spine0", "spine1")
		b.addQueue("leaf0>spine0", 300*kb)
		b.addBacklog("h0>h4", 100*kb, "leaf0>spine0")
		b.addBacklog("h1>h4", 100*kb, "leaf0>spine0")
		b.addBacklog("h2>h5", 100*kb, "leaf0>spine0")
		return b
	}
	b := tree()
	b.reports[b.id("leaf0")].PortEpochs[0].Packets = 5000
	b.addQueue("leaf0>spine1", 0)
	b.want(b.diagnose("h0>h4")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.ECMPImbalance,
		"leaf0>spine0", "h0>h4", "h1>h4", "h2>h5")

	b = tree()
	b.reports[b.id("leaf0")].PortEpochs[0].Packets = 5000
	b.addQueue("leaf0>spine1", 300*kb) // no better off
	if v := b.diagnose("h0>h4"); v[0].Detail == anomaly.ECMPImbalance {
		t.Errorf("detail %v where both paths are full; want another", v[0].Detail)
	}

	b = tree()
	p := b.port("leaf0>spine0")
	r := b.reports[p.Node]
	r.PortEpochs = append(r.PortEpochs, epoch.PortEpoch{Epoch: 9, Port: p.Port, Priority: 5, Packets: 1000})
	b.addFlowEpoch("h3>h6", "leaf0>spine0", 9, 1000, 5)
	b.want(b.diagnose("h0>h4")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.PriorityTraffic,
		"leaf0>spine0", "h3>h6")

	b = tree()
	for _, e := range []uint32{3, 5, 7} {
		for _, f := range []string{"h0>h4", "h1>h4", "h2>h5"} {
			b.addFlowEpoch(f, "leaf0>spine0", e, 80, class)
		}
	}
	b.want(b.diagnose("h0>h4")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.PeriodicBurst,
		"leaf0>spine0", "h0>h4", "h1>h4", "h2>h5")

	b = tree()
	for _, f := range []string{"h0>h4", "h1>h4", "h2>h5"} {
		b.addFlowEpoch(f, "leaf0>spine0", 8, 100, class)
	}
	b.want(b.diagnose("h0>h4")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.UnknownDetail,
		"leaf0>spine0", "h0>h4", "h1>h4", "h2>h5")
}

func TestMerge(t *testing.T) {
	b := incast(t, all...)
	one := b.diagnose("h8>h5")[0]
	two := one
	two.Victim, two.Detail, two.Confidence = b.flow("h9>h5"), anomaly.PeriodicBurst, 0.5
	onTheWay := one
	onTheWay.Initial, onTheWay.Culprits, onTheWay.Victim = b.port("leaf0>spine0"), one.Culprits[:2], b.flow("h3>h9")
	direct := Verdict{
		Anomaly: anomaly.FlowContention, Cause: anomaly.ContendingFlows, Initial: one.Initial,
		Victim: b.flow("h0>h4"),
	}
	none := Verdict{Victim: b.flow("h1>h9")}
	ring := deadlockRing(t)
	lost := ring.diagnose("h0>h4")[0]
	known := lost
	known.Cause, known.Initial, known.Confidence = anomaly.HostInjection, b.port("leaf0>h0"), 0.3
	got := Merge([]Verdict{none, one, direct, two, onTheWay, lost, known})
	if len(got) != 2 || got[0].Anomaly != anomaly.DeadlockOutOfLoop || got[0].Cause != anomaly.HostInjection ||
		got[1].Anomaly != anomaly.PFCBackpressure || got[1].Detail != anomaly.PeriodicBurst ||
		got[1].Confidence != one.Confidence {
		t.Fatalf("Merge = %+v; want the deadlock with its cause, then the incast", got)
	}
	for _, k := range []model.FlowKey{one.Victim, two.Victim, direct.Victim, onTheWay.Victim} {
		found := false
		for _, v := range got[1].Victims {
			found = found || v == k
		}
		if !found {
			t.Errorf("victims %v; want %v among them", got[1].Victims, k)
		}
	}
	if got := Merge([]Verdict{none}); len(got) != 1 || got[0].Anomaly != anomaly.None {
		t.Errorf("Merge of nothing found = %+v; want it kept", got)
	}
}
