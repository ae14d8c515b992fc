package diagnose

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// TestBurstThatHasLeft: one flow of a burst that the victim's packets waited for
// is still in the queue at the detection. Those before it are named, too; one
// that passed an empty queue, or was there long before, is not.
func TestBurstThatHasLeft(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf1>h5", 70*kb)
	b.addBacklog("h7>h5", 10*kb, "leaf1>h5")
	b.addBacklog("h6>h5", 60*kb, "leaf1>h5")
	b.addDepth("h7>h5", "leaf1>h5", 9, 20, 200)
	b.addDepth("h6>h5", "leaf1>h5", 9, 50, 60)
	for _, h := range []string{"h0", "h1", "h2"} {
		b.addDepth(h+">h5", "leaf1>h5", 9, 100, 200)
	}
	b.addDepth("h9>h5", "leaf1>h5", 9, 300, 0)
	b.addDepth("h10>h5", "leaf1>h5", 7, 400, 300)
	b.want(b.diagnose("h7>h5")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.MicroBurst, "leaf1>h5",
		"h0>h5", "h1>h5", "h2>h5", "h6>h5", "h7>h5")
	// A victim that found no more in the queue than is there came after they had left.
	r := b.reports[b.id("leaf1")]
	for i := range r.Flows {
		if r.Flows[i].Key == b.flow("h6>h5") {
			r.Flows[i].First = r.EpochLength - 20*µs
		}
	}
	b.want(b.diagnose("h6>h5")[0], anomaly.FlowContention, anomaly.ContendingFlows, anomaly.MicroBurst, "leaf1>h5",
		"h6>h5", "h7>h5")
}

// TestBurstOfTheEpochs: nothing is left of a burst of unequal flows. The paper's
// weights would name the heaviest alone.
func TestBurstOfTheEpochs(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf1>h5", 0)
	e := b.reports[b.id("leaf1")].PortEpochs
	e[len(e)-1].Depth = 100 * 200
	b.addDepth("h7>h5", "leaf1>h5", 9, 1, 200)
	b.addDepth("h6>h5", "leaf1>h5", 9, 600, 220)
	b.addDepth("h0>h5", "leaf1>h5", 9, 200, 180)
	b.addDepth("h1>h5", "leaf1>h5", 9, 190, 180)
	v := b.diagnose("h7>h5")
	b.want(v[0], anomaly.FlowContention, anomaly.ContendingFlows, v[0].Detail, "leaf1>h5", "h6>h5", "h0>h5", "h1>h5")
	// A flow whose own packets found the queue empty was not delayed by it.
	b.addDepth("h4>h5", "leaf1>h5", 9, 5, 0)
	if v := b.diagnose("h4>h5"); v[0].Anomaly != anomaly.None {
		t.Errorf("verdict %+v of a flow that met no other; want none", v[0])
	}
}

