package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// deadlockRing is a ring of four switches, h0 and h1 at s0 and so on, with all
// traffic clockwise and every port of the cycle paused.
func deadlockRing(t *testing.T) *testFabric {
	b := ring(t, "s0", "s1", "s2", "s3")
	for _, p := range []string{"s0>s1", "s1>s2", "s2>s3", "s3>s0"} {
		b.addPausedQueue(p, 200*kb, 5*kb, 100*µs)
	}
	b.addBacklog("h0>h4", 50*kb, "s0>s1", "s1>s2")
	b.addBacklog("h2>h6", 50*kb, "s1>s2", "s2>s3")
	b.addBacklog("h4>h0", 50*kb, "s2>s3", "s3>s0")
	b.addBacklog("h6>h2", 50*kb, "s3>s0", "s0>s1")
	return b
}

// pair is a deadlock cycle of two queues, as wrong routes would have it.
func pair(t *testing.T) *testFabric {
	b := ring(t, "s0", "s1", "s2", "s3")
	b.addPausedQueue("s0>s1", 200*kb, 5*kb, 100*µs)
	b.addPausedQueue("s1>s0", 200*kb, 5*kb, 100*µs)
	b.addBacklog("h0>h4", 50*kb, "s0>s1", "s1>s0")
	b.addBacklog("h2>h0", 50*kb, "s1>s0", "s0>s1")
	return b
}

func (b *testFabric) wantCycle(v Verdict, persistent bool) {
	b.t.Helper()
	want := []model.Port{b.port("s0>s1"), b.port("s1>s2"), b.port("s2>s3"), b.port("s3>s0")}
	if !samePorts(v.DeadlockCycle, want) || v.Persistent != persistent {
		b.t.Errorf("cycle %v, persistent %v; want %v, %v", v.DeadlockCycle, v.Persistent, want, persistent)
	}
}

func TestCycleTriggeredInside(t *testing.T) {
	b := deadlockRing(t)
	r := b.reports[b.id("s2")]
	for i := range r.Pauses {
		r.Pauses[i].BytesAtBurstStart = 180 * kb
	}
	b.addBacklog("h5>h0", 60*kb, "s2>s3")
	v := b.diagnose("h0>h4")
	b.want(v[0], anomaly.DeadlockInLoop, anomaly.ContendingFlows, anomaly.MicroBurst, "s2>s3", "h5>h0", "h2>h6", "h4>h0")
	b.wantCycle(v[0], false)

	// Flows that came after the cycle closed did not trigger it.
	b.addBacklog("h4>h1", 90*kb, "s2>s3")
	r.Flows[len(r.Flows)-1].First = 999 * µs
	v = b.diagnose("h0>h4")
	b.want(v[0], anomaly.DeadlockInLoop, anomaly.ContendingFlows, anomaly.MicroBurst, "s2>s3", "h5>h0", "h2>h6", "h4>h0")

	// Same when the earlier flows' records were evicted and only their queued packets remain.
	r.Flows = r.Flows[len(r.Flows)-1:]
	v = b.diagnose("h0>h4")
	b.want(v[0], anomaly.DeadlockInLoop, anomaly.ContendingFlows, v[0].Detail, "s2>s3", "h5>h0", "h2>h6", "h4>h0")
	// A flow with more bytes waiting than came since was there before.
	r.Flows[0].Bytes = 10 * kb
	v = b.diagnose("h0>h4")
	b.want(v[0], anomaly.DeadlockInLoop, anomaly.ContendingFlows, v[0].Detail, "s2>s3", "h5>h0", "h2>h6", "h4>h0", "h4>h1")
}

