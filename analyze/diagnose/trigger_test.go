package diagnose

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// TestTriggerPrecedesTheCycle: a cycle that closed 100 µs ago waits for nothing
// outside any more. A host on its path paused its port at some time.
func TestTriggerPrecedesTheCycle(t *testing.T) {
	for name, tc := range map[string]struct {
		first, ended time.Duration // ages; ended 0: not yet
		queued       uint64        // bytes of the cycle at that port
		want         anomaly.RootCause
	}{
		"shortly before":       {first: 250 * µs, ended: 120 * µs, want: anomaly.HostInjection},
		"until after":          {first: 150 * µs, ended: 60 * µs, want: anomaly.HostInjection},
		"from before on":       {first: 150 * µs, queued: 50 * kb, want: anomaly.HostInjection},
		"and met none of it":   {first: 105 * µs, want: anomaly.NoRootCause},
		"since it closed":      {first: 60 * µs, want: anomaly.NoRootCause},
		"after it closed":      {first: 60 * µs, ended: 40 * µs, want: anomaly.NoRootCause},
		"and over long before": {first: 900 * µs, ended: 600 * µs, want: anomaly.NoRootCause},
	} {
		b := deadlockRing(t)
		p := b.addPausedQueue("s2>h4", tc.queued, 0, tc.first)
		r := b.reports[b.id("s2")]
		if tc.queued > 0 {
			b.addBacklog("h0>h4", tc.queued, "s0>s1", "s1>s2", "s2>h4")
		}
		if tc.ended > 0 {
			p.LastEnd = now.Add(-tc.ended)
			r.Ports[len(r.Ports)-1].Paused = false
		}
		r.PortEpochs[len(r.PortEpochs)-1].Paused = 50
		b.setPausedPackets("s1>s2", 80, 80)
		r.Meters = append(r.Meters, epoch.Meter{
			Epoch: 9, In: b.port("s2>s1").Port, Out: b.port("s2>h4").Port, Priority: class, Packets: 50, Bytes: 50 * kb,
		})
		r.PortEpochs[len(r.PortEpochs)-1].PausedDepth = 500
		v := b.diagnose("h6>h2")
		if len(v) != 1 || v[0].Anomaly != anomaly.DeadlockOutOfLoop || v[0].Cause != tc.want {
			t.Errorf("a host that paused its port %s: %+v; want an out-of-loop deadlock of cause %v", name, v, tc.want)
		}
	}
}

// TestCongestionAfterAResume: the victim waits in a queue that was resumed, and in
// a congested one downstream, whose backlog came since. That did not cause the
// pauses.
func TestCongestionAfterAResume(t *testing.T) {
	for name, tc := range map[string]struct {
		queued uint64
		deep   time.Duration // age; 0: not reported
		want   anomaly.Type
	}{
		"what is in it is younger":          {150 * kb, 0, anomaly.FlowContention},
		"what is in it is older":            {400 * kb, 0, anomaly.PFCBackpressure},
		"it was shallow until then":         {400 * kb, 10 * µs, anomaly.FlowContention},
		"within the skew, it may have been": {400 * kb, 30 * µs, anomaly.FlowContention},
		"it was deep when they happened":    {400 * kb, 70 * µs, anomaly.PFCBackpressure},
	} {
		b := ring(t, "s0", "s1")
		p := b.addPausedQueue("s0>s1", 200*kb, 5*kb, 80*µs)
		p.LastEnd = now.Add(-18 * µs)
		b.reports[b.id("s0")].Ports[0].Paused = false
		b.addQueue("s1>h2", tc.queued)
		if tc.deep > 0 {
			b.addEpisode("s1>h2", 0, tc.deep, tc.queued)
		}
		b.addBacklog("h0>h2", 100*kb, "s0>s1", "s1>h2")
		b.addBacklog("h3>h2", 50*kb, "s1>h2")
		if v := b.diagnose("h0>h2"); v[0].Anomaly != tc.want || v[0].Initial != b.port("s1>h2") {
			t.Errorf("%s: %+v; want %v at s1>h2", name, v[0], tc.want)
		}
	}
}