// TestOnlyWhatWasThenCounts: epochs are long compared to a packet's latency. A
// queue that was congested, or paused, before the packet was sent did not delay
// it, and a flow that had left by then is no culprit.
func TestOnlyWhatWasThenCounts(t *testing.T) {
	const took = 60 * µs
	ago := func(d time.Duration) model.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		episode, pause time.Duration // how long ago they ended; 0: there was none
		want           anomaly.Type
		culprits       []string
	}{
		"congested then":   {episode: 40 * µs, want: anomaly.FlowContention, culprits: []string{"h6>h5", "h0>h5", "h7>h5"}},
		"congested before": {episode: 300 * µs, want: anomaly.None},
		"paused then":      {pause: 40 * µs, want: anomaly.PFCStorm},
		"paused before":    {pause: 300 * µs, want: anomaly.None},
		"just before":      {pause: 65 * µs, want: anomaly.None},
	} {
		t.Run(name, func(t *testing.T) {
			b := leafSpine(t, all...)
			b.addQueue("leaf1>h5", 0)
			r := b.reports[b.id("leaf1")]
			port := b.port("leaf1>h5").Port
			r.PortEpochs[len(r.PortEpochs)-1].Depth = 100 * 200
			b.addDepth("h7>h5", "leaf1>h5", 9, 5, 200)
			b.addDepth("h6>h5", "leaf1>h5", 9, 60, 200)
			b.addDepth("h0>h5", "leaf1>h5", 9, 20, 200)
			b.addDepth("h1>h5", "leaf1>h5", 9, 20, 200)
			r.Flows[len(r.Flows)-1].Last = 700 * µs // long gone
			if tc.episode > 0 {
				r.Episodes = append(r.Episodes, epoch.CongestionEpisode{
					Port: port, Priority: class,
					First: ago(tc.episode + 30*µs), Last: ago(tc.episode), MaxBytes: 200 * kb,
				})
			}
			if tc.pause > 0 {
				r.PortEpochs[len(r.PortEpochs)-1].Paused = 50
				r.Flows[len(r.Flows)-4].Paused = 4
				r.Episodes = append(r.Episodes, epoch.CongestionEpisode{
					Port: port, Priority: class, First: ago(900 * µs),
					Last: ago(800 * µs), MaxBytes: 200 * kb,
				})
				r.Pauses = append(r.Pauses, epoch.Pause{
					Port: port, Priority: class, LastStart: ago(tc.pause + 30*µs),
					BurstStart: ago(tc.pause + 30*µs), LastEnd: ago(tc.pause), Pauses: 1,
				})
			}
			v := b.diagnoseLate("h7>h5", took)
			var named []model.FlowKey
			for _, c := range v[0].Culprits {
				named = append(named, c.Flow)
			}
			var want []model.FlowKey
			for _, c := range tc.culprits {
				want = append(want, b.flow(c))
			}
			if v[0].Anomaly != tc.want || !slices.Equal(named, want) {
				t.Errorf("verdict %v by %v (%q); want %v by %v", v[0].Anomaly, named, v[0].Evidence, tc.want, tc.culprits)
			}
		})
	}
}

// TestFlowsThatLeftBeforeThePacketCame: the victim's packets say when they came and
// what they found. A flow that had left by then is no culprit, though it was in
// the queue since they were sent, and a short pause before that queue is no
// cause.
func TestFlowsThatLeftBeforeThePacketCame(t *testing.T) {
	b := leafSpine(t, all...)
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.addQueue(p, 0)
	}
	r := b.reports[b.id("leaf1")]
	b.addDepth("h8>h5", "leaf1>h5", 9, 5, 100)
	r.Flows[0].First, r.Flows[0].Last = 960*µs, 961*µs
	b.addDepth("h6>h5", "leaf1>h5", 9, 60, 200)
	r.Flows[1].Last = 955 * µs
	b.addDepth("h0>h5", "leaf1>h5", 9, 60, 200)
	r.Flows[2].Last = 940 * µs
	r.PortEpochs[0].Depth = 100 * 200
	b.addEpisode("leaf1>h5", 39*µs, 261*µs, 900*kb)
	before := b.reports[b.id("spine0")]
	b.addDepth("h8>h5", "spine0>leaf1", 9, 5, 1)
	before.Flows[0].Paused, before.PortEpochs[0].Paused = 3, 3
	before.Pauses = append(before.Pauses, epoch.Pause{
		Port: b.port("spine0>leaf1").Port, Priority: class, BurstStart: now.Add(-45 * µs), LastStart: now.Add(-45 * µs), LastEnd: now.Add(-43 * µs), Pauses: 1, PausedTime: 2 * µs,
	})
	r.Meters = append(r.Meters, epoch.Meter{
		Epoch: 9, In: b.port("leaf1>spine0").Port, Out: b.port("leaf1>h5").Port,
		Priority: class, Packets: 65, Bytes: 65 * kb,
	})
	v := b.diagnoseLate("h8>h5", 60*µs)
	b.want(v[0], anomaly.FlowContention, anomaly.ContendingFlows, v[0].Detail, "leaf1>h5", "h6>h5", "h8>h5")
}