func TestCycleTriggeredOutside(t *testing.T) {
	b := deadlockRing(t)
	b.addQueue("s2>h4", 500*kb)
	b.addBacklog("h0>h4", 150*kb, "s0>s1", "s1>s2", "s2>h4")
	b.addBacklog("h5>h4", 350*kb, "s2>h4")
	b.addEpisode("s2>h4", 0, 150*µs, 500*kb)
	v := b.diagnose("h6>h2")
	b.want(v[0], anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, anomaly.MicroBurst, "s2>h4", "h5>h4", "h0>h4")
	b.wantCycle(v[0], false)
	// A queue that was congested only after the cycle closed did not trigger it.
	b.reports[b.id("s2")].Episodes[0].First = now.Add(-60 * µs)
	b.want(b.diagnose("h6>h2")[0], anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, anomaly.UnknownDetail, "")

	b = deadlockRing(t)
	b.addPausedQueue("s2>h4", 150*kb, 1*kb, 300*µs)
	b.addBacklog("h0>h4", 150*kb, "s0>s1", "s1>s2", "s2>h4")
	v = b.diagnose("h6>h2")
	b.want(v[0], anomaly.DeadlockOutOfLoop, anomaly.HostInjection, anomaly.NICStorm, "s2>h4")
	b.wantCycle(v[0], false)
}

// TestCycleBlockedByAResumedQueue: a queue outside, which the cycle waits for, was
// resumed just now, and the host downstream of it keeps pausing.
func TestCycleBlockedByAResumedQueue(t *testing.T) {
	b := pair(t)
	b.addPausedQueue("s1>s2", 200*kb, 5*kb, 100*µs).LastEnd = now.Add(-3 * µs)
	b.reports[b.id("s1")].Ports[1].Paused = false
	b.addBacklog("h1>h4", 100*kb, "s0>s1", "s1>s2", "s2>h4")
	b.addPausedQueue("s2>h4", 150*kb, 1*kb, 300*µs)
	v := b.diagnose("h0>h4")
	b.want(v[0], anomaly.DeadlockOutOfLoop, anomaly.HostInjection, anomaly.NICStorm, "s2>h4")
	if want := []model.Port{b.port("s0>s1"), b.port("s1>s0")}; !samePorts(v[0].DeadlockCycle, want) {
		t.Errorf("cycle %v; want %v", v[0].DeadlockCycle, want)
	}
}

// TestCycleBlockedByACongestedQueue: the same, and downstream of the queue that
// was resumed 15 µs ago is a congested one. It paused the other only if it was
// congested then.
func TestCycleBlockedByACongestedQueue(t *testing.T) {
	for lasted, want := range map[time.Duration]anomaly.RootCause{
		300 * µs: anomaly.ContendingFlows,
		10 * µs:  anomaly.NoRootCause,
	} {
		b := pair(t)
		r := b.reports[b.id("s1")]
		b.addPausedQueue("s1>s2", 200*kb, 5*kb, 100*µs).LastEnd = now.Add(-15 * µs)
		r.Ports[1].Paused = false
		b.addBacklog("h1>h4", 100*kb, "s0>s1", "s1>s2", "s2>h4")
		b.addBacklog("h5>h4", 100*kb, "s2>h4")
		b.addQueue("s2>h4", 200*kb)
		b.addEpisode("s2>h4", 0, lasted, 200*kb)
		if v := b.diagnose("h0>h4"); len(v) != 1 || v[0].Anomaly != anomaly.DeadlockOutOfLoop || v[0].Cause != want {
			t.Errorf("congested since %v: %+v; want an out-of-loop deadlock of cause %v", lasted, v, want)
		}
	}
}

// TestCycleWithTwoTriggers: a queue of the cycle was congested by itself, and one
// outside was in the epochs, of which nothing is left.
func TestCycleWithTwoTriggers(t *testing.T) {
	b := deadlockRing(t)
	b.reports[b.id("s2")].Pauses[0].BytesAtBurstStart = 180 * kb
	b.addQueue("s2>h4", 0)
	e := b.reports[b.id("s2")].PortEpochs
	e[len(e)-1].Depth = 100 * 150
	b.addDepth("h0>h4", "s2>h4", 9, 50, 150)
	b.addDepth("h5>h4", "s2>h4", 9, 50, 150)
	b.setPausedPackets("s1>s2", 80, 80)
	b.reports[b.id("s2")].Meters = append(b.reports[b.id("s2")].Meters, epoch.Meter{
		Epoch: 9, In: b.port("s2>s1").Port, Out: b.port("s2>h4").Port, Priority: class, Packets: 50, Bytes: 50 * kb,
	})
	v := b.diagnose("h6>h2")
	if len(v) != 2 {
		t.Fatalf("%d verdicts %+v; want one for each trigger", len(v), v)
	}
	b.want(v[0], anomaly.DeadlockInLoop, anomaly.ContendingFlows, v[0].Detail, "s2>s3", "h2>h6", "h4>h0")
	b.want(v[1], anomaly.DeadlockOutOfLoop, anomaly.ContendingFlows, v[1].Detail, "s2>h4", "h0>h4", "h5>h4")
}