// TestPausedAfterAResume: the queue in which the victim waits was resumed 60 µs
// ago. The next was resumed just now: only if it was paused before the first was
// resumed, what is downstream of it caused the victim's wait.
func TestPausedAfterAResume(t *testing.T) {
	for name, tc := range map[string]struct {
		paused time.Duration
		named  bool
	}{
		"since then":  {10 * µs, false},
		"before that": {90 * µs, true},
	} {
		b := ring(t, "s0", "s1", "s2")
		b.addPausedQueue("s0>s1", 200*kb, 5*kb, 95*µs).LastEnd = now.Add(-60 * µs)
		b.addPausedQueue("s1>s2", 100*kb, 5*kb, tc.paused).LastEnd = now.Add(-2 * µs)
		for _, s := range []string{"s0", "s1"} {
			b.reports[b.id(s)].Ports[0].Paused = false
		}
		b.addQueue("s2>h4", 400*kb)
		b.addEpisode("s2>h4", 0, 100*µs, 400*kb)
		b.addBacklog("h0>h4", 80*kb, "s0>s1", "s1>s2", "s2>h4")
		b.addBacklog("h5>h4", 300*kb, "s2>h4")
		b.addBacklog("h1>h2", 80*kb, "s0>s1")
		v := b.diagnose("h1>h2")
		if named := v[0].Anomaly == anomaly.PFCBackpressure && v[0].Initial == b.port("s2>h4"); named != tc.named {
			t.Errorf("a queue that was paused %s: %+v; want s2>h4 as the cause: %v", name, v[0], tc.named)
		}
	}
}

// TestPauseThatFewPacketsMet: a queue that was paused briefly, or was almost empty,
// blocked no queue upstream.
func TestPauseThatFewPacketsMet(t *testing.T) {
	for name, tc := range map[string]struct {
		paused, depth uint64 // packets that met it, and the packets ahead of each
		want          bool
	}{
		"none":               {0, 0, false},
		"few, and few there": {13, 6, false},
		"few, and many":      {35, 319, true},
		"many, and few":      {200, 10, false},
		"many, and some":     {200, 30, true},
	} {
		b := deadlockRing(t)
		e := &b.reports[b.id("s0")].PortEpochs[0]
		e.Packets, e.Paused, e.PausedDepth = 1000, uint32(tc.paused), tc.paused*tc.depth
		m := b.newAnalysis("h0>h4")
		if got := m.pausesHeldBacklog(b.node(m, "s0>s1")); got != tc.want {
			t.Errorf("pauses that %s met: %v, want %v", name, got, tc.want)
		}
	}
}

// TestShortEpisodeInLeadUp: a queue was congested in the lead-up to a cycle.
func TestShortEpisodeInLeadUp(t *testing.T) {
	for lasted, want := range map[time.Duration]bool{6 * µs: false, 60 * µs: true} {
		b := deadlockRing(t)
		b.addQueue("s2>h4", 0)
		b.addEpisode("s2>h4", 150*µs, lasted, 60*kb)
		m := b.newAnalysis("h0>h4")
		if got := m.congestedInLeadUp(b.node(m, "s2>h4"), 100*µs); got != want {
			t.Errorf("congested for %v: %v, want %v", lasted, got, want)
		}
	}
}

// TestShortPauseOfACongestedQueue: a queue that was congested before it was
// paused, and paused only briefly, delays packets by itself; what paused it is no
// cause.
func TestShortPauseOfACongestedQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		atBurstStart uint64
		first, time  time.Duration // age of the first pause; sum of all pauses
		began        time.Duration // age of the last, if it is another; it lasts
		paused       bool
		want         string
	}{
		"full before":                  {atBurstStart: 400 * kb, first: 10 * µs, want: "s0>s1"},
		"empty before":                 {atBurstStart: 10 * kb, first: 10 * µs, want: "s1>h2"},
		"paused for long":              {atBurstStart: 400 * kb, first: 90 * µs, time: 85 * µs, want: "s1>h2"},
		"paused for 9 µs":              {atBurstStart: 400 * kb, first: 90 * µs, time: 9 * µs, want: "s0>s1"},
		"full before, paused still":    {atBurstStart: 400 * kb, first: 3 * µs, paused: true, want: "s0>s1"},
		"empty before, paused still":   {atBurstStart: 10 * kb, first: 3 * µs, paused: true, want: "s1>h2"},
		"full before, paused for long": {atBurstStart: 400 * kb, first: 60 * µs, paused: true, want: "s1>h2"},
		"paused for 9 µs, twice": {
			atBurstStart: 400 * kb, first: 60 * µs, time: 9 * µs, began: 3 * µs, paused: true,
			want: "s1>h2",
		},
		"paused for long, again": {
			atBurstStart: 400 * kb, first: 60 * µs, time: 55 * µs, began: 3 * µs, paused: true,
			want: "s1>h2",
		},
	} {
		b := ring(t, "s0", "s1")
		p := b.addPausedQueue("s0>s1", 500*kb, tc.atBurstStart, tc.first)
		if p.PausedTime = tc.time; !tc.paused {
			p.LastEnd = now.Add(-5 * µs)
			b.reports[b.id("s0")].Ports[0].Paused = false
		}
		if tc.began > 0 {
			p.LastStart, p.LastEnd = now.Add(-tc.began), now.Add(-tc.began-4*µs)
		}
		b.addQueue("s1>h2", 300*kb)
		b.addBacklog("h0>h2", 100*kb, "s0>s1", "s1>h2")
		b.addBacklog("h3>h2", 200*kb, "s1>h2")
		b.addBacklog("h1>h3", 100*kb, "s0>s1")
		if v := b.diagnose("h1>h3"); v[0].Initial != b.port(tc.want) {
			t.Errorf("a queue %s: %+v; want the cause at %s", name, v[0], tc.want)
		}
	}
}

