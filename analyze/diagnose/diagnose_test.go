package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// TestEqualIncastIsNoStorm: the paper's weights of four equal flows are about
// nothing, and its rule would call this a storm.
func TestEqualIncastIsNoStorm(t *testing.T) {
	b := incast(t, all...)
	v := b.diagnose("h8>h5")
	b.want(v[0], anomaly.PFCBackpressure, anomaly.ContendingFlows, anomaly.MicroBurst, "leaf1>h4", "h0>h4", "h1>h4",
		"h2>h4", "h3>h4")
	if want := []model.Port{b.port("spine0>leaf1"), b.port("leaf1>h4")}; !slices.Equal(v[0].Path, want) ||
		v[0].Confidence < 0.95 {
		t.Errorf("path %v, confidence %v; want %v and at least 0.95", v[0].Path, v[0].Confidence, want)
	}
	m := b.newAnalysis("h8>h5")
	for _, e := range m.g.Contributions().At(b.node(m, "leaf1>h4")) {
		if e.Weight > 2 {
			t.Errorf("a flow of the incast weighs %v; want about nothing, or this test shows nothing", e.Weight)
		}
	}
}

func storm(t *testing.T) *testFabric {
	b := leafSpine(t, all...)
	b.addPausedQueue("spine0>leaf1", 200*kb, 5*kb, 100*µs)
	b.addBacklog("h8>h5", 10*kb, "leaf2>spine0", "spine0>leaf1")
	b.addQueue("leaf2>spine0", 10*kb)
	b.addQueue("leaf1>h5", 0)
	b.addFlowEpoch("h8>h5", "leaf1>h5", 9, 5, class)
	b.addBacklog("h0>h4", 300*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h4")
	b.addQueue("leaf0>spine0", 0)
	return b
}

func TestHostThatPauses(t *testing.T) {
	b := storm(t)
	p := b.addPausedQueue("leaf1>h4", 300*kb, 5*kb, 200*µs)
	b.want(b.diagnose("h8>h5")[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.NICStorm, "leaf1>h4")
	// The same with pauses between which it resumes the port.
	p.Pauses, p.LastStart, p.LastEnd = 9, now.Add(-20*µs), now.Add(-30*µs)
	b.want(b.diagnose("h8>h5")[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.DrainsSlowly, "leaf1>h4")
	// Five microseconds later it is not paused, but was not congested by itself.
	r := b.reports[b.id("leaf1")]
	for i := range r.Ports {
		r.Ports[i].Paused = false
	}
	p.LastEnd = now.Add(-5 * µs)
	b.want(b.diagnose("h8>h5")[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.DrainsSlowly, "leaf1>h4")
}

// TestPausesOfLongAgoAreNoCause of a flow of which no packet was measured: switches
// remember intervals of before the reported epochs.
func TestPausesOfLongAgoAreNoCause(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf2>spine0", 0)
	b.addQueue("spine0>leaf1", 0)
	b.addBacklog("h8>h5", 0, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	p := b.addPausedQueue("leaf1>h5", 0, 5*kb, 200*µs)
	b.reports[b.id("leaf1")].Ports[0].Paused = false
	p.LastEnd = now.Add(-10 * µs)
	b.want(b.diagnose("h8>h5")[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.UnknownDetail, "leaf1>h5")
	p.LastStart, p.BurstStart, p.LastEnd = now.Add(-200*time.Millisecond), now.Add(-200*time.Millisecond), now.Add(-160*time.Millisecond)
	b.want(b.diagnose("h8>h5")[0], anomaly.None, anomaly.NoRootCause, anomaly.UnknownDetail, "")
}

func TestContentionOnTheVictimsPath(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf2>spine0", 0)
	b.addQueue("spine0>leaf1", 1*kb)
	b.addQueue("leaf1>h5", 300*kb)
	b.addBacklog("h8>h5", 20*kb, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	b.addBacklog("h0>h5", 150*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h5")
	b.addBacklog("h6>h5", 130*kb, "leaf1>h5")
	b.addQueue("leaf0>spine0", 0)
	b.want(b.diagnose("h8>h5")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.MicroBurst, "leaf1>h5",
		"h0>h5", "h6>h5", "h8>h5")
}

func TestNothingIsNothing(t *testing.T) {
	b := leafSpine(t, all...)
	b.addBacklog("h8>h5", 2*kb, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.addQueue(p, 2*kb)
	}
	v := b.diagnose("h8>h5")
	if len(v) != 1 || v[0].Anomaly != anomaly.None || v[0].Confidence < 0.9 {
		t.Errorf("verdicts %+v; want one None with confidence 0.9 or more", v)
	}
}

// TestMissingReportsAreNoCause removes the report that the pause path leads to.
func TestMissingReportsAreNoCause(t *testing.T) {
	b := incast(t, "leaf0", "leaf2", "spine0")
	v := b.diagnose("h8>h5")
	if len(v) != 1 || v[0].Anomaly != anomaly.None || v[0].Confidence > 0.2 || !v[0].Incomplete ||
		!strings.Contains(strings.Join(v[0].Evidence, " "), "leaf1") {
		t.Errorf("verdicts %+v without leaf1's report; want none with low confidence, for lack of leaf1", v)
	}
	b = incast(t, all...)
	b.reports[b.id("leaf1")].Missing = 1
	b.reports[b.id("leaf1")].PortPairBacklogs = nil
	if v := b.diagnose("h8>h5"); v[0].Anomaly != anomaly.None || v[0].Confidence > 0.2 {
		t.Errorf("verdicts %+v with half of leaf1's report; want none with low confidence", v)
	}
	b = incast(t, all...)
	b.reports[b.id("leaf0")] = &provenance.Report{Header: epoch.Header{
		Switch: b.id("leaf0"), Snapshot: now,
		EpochLength: time.Millisecond,
	}, Missing: 2}
	if v := b.diagnose("h8>h5"); v[0].Anomaly != anomaly.PFCBackpressure || !v[0].Incomplete {
		t.Errorf("verdicts %+v with a part missing elsewhere; want the cause, and that more may come", v)
	}
}

// TestSwitchWithoutFlows is the paper's partial deployment: where contention is
// at a switch that keeps no flows, the port is known and the flows are not.
func TestSwitchWithoutFlows(t *testing.T) {
	b := incast(t, all...)
	r := b.reports[b.id("leaf1")]
	r.Flags |= epoch.NoFlows
	r.Flows, r.FlowBacklogs = nil, nil
	v := b.diagnose("h8>h5")
	b.want(v[0], anomaly.PFCBackpressure, anomaly.ContendingFlows, anomaly.UnknownDetail, "leaf1>h4")
	if !slices.ContainsFunc(v[0].Evidence, func(s string) bool { return strings.Contains(s, "no record of the flows") }) {
		t.Errorf("evidence %q; want that flows are unknown", v[0].Evidence)
	}
	// On the victim's path: its queues are those of the intended route.
	r = b.reports[b.id("spine0")]
	r.Flags |= epoch.NoFlows
	r.Flows, r.FlowBacklogs = nil, nil
	b.want(b.diagnose("h8>h5")[0], anomaly.PFCBackpressure, anomaly.ContendingFlows, anomaly.UnknownDetail, "leaf1>h4")
}

// TestNoSwitchKeepsFlows: a host that pauses is found without them, too.
func TestNoSwitchKeepsFlows(t *testing.T) {
	b := storm(t)
	b.addPausedQueue("leaf1>h4", 300*kb, 0, 200*µs)
	for _, r := range b.reports {
		r.Flags |= epoch.NoFlows
		r.Flows, r.FlowBacklogs = nil, nil
	}
	b.want(b.diagnoseInFlight("h8>h5", 90*µs)[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.NICStorm, "leaf1>h4")
}

func TestSeveralAtOnce(t *testing.T) {
	b := storm(t)
	b.addPausedQueue("leaf1>h4", 300*kb, 5*kb, 200*µs)
	b.addQueue("leaf1>h6", 250*kb)
	b.addBacklog("h1>h6", 250*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h6")
	v := b.diagnose("h8>h5")
	if len(v) != 2 {
		t.Fatalf("%d verdicts %+v; want two", len(v), v)
	}
	b.want(v[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.NICStorm, "leaf1>h4")
	b.want(v[1], anomaly.PFCBackpressure, anomaly.ContendingFlows, anomaly.UnknownDetail, "leaf1>h6", "h1>h6")
}

// TestTheWaitMayBeginInTheHost: the victim's own port is paused for what another
// flow of its host waits for.
func TestTheWaitMayBeginInTheHost(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf1>h4", 400*kb)
	b.addBacklog("h6>h4", 300*kb, "leaf1>h4")
	b.addBacklog("h7>h4", 100*kb, "leaf1>h4")
	if v := b.diagnose("h6>h8"); v[0].Anomaly != anomaly.None {
		t.Errorf("verdict %+v of a host that was not paused; want none", v[0])
	}
	v := b.detect("h6>h8", Detection{HostPaused: true})
	b.want(v[0], anomaly.PFCBackpressure, anomaly.ContendingFlows, anomaly.MicroBurst, "leaf1>h4", "h6>h4", "h7>h4")
	if v[0].Path[0] != (model.Port{Node: b.id("h6"), Port: 1}) {
		t.Errorf("path %v; want it to begin at h6's own port", v[0].Path)
	}
}

// TestSameFlowsInSeveralQueues: flows that congest two queues of a path, one after
// the other, are one cause, at the queue that cost more.
func TestSameFlowsInSeveralQueues(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf2>spine0", 0)
	b.addFlowEpoch("h8>h5", "leaf2>spine0", 9, 5, class)
	b.addQueue("spine0>leaf1", 150*kb)
	b.addQueue("leaf1>h5", 250*kb)
	for _, h := range []string{"h0", "h1"} {
		b.addBacklog(h+">h5", 75*kb, "leaf0>spine0", "spine0>leaf1")
		b.addBacklog(h+">h5", 125*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h5")
	}
	b.addQueue("leaf0>spine0", 0)
	b.addBacklog("h8>h5", 2*kb, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	v := b.diagnoseInFlight("h8>h5", 25*µs)
	if len(v) != 1 || v[0].Cause != anomaly.ContendingFlows || len(v[0].Culprits) < 2 || v[0].Share < 0.5 {
		t.Errorf("verdicts %+v; want one on h0 and h1", v)
	}
}

// TestLittleExplainedIsNoCause: a packet was late by 90 µs, of which queues explain a
// few.
func TestLittleExplainedIsNoCause(t *testing.T) {
	b := leafSpine(t, all...)
	b.addBacklog("h8>h5", 60*kb, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.addQueue(p, 60*kb)
	}
	v := b.detect("h8>h5", Detection{Latency: 99 * µs})
	if len(v) != 1 || v[0].Anomaly != anomaly.None || !strings.Contains(v[0].Evidence[0], "explain only") || v[0].Account == nil {
		t.Errorf("verdicts %+v; want none, with its account", v)
	}
}