func TestCycleWithoutATrigger(t *testing.T) {
	b := deadlockRing(t)
	v := b.diagnose("h0>h4")
	b.want(v[0], anomaly.DeadlockOutOfLoop, anomaly.NoRootCause, anomaly.UnknownDetail, "")
	if b.wantCycle(v[0], false); v[0].Confidence > 0.5 {
		t.Errorf("confidence %v of a cycle without a known trigger; want it low", v[0].Confidence)
	}
}

// TestPausesAlongACycleAreNoDeadlock: one queue of the cycle sends.
func TestPausesAlongACycleAreNoDeadlock(t *testing.T) {
	b := deadlockRing(t)
	r := b.reports[b.id("s2")]
	r.Ports[0].Paused = false
	r.Pauses[0].LastEnd = now.Add(-1 * µs)
	r.Pauses[0].BytesAtBurstStart = 190 * kb
	v := b.diagnose("h0>h4")
	if len(v[0].DeadlockCycle) != 0 || v[0].Anomaly != anomaly.PFCBackpressure || v[0].Initial != b.port("s2>s3") {
		t.Errorf("verdict %+v; want PFC from s2>s3, and no deadlock", v[0])
	}
}

// TestPausesThatMoveBetweenSnapshots: all queues were paused when their switches
// were polled, one of them for less time than the snapshots are apart.
func TestPausesThatMoveBetweenSnapshots(t *testing.T) {
	b := deadlockRing(t)
	b.reports[b.id("s1")].Pauses[0].LastStart = now.Add(-5 * µs)
	b.reports[b.id("s2")].Pauses[0].BytesAtBurstStart = 180 * kb
	for _, v := range b.diagnose("h0>h4") {
		if len(v.DeadlockCycle) > 0 {
			t.Errorf("verdict %v with the cycle %v; want no deadlock", v.Anomaly, v.DeadlockCycle)
		}
	}
}

// TestTransientCycle: a queue of the cycle was congested when it was paused, and
// is resumed now. It is the cause if the cycle waits for nothing outside.
func TestTransientCycle(t *testing.T) {
	for outside, want := range map[uint64]string{0: "s2>s3", 100 * kb: "s2>h4"} {
		b := deadlockRing(t)
		r := b.reports[b.id("s2")]
		r.Ports[0].Paused = false
		r.Pauses[0].BytesAtBurstStart, r.Pauses[0].LastEnd = 180*kb, now.Add(-2*µs)
		if outside > 0 {
			b.addQueue("s2>h4", 400*kb)
			b.addBacklog("h2>h4", outside, "s1>s2", "s2>h4")
			b.addBacklog("h5>h4", 300*kb, "s2>h4")
		}
		if v := b.diagnose("h0>h4"); len(v) != 1 || v[0].Initial != b.port(want) || len(v[0].DeadlockCycle) > 0 {
			t.Errorf("%d bytes outside: %+v; want %s", outside, v, want)
		}
	}
}