// TestPausedBesideACongestedQueue: the victim waits in a congested queue, and in one
// upstream that is or was paused. If that is paused only since the detection, or
// was briefly, it is not the cause.
func TestPausedBesideACongestedQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		began, ended time.Duration // ages
		want         anomaly.Type
	}{
		"since the detection": {6 * µs, 0, anomaly.FlowContention},
		"since before":        {40 * µs, 0, anomaly.PFCBackpressure},
		"for 3 µs":            {8 * µs, 5 * µs, anomaly.FlowContention},
		"until 5 µs ago":      {80 * µs, 5 * µs, anomaly.PFCBackpressure},
	} {
		b := ring(t, "s0", "s1")
		p := b.addPausedQueue("s0>s1", 20*kb, 0, tc.began)
		if tc.ended > 0 {
			p.LastEnd = now.Add(-tc.ended)
			b.reports[b.id("s0")].Ports[0].Paused = false
		}
		b.addQueue("s1>h2", 300*kb)
		b.addBacklog("h0>h2", 20*kb, "s0>s1", "s1>h2")
		b.addBacklog("h3>h2", 280*kb, "s1>h2")
		v := b.diagnose("h0>h2")
		if len(v) != 1 {
			t.Fatalf("paused %s: %+v; want one verdict", name, v)
		}
		b.want(v[0], tc.want, anomaly.ContendingFlows, anomaly.MicroBurst, "s1>h2", "h0>h2", "h3>h2")
	}
}

// TestCongestedAfterDetection: PFC spreads from a congested queue if it was
// congested at the detection.
func TestCongestedAfterDetection(t *testing.T) {
	for lasted, want := range map[time.Duration]anomaly.Type{6 * µs: anomaly.None, 40 * µs: anomaly.PFCBackpressure} {
		b := incast(t, all...)
		b.addEpisode("leaf1>h4", 0, lasted, 400*kb)
		if v := b.diagnose("h8>h5"); v[0].Anomaly != want {
			t.Errorf("congested for %v: %+v; want %v", lasted, v[0], want)
		}
	}
}

// TestCongestedWhenPaused: a host pauses a port whose queue is congested already.
// Until it could have sent that backlog, both are causes.
func TestCongestedWhenPaused(t *testing.T) {
	for name, tc := range map[string]struct {
		since time.Duration
		want  int
	}{
		"just now":      {10 * µs, 2},
		"for some time": {60 * µs, 1},
	} {
		b := ring(t, "s0", "s1")
		b.addPausedQueue("s0>s1", 200*kb, 5*kb, 5*µs)
		b.addPausedQueue("s1>h2", 500*kb, 450*kb, tc.since)
		b.addBacklog("h0>h2", 100*kb, "s0>s1", "s1>h2")
		b.addBacklog("h3>h2", 400*kb, "s1>h2")
		b.addBacklog("h1>h3", 100*kb, "s0>s1")
		v := b.diagnose("h1>h3")
		if len(v) != tc.want {
			t.Fatalf("a congested port paused %s: %+v; want %d causes", name, v, tc.want)
		}
		b.want(v[0], anomaly.PFCStorm, anomaly.HostInjection, anomaly.NICStorm, "s1>h2")
		if len(v) > 1 {
			b.want(v[1], anomaly.PFCBackpressure, anomaly.ContendingFlows, anomaly.MicroBurst, "s1>h2", "h0>h2", "h3>h2")
		}
	}
}