// TestFlowsThatLeftBeforeThePacketWasSent: the victim has been there for long, so its
// packets do not show what the slow one found. What other flows' packets found
// shows when the last of them had left; flows that came after the victim's last
// packet were not ahead of it.
func TestFlowsThatLeftBeforeThePacketWasSent(t *testing.T) {
	b := leafSpine(t, all...)
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.addQueue(p, 0)
	}
	r := b.reports[b.id("leaf1")]
	for i, f := range []struct {
		flow        string
		first, last time.Duration
	}{{"h8>h5", 0, 970 * µs}, {"h6>h5", 0, 930 * µs}, {"h0>h5", 0, 900 * µs}, {"h7>h5", 980 * µs, 990 * µs}} {
		b.addDepth(f.flow, "leaf1>h5", 9, 60, 200)
		r.Flows[i].First, r.Flows[i].Last = f.first, f.last
	}
	r.PortEpochs[0].Depth = 100 * 200
	b.addEpisode("leaf1>h5", 30*µs, 870*µs, 900*kb)
	v := b.diagnoseLate("h8>h5", 60*µs)
	b.want(v[0], anomaly.FlowContention, anomaly.ContendingFlows, v[0].Detail, "leaf1>h5", "h6>h5", "h8>h5")
}

// TestOlderSnapshot: a switch reports a snapshot that it took for another
// detection. What the packet met is counted back from when its own poll came.
func TestOlderSnapshot(t *testing.T) {
	for later, want := range map[time.Duration]anomaly.Type{
		0: anomaly.FlowContention, 10 * µs: anomaly.FlowContention,
		45 * µs: anomaly.None,
	} {
		b := leafSpine(t, all...)
		b.polledAt = map[model.NodeID]model.Time{b.id("leaf1"): now.Add(later)}
		b.addQueue("leaf1>h5", 0)
		b.addDepth("h7>h5", "leaf1>h5", 9, 5, 200)
		b.addDepth("h6>h5", "leaf1>h5", 9, 60, 200)
		b.addEpisode("leaf1>h5", 40*µs, 30*µs, 200*kb)
		if v := b.diagnoseLate("h7>h5", 60*µs); v[0].Anomaly != want {
			t.Errorf("polled %v after the snapshot about a latency of 60 µs, a queue that was congested until 40 µs before "+
				"it: %+v; want %v", later, v[0], want)
		}
	}
}

// TestShortEpisode: beside a host that pauses, the victim met a queue that explains
// some of its latency.
func TestShortEpisode(t *testing.T) {
	for most, want := range map[uint64]int{60 * kb: 1, 600 * kb: 2} {
		b := leafSpine(t, all...)
		for _, p := range []string{"spine0>leaf1", "leaf1>h5"} {
			b.addQueue(p, 0)
			b.addDepth("h8>h5", p, 9, 20, 200)
			b.addDepth("h0>h5", p, 9, 60, 200)
		}
		b.addEpisode("spine0>leaf1", 40*µs, 30*µs, most)
		r := b.reports[b.id("leaf1")]
		r.PortEpochs[0].Paused, r.Flows[0].Paused = 50, 10
		r.Pauses = append(r.Pauses, epoch.Pause{
			Port: b.port("leaf1>h5").Port, Priority: class,
			LastStart: now.Add(-80 * µs), BurstStart: now.Add(-80 * µs), LastEnd: now.Add(-10 * µs), Pauses: 1,
		})
		v := b.diagnoseLate("h8>h5", 90*µs)
		if len(v) != want || v[0].Anomaly != anomaly.PFCStorm {
			t.Errorf("a queue of %d bytes on the path of a packet with a latency of 90 µs: %+v; want a storm first, %d verdicts", most, v, want)
		}
	}
}

