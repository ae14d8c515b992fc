package rootcause

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

const (
	class = 3
	kb    = 1000
	ms    = model.Time(time.Millisecond)
	µs    = model.Time(time.Microsecond)
)

// ring is three switches, one host each, whose traffic goes clockwise and is
// deadlocked.
type ring struct {
	t      *testing.T
	fabric *topo.Fabric
	*Diagnoser
	repolled []diagnose.Detection
	sent     uint64 // packets that every port of the cycle has sent
	loose    bool   // one of the ports may send
}

func newRing(t *testing.T, change func(*Config)) *ring {
	f, err := topo.Ring(3, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	x := &ring{t: t, fabric: f, sent: 100}
	cfg := DefaultConfig(topo.NewIntent(r))
	cfg.Repoll = func(_ model.Time, c diagnose.Detection) { x.repolled = append(x.repolled, c) }
	if change != nil {
		change(&cfg)
	}
	if x.Diagnoser, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *ring) flow(from, to int) model.FlowKey {
	h := x.fabric.Hosts()
	return model.FlowKey{
		Src: x.fabric.Node(h[from]).IPv4, Dst: x.fabric.Node(h[to]).IPv4, SrcPort: 1, DstPort: 4791,
		Proto: model.UDP,
	}
}

func (x *ring) request(number uint32, at model.Time) poll.Event {
	ev := poll.Event{Host: x.fabric.Hosts()[0], Number: number}
	c := DiagnosisRequest{Detection: diagnose.Detection{Event: ev, Victim: x.flow(0, 2)}, At: at}
	if err := x.AddRequest(at, c); err != nil {
		x.t.Fatal(err)
	}
	return ev
}

// report is that of switch i: its port of the cycle is paused, was congested first
// at s0, and holds packets of the switch before.
func (x *ring) report(i int, ev poll.Event, at model.Time) (chunks [][]byte) {
	sw := x.fabric.Switches()
	node := x.fabric.Node(sw[i])
	out := node.PortsTo(sw[(i+1)%3])[0]
	in := node.PortsTo(sw[(i+2)%3])[0]
	host := node.PortsTo(x.fabric.Hosts()[i])[0]
	var b epoch.Builder
	if err := b.Reset(epoch.Header{Switch: sw[i], Event: ev, Snapshot: at, EpochLength: time.Millisecond}, 200,
		100); err != nil {
		x.t.Fatal(err)
	}
	paused := !x.loose || i != 1
	b.AddPort(epoch.Port{
		Port: out, Priority: class, Paused: paused, Remaining: time.Millisecond, PauseFrames: 1,
		Queued: 200 * kb, Sent: x.sent,
	})
	since := model.Time(50+10*i) * µs // the pause comes to s2 first, and goes against the traffic
	atBurstStart := uint64(1 * kb)
	if i == 0 {
		atBurstStart = 150 * kb
		b.AddCongestionEpisode(epoch.CongestionEpisode{Port: out, Priority: class, First: at - 90*µs, Last: at - 50*µs, MaxBytes: 150 * kb})
	}
	b.AddPause(epoch.Pause{
		Port: out, Priority: class, LastStart: at - since, BurstStart: at - since,
		BytesAtBurstStart: atBurstStart, Pauses: 1, PausedTime: time.Duration(since),
	})
	b.AddPortEpoch(epoch.PortEpoch{Epoch: uint32(at / ms), Port: out, Priority: class, Packets: 100, Paused: 50})
	b.AddMeter(epoch.Meter{Epoch: uint32(at / ms), In: in, Out: out, Priority: class, Packets: 300, Bytes: 300 * kb})
	for _, h := range []epoch.PortPairBacklog{
		{In: in, Out: out, Priority: class, Packets: 100, Bytes: 100 * kb},
		{In: host, Out: out, Priority: class, Packets: 100, Bytes: 100 * kb},
	} {
		b.AddPortPairBacklog(h)
		from := i
		if h.In == in {
			from = (i + 2) % 3
		}
		b.AddFlowBacklog(&epoch.FlowBacklog{PortPairBacklog: h, Key: x.flow(from, (from+2)%3)})
	}
	for k := range b.Finish() {
		chunks = append(chunks, slices.Clone(b.Chunk(k)))
	}
	return chunks
}

// deliver has all chunks arrive at a time.
func (x *ring) deliver(at model.Time, chunks ...[]byte) (out []diagnose.Verdict) {
	x.t.Helper()
	for _, c := range chunks {
		v, err := x.AddReport(at, c)
		if err != nil {
			x.t.Fatal(err)
		}
		out = append(out, v...)
	}
	return out
}

func (x *ring) all(ev poll.Event, at model.Time) (chunks [][]byte) {
	for i := range 3 {
		chunks = append(chunks, x.report(i, ev, at)...)
	}
	return chunks
}

func TestALoopIsLookedAtTwice(t *testing.T) {
	x := newRing(t, nil)
	ev := x.request(1, 10*ms)
	if v := x.deliver(90*ms, x.all(ev, 10*ms)...); len(v) != 0 {
		t.Fatalf("verdicts %+v while reports may still come; want none", v)
	}
	if v := x.Tick(92 * ms); len(v) != 0 || len(x.repolled) != 1 || x.repolled[0].Victim != x.flow(0, 2) {
		t.Fatalf("verdicts %+v, repolled %v after one snapshot; want none, and a second poll requested", v, x.repolled)
	}
	second := x.request(2, 93*ms)
	x.deliver(94*ms, x.all(second, 93*ms)...)
	v := x.Tick(96 * ms)
	if len(v) != 2 || !v[0].Persistent || !v[1].Persistent || v[0].Anomaly != anomaly.DeadlockInLoop || v[0].Event != ev {
		t.Fatalf("verdicts %+v after two snapshots; want those of both detections, persistent", v)
	}
	if v[0].Times.Polling != 0 || v[0].Times.Collection != 80*time.Millisecond {
		t.Errorf("times %+v; want 80 ms of collection", v[0].Times)
	}
}

// TestVerdictHasAnAccount if the host measured a packet.
func TestVerdictHasAnAccount(t *testing.T) {
	for _, latency := range []time.Duration{0, 2 * time.Millisecond} {
		x := newRing(t, func(c *Config) { c.Repoll = nil })
		ev := poll.Event{Host: x.fabric.Hosts()[0], Number: 1}
		r := DiagnosisRequest{Detection: diagnose.Detection{Event: ev, Victim: x.flow(0, 2), Latency: latency, InFlight: true}, At: 10 * ms}
		if err := x.AddRequest(10*ms, r); err != nil {
			t.Fatal(err)
		}
		x.deliver(90*ms, x.all(ev, 10*ms)...)
		v := x.Flush()
		if len(v) == 0 || (v[0].Account != nil) != (latency > 0) {
			t.Fatalf("a packet of %v: verdicts %+v", latency, v)
		}
		if a := v[0].Account; a != nil {
			sum := time.Duration(0)
			for i := range a.Terms {
				sum += a.Terms[i].Time
			}
			if a.Late <= 0 || a.Late > latency || sum != a.Late || len(v[0].Timeline.Rows) == 0 {
				t.Errorf("late by %v, terms of %v, %d rows; want at most %v, the same, some", a.Late, sum, len(v[0].Timeline.Rows), latency)
			}
		}
	}
}

func TestALoopThatDissolves(t *testing.T) {
	x := newRing(t, nil)
	x.deliver(90*ms, x.all(x.request(1, 10*ms), 10*ms)...)
	x.Tick(92 * ms)
	x.sent, x.loose = 200, true
	x.deliver(94*ms, x.all(x.request(2, 93*ms), 93*ms)...)
	v := x.Tick(96 * ms)
	if len(v) == 0 || v[0].Persistent || len(v[0].DeadlockCycle) != 3 ||
		!strings.Contains(strings.Join(v[0].Evidence, " "), "dissolved") {
		t.Fatalf("verdicts %+v; want the cycle of the first snapshot, not persistent", v)
	}
}

func TestADeadlockCycleThatIsNotPolledAgain(t *testing.T) {
	x := newRing(t, func(c *Config) { c.RecheckTimeout = 10 * time.Millisecond })
	x.deliver(90*ms, x.all(x.request(1, 10*ms), 10*ms)...)
	x.Tick(92 * ms)
	v := x.Tick(103 * ms)
	if len(v) != 1 || v[0].Persistent {
		t.Fatalf("verdicts %+v; want one that is not persistent", v)
	}
}

// TestLateReportsAreWaitedFor: a switch CPU is busy with another snapshot.
func TestLateReportsAreWaitedFor(t *testing.T) {
	x := newRing(t, nil)
	ev := x.request(1, 10*ms)
	x.deliver(90*ms, x.report(0, ev, 10*ms)...)
	x.deliver(90*ms, x.report(1, ev, 10*ms)...)
	if v := x.Tick(95 * ms); len(v) != 0 {
		t.Fatalf("verdicts %+v without s2's report; want none until it comes", v)
	}
	x.deliver(170*ms, x.report(2, ev, 10*ms)...)
	x.Tick(172 * ms)
	if v := x.Flush(); len(v) != 1 || v[0].Anomaly != anomaly.DeadlockInLoop || v[0].Incomplete {
		t.Fatalf("verdicts %+v; want that of all reports", v)
	}
	if s := x.Stats(); s.Requests != 1 || s.Verdicts != 1 || s.Unanswered != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestReportsBeforeTheirRequest: reports and requests are in lists of their own, either of
// which may be read first.
func TestReportsBeforeTheirRequest(t *testing.T) {
	x := newRing(t, nil)
	ev := poll.Event{Host: x.fabric.Hosts()[0], Number: 7}
	if out := x.deliver(10*ms, x.all(ev, 10*ms)...); len(out) != 0 {
		t.Fatalf("verdicts without a request: %v", out)
	}
	x.request(ev.Number, 11*ms)
	x.Tick(13 * ms)
	if len(x.repolled) != 1 {
		t.Errorf("the deadlock cycle was polled again %d times after %v; want once, as all switches have reported", len(x.repolled), x.cfg.SettleTime)
	}
}

func TestPatienceEnds(t *testing.T) {
	x := newRing(t, func(c *Config) { c.ReportTimeout = 200 * time.Millisecond })
	x.request(1, 10*ms)
	ev := x.request(2, 10*ms)
	x.deliver(90*ms, x.report(0, ev, 10*ms)...)
	v := x.Tick(211 * ms)
	if len(v) != 2 || v[0].Anomaly != anomaly.None || v[1].Anomaly != anomaly.None || v[1].Confidence > 0.2 ||
		x.Stats().Unanswered != 1 {
		t.Fatalf("verdicts %+v, %+v; want one without any report, and one with reports missing", v, x.Stats())
	}
}

// TestSpoiledReports loses, duplicates, reorders and damages reports. They may lead
// to no wrong cause.
func TestSpoiledReports(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		x := newRing(t, nil)
		ev := x.request(1, 10*ms)
		var sent [][]byte
		for _, c := range x.all(ev, 10*ms) {
			switch rng.IntN(10) {
			case 0, 1: // lost
			case 2:
				sent = append(sent, c, c)
			case 3:
				bad := slices.Clone(c)
				bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				sent = append(sent, bad)
			default:
				sent = append(sent, c)
			}
		}
		rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
		for _, c := range sent {
			x.AddReport(90*ms, c) //nolint:errcheck // a damaged one is refused
		}
		for _, v := range x.Flush() {
			switch {
			case v.Anomaly == anomaly.None:
			case v.Anomaly != anomaly.DeadlockOutOfLoop && v.Cause == anomaly.ContendingFlows &&
				v.Initial.Node == x.fabric.Switches()[0]: // without the pauses of all, the cycle is not seen
			case v.Cause == anomaly.NoRootCause:
			default:
				t.Errorf("seed %d: verdict %v %v at %v (%q); want the truth or nothing", seed, v.Anomaly, v.Cause, v.Initial,
					v.Evidence)
			}
		}
	}
}

func TestDiagnosisRequestsAreBounded(t *testing.T) {
	x := newRing(t, func(c *Config) { c.MaxRequests = 2 })
	x.request(1, 0)
	x.request(1, 0)
	x.request(2, 0)
	err := x.AddRequest(0, DiagnosisRequest{Detection: diagnose.Detection{Event: poll.Event{Number: 3}}})
	if s := x.Stats(); !errors.Is(err, ErrTooManyRequests) || s.DuplicateRequests != 1 || s.Rejected != 1 {
		t.Errorf("AddRequest = %v, %+v; want %v", err, s, ErrTooManyRequests)
	}
	if _, err := x.AddReport(0, []byte("no report")); err == nil || x.Stats().Malformed != 1 {
		t.Errorf("AddReport of garbage = %v, %+v; want it refused and counted", err, x.Stats())
	}
}

func TestRoundsOfBursts(t *testing.T) {
	x := newRing(t, nil)
	verdict := func(at model.Time, burst time.Duration) diagnose.Verdict {
		return diagnose.Verdict{
			Anomaly: anomaly.PFCBackpressure, Cause: anomaly.ContendingFlows, Detail: anomaly.MicroBurst, Initial: model.Port{Node: 5, Port: 1},
			Culprits: []diagnose.Culprit{{Flow: x.flow(0, 2), Weight: 1}}, At: at, BurstDuration: burst,
		}
	}
	var r burstHistory
	for i, want := range []anomaly.Detail{
		anomaly.MicroBurst, anomaly.MicroBurst, anomaly.PeriodicBurst,
		anomaly.PeriodicBurst,
	} {
		v := verdict(model.Time(i)*ms, 50*time.Microsecond)
		if r.observe(&v); v.Detail != want {
			t.Errorf("burst %d: %v; want %v", i+1, v.Detail, want)
		}
	}
	// One long burst that is detected again and again.
	r = burstHistory{}
	for i := range 5 {
		v := verdict(model.Time(i)*ms, time.Duration(i+1)*time.Millisecond)
		if r.observe(&v); v.Detail != anomaly.MicroBurst {
			t.Errorf("detection %d of one long burst: %v; want %v", i+1, v.Detail, anomaly.MicroBurst)
		}
	}
	// Packets that were sent before the last verdict.
	r = burstHistory{}
	for i := range 5 {
		v := verdict(model.Time(i)*ms, 50*time.Microsecond)
		v.Account = &attribution.Account{Late: 2 * time.Millisecond}
		if r.observe(&v); v.Detail != anomaly.MicroBurst {
			t.Errorf("detection %d of a burst by packets that it delayed for longer than since the last: %v; want %v", i+1, v.Detail, anomaly.MicroBurst)
		}
	}
	// The same on a fabric that is a thousand times slower, with one gap far beyond the others.
	r = burstHistory{}
	for i, want := range []anomaly.Detail{anomaly.MicroBurst, anomaly.MicroBurst, anomaly.PeriodicBurst, anomaly.MicroBurst} {
		at := model.Time(i) * 1000 * ms
		if i == 3 {
			at *= 10
		}
		v := verdict(at, 50*time.Millisecond)
		if r.observe(&v); v.Detail != want {
			t.Errorf("slow burst %d: %v; want %v", i+1, v.Detail, want)
		}
	}
}