// TestQueuePausedLongBefore: a queue of a cycle was congested when it was paused,
// but that was long before the cycle closed: it did not trigger it.
func TestQueuePausedLongBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		began time.Duration
		want  anomaly.Type
	}{
		"as the cycle closed": {110 * µs, anomaly.DeadlockInLoop},
		"some time before":    {270 * µs, anomaly.DeadlockInLoop},
		"when it all started": {295 * µs, anomaly.DeadlockOutOfLoop}, // as far as times can be compared, it sent nothing more by then
		"long before":         {500 * µs, anomaly.DeadlockOutOfLoop},
	} {
		b := deadlockRing(t)
		p := &b.reports[b.id("s2")].Pauses[0]
		p.BytesAtBurstStart, p.BurstStart, p.LastStart = 180*kb, now.Add(-tc.began), now.Add(-tc.began)
		if v := b.diagnose("h0>h4"); v[0].Anomaly != tc.want {
			t.Errorf("a congested queue of the cycle that was paused %s: %+v; want %v", name, v[0], tc.want)
		}
	}
}

// TestDeepestInEpochs: nothing is left of two queues of the victim's path. The one
// that it found deeper is the cause.
func TestDeepestInEpochs(t *testing.T) {
	b := leafSpine(t, all...)
	for _, p := range []string{"leaf2>spine0", "leaf1>h5"} {
		b.addQueue(p, 0)
		r := b.reports[b.port(p).Node]
		r.PortEpochs[len(r.PortEpochs)-1].Depth = 100 * 200
		b.addDepth("h9>h5", p, 9, 50, 200)
	}
	b.addDepth("h8>h5", "leaf2>spine0", 9, 40, 60)
	b.addDepth("h8>h5", "leaf1>h5", 9, 40, 400)
	v := b.diagnose("h8>h5")
	if len(v) != 1 || v[0].Anomaly != anomaly.FlowContention || v[0].Initial != b.port("leaf1>h5") {
		t.Errorf("%+v; want contention at leaf1>h5 alone", v)
	}
}

// TestQueueThatNoPacketJoined: a queue of a cycle was congested when its pauses
// began, and sent in between shortly before the cycle closed. If packets joined it
// then, it was congested by itself; otherwise it held an old backlog.
func TestQueueThatNoPacketJoined(t *testing.T) {
	for joined, want := range map[time.Duration]anomaly.Type{
		150 * µs: anomaly.DeadlockInLoop,
		400 * µs: anomaly.DeadlockOutOfLoop,
	} {
		b := deadlockRing(t)
		p := &b.reports[b.id("s2")].Pauses[0]
		p.BytesAtBurstStart, p.BurstStart = 180*kb, now.Add(-600*µs)
		b.addEpisode("s2>s3", joined, 300*µs, 180*kb)
		if v := b.diagnose("h0>h4"); v[0].Anomaly != want {
			t.Errorf("a congested queue that a packet joined last %v ago: %+v; want %v", joined, v[0], want)
		}
	}
}

// TestTriggerReachesTheCycle: two queues wait for each other since 100 µs. A third,
// which they waited for in the epochs, was resumed 120 µs ago; the one downstream
// became congested at some time. Only before that it can have paused the third,
// and through it the cycle.
func TestTriggerReachesTheCycle(t *testing.T) {
	for lasted, want := range map[time.Duration]anomaly.RootCause{
		300 * µs: anomaly.ContendingFlows,
		105 * µs: anomaly.NoRootCause,
	} {
		b := pair(t)
		b.setPausedPackets("s0>s1", 80, 80)
		b.addPausedQueue("s1>s2", 0, 5*kb, 300*µs).LastEnd = now.Add(-120 * µs)
		r := b.reports[b.id("s1")]
		r.Ports[1].Paused = false
		b.setPausedPackets("s1>s2", 80, 80)
		b.addQueue("s2>h4", 0)
		to := b.reports[b.id("s2")]
		to.PortEpochs[0].Depth = 100 * 200
		b.addEpisode("s2>h4", 0, lasted, 200*kb)
		b.addDepth("h0>h4", "s2>h4", 9, 50, 200)
		b.addDepth("h5>h4", "s2>h4", 9, 50, 200)
		for _, m := range []struct {
			r       *provenance.Report
			in, out string
		}{{r, "s1>s0", "s1>s2"}, {to, "s2>s1", "s2>h4"}} {
			m.r.Meters = append(m.r.Meters, epoch.Meter{
				Epoch: 9, In: b.port(m.in).Port, Out: b.port(m.out).Port,
				Priority: class, Packets: 50, Bytes: 50 * kb,
			})
		}
		if v := b.diagnose("h2>h0"); len(v) != 1 || v[0].Anomaly != anomaly.DeadlockOutOfLoop || v[0].Cause != want {
			t.Errorf("congested since %v: %+v; want an out-of-loop deadlock of cause %v", lasted, v, want)
		}
	}
}