// TestPausesAlongACycleInEpochs: among queues that waited for each other in the
// epochs, the one that was deepest by itself is named, and the victim's own only
// if no other was.
func TestPausesAlongACycleInEpochs(t *testing.T) {
	for want, deep := range map[string]map[string]uint64{
		"s2>s3": {"s0>s1": 500, "s1>s2": 100, "s2>s3": 200},
		"s0>s1": {"s0>s1": 500, "s1>s2": 10},
		"":      {"s1>s2": 10},
	} {
		b := deadlockRing(t)
		for port, mean := range deep {
			r := b.reports[b.port(port).Node]
			r.PortEpochs[0].Depth = mean * uint64(r.PortEpochs[0].Packets)
			for i := range r.Flows {
				r.Flows[i].Depth = mean * uint64(r.Flows[i].Packets)
			}
		}
		m := b.newAnalysis("h0>h4")
		var l cycle
		for _, p := range []string{"s0>s1", "s1>s2", "s2>s3", "s3>s0"} {
			l.nodes = append(l.nodes, b.node(m, p))
		}
		l.entry = l.nodes[:1]
		if n := m.deepestInCycle(l); n < 0 != (want == "") || n >= 0 && m.g.Nodes[n].Port != b.port(want) {
			t.Errorf("depths %v: node %d of %v; want %q", deep, n, l.nodes, want)
		}
	}
}

func TestCompareSnapshots(t *testing.T) {
	first := deadlockRing(t)
	g := first.newAnalysis("h0>h4").g
	cycle := first.diagnose("h0>h4")[0].DeadlockCycle
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
	v := b.diagnose("h0>h4")
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
	direct := Verdict{
		Anomaly: anomaly.FlowContention, Cause: anomaly.ContendingFlows, Initial: one.Initial,
		Victim: b.flow("h0>h4"),
	}
	none := Verdict{Victim: b.flow("h1>h9")}
	ring := deadlockRing(t)
	lost := ring.diagnose("h0>h4")[0]
	known := lost
	known.Cause, known.Initial, known.Confidence = anomaly.HostInjection, b.port("leaf0>h0"), 0.3
	got := Merge([]Verdict{none, one, direct, two, lost, known})
	if len(got) != 2 || got[0].Anomaly != anomaly.DeadlockOutOfLoop || got[0].Cause != anomaly.HostInjection ||
		got[1].Anomaly != anomaly.PFCBackpressure || got[1].Detail != anomaly.PeriodicBurst ||
		got[1].Confidence != one.Confidence {
		t.Fatalf("Merge = %+v; want the deadlock with its cause, then the incast", got)
	}
	for _, k := range []model.FlowKey{one.Victim, two.Victim, direct.Victim} {
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

// TestCycleThatClosedAfterAResume: the victim's queue was resumed 15 µs ago. One
// that it sends to was paused since, because of it; another was paused before,
// because of what is downstream. Only that one delayed the victim.
func TestCycleThatClosedAfterAResume(t *testing.T) {
	for paused, want := range map[time.Duration]string{12 * µs: "s1>s2", 90 * µs: "s1>s0 s1>s2"} {
		b := ring(t, "s0", "s1", "s2", "s3")
		b.addPausedQueue("s0>s1", 200*kb, 5*kb, 100*µs).LastEnd = now.Add(-15 * µs)
		b.reports[b.id("s0")].Ports[0].Paused = false
		b.addPausedQueue("s1>s0", 500*kb, 60*kb, paused).LastEnd = now.Add(-2 * µs)
		b.reports[b.id("s1")].Ports[0].Paused = false
		b.addPausedQueue("s1>s2", 200*kb, 5*kb, 300*µs)
		b.addQueue("s2>h4", 400*kb)
		b.addEpisode("s2>h4", 0, 400*µs, 400*kb)
		b.addBacklog("h0>h4", 100*kb, "s0>s1", "s1>s2", "s2>h4")
		b.addBacklog("h5>h4", 300*kb, "s2>h4")
		b.addBacklog("h0>h2", 100*kb, "s0>s1", "s1>s0")
		b.addBacklog("h2>h1", 100*kb, "s1>s0", "s0>s1")
		b.addBacklog("h1>h2", 50*kb, "s0>s1")
		m := b.newAnalysis("h1>h2")
		var got []string
		for _, e := range m.recentBlockers(b.node(m, "s0>s1")) {
			p := viewPort(b.fabric, m.g.Nodes[e.To].Port)
			got = append(got, p.Node+">"+p.Peer)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("paused %v ago: s0>s1 waits for %v; want %s", paused, got, want)
		}
		if v := b.diagnose("h1>h2"); len(v) != 1 || v[0].Initial != b.port("s2>h4") {
			t.Errorf("paused %v ago: %+v; want s2>h4", paused, v)
		}
	}
}