// TestShortPause: a queue of the victim's path was paused once, and the victim
// found a large backlog in the next one. A short pause is no cause beside that.
func TestShortPause(t *testing.T) {
	for name, tc := range map[string]struct {
		lasted time.Duration
		pauses uint64
		found  uint64 // packets that the victim found
		want   bool
	}{
		"short":                     {6 * µs, 1, 500, true},
		"short, one of many":        {6 * µs, 9, 500, false},
		"long":                      {20 * µs, 1, 500, false},
		"short, and nothing beside": {6 * µs, 1, 0, false},
		"for 3 µs":                  {3 * µs, 1, 0, true},
	} {
		b := leafSpine(t, all...)
		b.addQueue("spine0>leaf1", 0)
		b.addQueue("leaf1>h5", 0)
		b.addDepth("h8>h5", "leaf1>h5", 9, 20, tc.found)
		b.addEpisode("leaf1>h5", 10*µs, 60*µs, 600*kb)
		r := b.reports[b.id("spine0")]
		p := epoch.Pause{
			Port: b.port("spine0>leaf1").Port, Priority: class, LastStart: now.Add(-50 * µs),
			BurstStart: now.Add(-50 * µs), LastEnd: now.Add(tc.lasted - 50*µs), Pauses: tc.pauses,
		}
		if tc.pauses > 1 {
			p.BurstStart = p.BurstStart.Add(-30 * µs)
		}
		r.Pauses = append(r.Pauses, p)
		m := b.newAnalysis("h8>h5")
		m.detection.Latency = 90 * µs
		m.victimQueues = []int{b.node(m, "spine0>leaf1"), b.node(m, "leaf1>h5")}
		n := b.node(m, "spine0>leaf1")
		if got := m.pausedBriefly(n) || m.pauseIsMinor(n); got != tc.want {
			t.Errorf("%s: minor: %v, want %v", name, got, tc.want)
		}
	}
}

// TestForgedEpisode: a congestion episode of one byte in a queue whose packets
// found many. Nothing has weight, and the confidence still is a number.
func TestForgedEpisode(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf1>h5", 0)
	b.reports[b.id("leaf1")].PortEpochs[0].Depth = 100 * 200
	b.addDepth("h7>h5", "leaf1>h5", 9, 5, 200)
	b.addDepth("h6>h5", "leaf1>h5", 9, 60, 200)
	b.addEpisode("leaf1>h5", 40*µs, 30*µs, 1)
	if v := b.diagnoseLate("h7>h5", 90*µs); v[0].Anomaly != anomaly.FlowContention ||
		!(v[0].Confidence >= 0 && v[0].Confidence <= 1) {
		t.Errorf("%+v; want contention with a confidence from 0 to 1", v[0])
	}
}

// TestFractionOfARecord: packets of a flow joined from 100 µs to 300 µs of an
// epoch.
func TestFractionOfARecord(t *testing.T) {
	b := leafSpine(t, all...)
	b.addQueue("leaf1>h5", 0)
	b.addFlowEpoch("h7>h5", "leaf1>h5", 9, 50, class)
	r := b.reports[b.id("leaf1")]
	r.Flows[0].First, r.Flows[0].Last = 100*µs, 300*µs
	m := b.newAnalysis("h7>h5")
	start := now.Add(-r.EpochLength)
	for _, tc := range []struct {
		from, to time.Duration
		want     float64
	}{
		{0, 400 * µs, 1},
		{100 * µs, 300 * µs, 1},
		{200 * µs, 400 * µs, 0.5},
		{0, 150 * µs, 0.25},
		{150 * µs, 200 * µs, 0.25},
		{300 * µs, 400 * µs, 0.02},
		{301 * µs, 400 * µs, 0},
		{0, 99 * µs, 0},
	} {
		if got := m.fractionBetween(m.g.FlowEpochs[0], start.Add(tc.from), start.Add(tc.to)); got != tc.want {
			t.Errorf("from %v to %v: %v; want %v", tc.from, tc.to, got, tc.want)
		}
	}
}

// TestPausesThatOutlastABacklog: a queue that was congested when it was paused
// delays packets by itself until it could have sent that backlog; after that, its
// pauses do.
func TestPausesThatOutlastABacklog(t *testing.T) {
	for paused, want := range map[time.Duration]bool{5 * µs: false, 110 * µs: true} {
		b := deadlockRing(t)
		p := &b.reports[b.id("s1")].Pauses[0]
		p.BytesAtBurstStart, p.BurstStart, p.LastStart, p.PausedTime = 250*kb, now.Add(-paused), now.Add(-paused), paused
		m := b.newAnalysis("h0>h4")
		if got := m.blockedByPauses(b.node(m, "s1>s2")); got != want {
			t.Errorf("250 KB, paused for %v: blocked by pauses %v, want %v", paused, got, want)
		}
	}
}