// TestPausedAgain: a queue was paused before a cycle closed, and again after a
// PauseBurstGap: the switch reports the later pauses only. What flows met of the
// earlier ones counts.
func TestPausedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		first, last time.Duration // ages of packets of a flow that met a pause
		want        bool
	}{
		"before it closed":     {300 * µs, 150 * µs, true},
		"long before":          {900 * µs, 400 * µs, false},
		"and in later pauses":  {300 * µs, 20 * µs, false},
		"in later pauses only": {50 * µs, 20 * µs, false},
	} {
		b := deadlockRing(t)
		b.addPausedQueue("s2>h4", 100*kb, 5*kb, 60*µs)
		b.addFlowEpoch("h0>h4", "s2>h4", 9, 50, class)
		r := b.reports[b.id("s2")]
		f := &r.Flows[len(r.Flows)-1]
		f.Paused, f.First, f.Last = 10, r.EpochLength-tc.first, r.EpochLength-tc.last
		m := b.newAnalysis("h0>h4")
		if got := m.pausedInLeadUp(b.node(m, "s2>h4"), 100*µs); got != tc.want {
			t.Errorf("pauses that packets met %s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestPausedWhenTheCycleClosed: what a cycle waited for in the epochs was congested
// by itself before it closed. If it was paused then, too, something else caused
// that, which is not in the epochs any more.
func TestPausedWhenTheCycleClosed(t *testing.T) {
	for paused, want := range map[bool]anomaly.RootCause{false: anomaly.ContendingFlows, true: anomaly.NoRootCause} {
		b := pair(t)
		b.setPausedPackets("s0>s1", 80, 80)
		b.addQueue("s1>s2", 0)
		r := b.reports[b.id("s1")]
		r.PortEpochs[1].Depth = 100 * 200
		b.addEpisode("s1>s2", 110*µs, 200*µs, 200*kb)
		b.addDepth("h0>h4", "s1>s2", 9, 50, 200)
		r.Meters = append(r.Meters, epoch.Meter{
			Epoch: 9, In: b.port("s1>s0").Port, Out: b.port("s1>s2").Port,
			Priority: class, Packets: 50, Bytes: 50 * kb,
		})
		if paused {
			r.Pauses = append(r.Pauses, epoch.Pause{
				Port: b.port("s1>s2").Port, Priority: class,
				BurstStart: now.Add(-400 * µs), LastStart: now.Add(-150 * µs), LastEnd: now.Add(-105 * µs), Pauses: 9,
			})
		}
		if v := b.diagnose("h2>h0"); len(v) != 1 || v[0].Anomaly != anomaly.DeadlockOutOfLoop || v[0].Cause != want {
			t.Errorf("paused %v: %+v; want an out-of-loop deadlock of cause %v", paused, v, want)
		}
	}
}

// TestEndedBeforeTheCycle: a queue outside was paused, and congested, until some
// time before the cycle closed. If that was before the pauses of the cycle began,
// it did not cause them.
func TestEndedBeforeTheCycle(t *testing.T) {
	for first, want := range map[time.Duration]anomaly.RootCause{
		250 * µs: anomaly.HostInjection,
		130 * µs: anomaly.NoRootCause,
	} {
		b := deadlockRing(t)
		for _, s := range []string{"s0", "s1", "s2", "s3"} {
			b.reports[b.id(s)].Pauses[0].BurstStart = now.Add(-first)
		}
		b.addPausedQueue("s2>h4", 0, 5*kb, 280*µs).LastEnd = now.Add(-200 * µs)
		r := b.reports[b.id("s2")]
		r.Ports[1].Paused = false
		b.setPausedPackets("s2>h4", 50, 50)
		b.setPausedPackets("s1>s2", 80, 80)
		r.Meters = append(r.Meters, epoch.Meter{
			Epoch: 9, In: b.port("s2>s1").Port, Out: b.port("s2>h4").Port,
			Priority: class, Packets: 50, Bytes: 50 * kb,
		})
		if v := b.diagnose("h6>h2"); len(v) != 1 || v[0].Anomaly != anomaly.DeadlockOutOfLoop || v[0].Cause != want {
			t.Errorf("pauses since %v, of a host until 200 µs ago: %+v; want an out-of-loop deadlock of cause %v", first, v,
				want)
		}
	}
}
