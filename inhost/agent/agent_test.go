package agent

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

const µs = model.Time(time.Microsecond)

func key(n int) model.FlowKey {
	return model.NewFlowKey(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2}), uint16(n)), netip.MustParseAddrPort("10.1.0.2:4791"), model.UDP)
}

func newAgent(t testing.TB, change func(*Config)) *Agent {
	cfg := DefaultConfig(7)
	change(&cfg)
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRTTOverThresholdPolls(t *testing.T) {
	a := newAgent(t, func(c *Config) { c.RTTFactor = 3 })
	a.StartFlow(0, key(1), FlowExpectation{BaseRTT: 10 * time.Microsecond})
	a.OnSent(0, key(1), 1000)
	if got, ok := a.OnAcked(30*µs, key(1), 1000); ok {
		t.Errorf("trigger %+v at exactly three times the base; want none", got)
	}
	a.OnSent(100*µs, key(1), 2000)
	a.OnSent(103*µs, key(1), 3000) // not measured: too soon after the one before
	got, ok := a.OnAcked(131*µs, key(1), 2000)
	want := poll.Poll{Layout: poll.Weft, Flag: poll.Victim, HopLimit: 32, Event: poll.Event{Host: 7, Number: 1}, Origin: 131 * µs, Flow: key(1)}
	if !ok || got.Reason != RTT || got.Measured != 31*time.Microsecond || got.Limit != 30*time.Microsecond || got.Poll != want {
		t.Errorf("trigger %+v, %v; want %+v for 31 µs over 30", got, ok, want)
	}
}

// TestAcknowledgementsThatMayWait: the poll says how late the packet was.
func TestAcknowledgementsThatMayWait(t *testing.T) {
	a := newAgent(t, func(c *Config) { c.RTTFactor, c.AcksWithData = 3, true })
	a.StartFlow(0, key(1), FlowExpectation{BaseRTT: 10 * time.Microsecond})
	a.OnSent(0, key(1), 1000)
	got, ok := a.OnAcked(50*µs, key(1), 1000)
	if want := poll.LatenessOf(40 * time.Microsecond); !ok || got.Poll.Unexplained != want {
		t.Errorf("poll %+v, %v; want %d as unexplained, for 40 µs", got.Poll, ok, want)
	}
	if got, _ := a.FollowUp(60*µs, key(1)); got.Poll.Unexplained != poll.LatenessOf(10*time.Microsecond) {
		t.Errorf("poll %+v without a late packet; want a base round trip as unexplained", got.Poll)
	}
}

// TestShortQueueIsSeen: the first packet meets an empty queue, one sent while it
// is in flight the full one. Measuring one at a time would miss it.
func TestShortQueueIsSeen(t *testing.T) {
	a := newAgent(t, func(c *Config) { c.RTTFactor = 4 })
	a.StartFlow(0, key(1), FlowExpectation{BaseRTT: 10 * time.Microsecond})
	for i := range int64(20) {
		a.OnSent(model.Time(i)*2*µs, key(1), 1000*(i+1)) // every 5 µs one is measured
	}
	if got, ok := a.OnAcked(32*µs, key(1), 1000); ok {
		t.Errorf("trigger %+v after 32 µs; want none up to 40", got)
	}
	got, ok := a.OnAcked(53*µs, key(1), 8000)
	if !ok || got.Measured != 41*time.Microsecond {
		t.Errorf("trigger %+v, %v for an acknowledgement of packets sent at 6 and 12 µs; want one for the 41 µs of the second", got, ok)
	}
}

func TestAgeDetectsADeadlock(t *testing.T) {
	a := newAgent(t, func(c *Config) { c.RTTLimit = 50 * time.Microsecond })
	a.StartFlow(0, key(1), FlowExpectation{})
	a.OnSent(10*µs, key(1), 1000)
	if got := a.Tick(60*µs, nil); len(got) != 0 {
		t.Errorf("triggers %+v at an age of 50 µs; want none", got)
	}
	if got := a.Tick(61*µs, nil); len(got) != 1 || got[0].Reason != Age {
		t.Errorf("triggers %+v at an age of 51 µs; want one", got)
	}
	if got := a.Tick(100*µs, nil); len(got) != 0 || a.Stats().Suppressed != 1 {
		t.Errorf("triggers %+v soon after, %+v; want none, counted", got, a.Stats())
	}
	if got := a.Tick(3100*µs, nil); len(got) != 1 {
		t.Errorf("triggers %+v after 3 ms; want the flow polled again", got)
	}
}

func TestRateOfABusyFlow(t *testing.T) {
	a := newAgent(t, func(c *Config) { c.RTTFactor, c.MinRateShare, c.RateWindow = 1e6, 0.5, 100*time.Microsecond })
	a.StartFlow(0, key(1), FlowExpectation{BaseRTT: 10 * time.Microsecond, Rate: 8 * model.Gbps}) // 1 byte per ns
	idle := func(from model.Time) []DiagnosisRequest { return a.Tick(from+100*µs, nil) }
	if got := idle(0); len(got) != 0 {
		t.Errorf("triggers %+v of a flow that sends nothing; want none", got)
	}
	a.OnSent(101*µs, key(1), 1_000_000)
	a.Tick(200*µs, nil) // the window in which it began says nothing
	a.OnAcked(250*µs, key(1), 49_000)
	if got := a.Tick(300*µs, nil); len(got) != 1 || got[0].Reason != Rate {
		t.Errorf("triggers %+v for 49 KB of 100 KB in a window; want one below half", got)
	}
	a.OnAcked(350*µs, key(1), 100_000)
	if got := a.Tick(400*µs, nil); len(got) != 0 {
		t.Errorf("triggers %+v for 51 KB in a window; want none", got)
	}
}

func TestOverdueFlowAndTurns(t *testing.T) {
	a := newAgent(t, func(c *Config) {
		c.CompletionFactor, c.RoundRobinInterval, c.MinRepollInterval = 2, time.Millisecond, 0
	})
	a.StartFlow(0, key(1), FlowExpectation{BaseRTT: time.Millisecond, CompletionTime: 100 * time.Microsecond})
	a.StartFlow(0, key(2), FlowExpectation{BaseRTT: time.Millisecond})
	var turns []model.FlowKey
	for n := range model.Time(4) {
		for _, tr := range a.Tick(n*1000*µs, nil) {
			if tr.Reason != RoundRobin {
				t.Errorf("reason %v; want a turn", tr.Reason)
			}
			turns = append(turns, tr.Poll.Flow)
		}
	}
	if len(turns) != 4 || turns[0] != key(1) || turns[1] != key(2) || turns[2] != key(1) {
		t.Errorf("turns %v; want flows 1 and 2 one after the other", turns)
	}
	if got, ok := a.EndFlow(5000*µs, key(1)); !ok || got.Reason != CompletionTime {
		t.Errorf("EndFlow = %+v, %v; want a request about 5 ms instead of 0.2", got, ok)
	}
	if _, ok := a.EndFlow(5001*µs, key(1)); ok {
		t.Error("EndFlow of a flow that is not watched returns a request")
	}
}

// TestNoFlowIsPolledTooOften simulates random traffic: whatever happens, polls
// keep their distances and events never repeat.
func TestNoFlowIsPolledTooOften(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := newAgent(t, func(c *Config) {
			c.MinRepollInterval, c.MinHostInterval, c.RoundRobinInterval = 300*time.Microsecond, 20*time.Microsecond, 100*time.Microsecond
		})
		last, host := map[model.FlowKey]model.Time{}, model.Time(-1<<40)
		events := map[poll.Event]bool{}
		sent := map[int]int64{}
		now := model.Time(0)
		check := func(tr DiagnosisRequest) {
			if events[tr.Poll.Event] {
				rt.Fatalf("event %v twice", tr.Poll.Event)
			}
			events[tr.Poll.Event] = true
			if at, ok := last[tr.Poll.Flow]; ok && now.Sub(at) < 300*time.Microsecond || now.Sub(host) < 20*time.Microsecond {
				rt.Fatalf("poll at %v, flow's last at %v, host's at %v; want 300 µs and 20 µs between", now, last[tr.Poll.Flow], host)
			}
			last[tr.Poll.Flow], host = now, now
		}
		for n := range 3 {
			a.StartFlow(0, key(n), FlowExpectation{BaseRTT: 5 * time.Microsecond})
		}
		for range 300 {
			now += model.Time(rapid.IntRange(0, 60).Draw(rt, "gap")) * µs
			n := rapid.IntRange(0, 3).Draw(rt, "flow")
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				sent[n] += 1000
				a.OnSent(now, key(n), sent[n])
			case 1:
				if tr, ok := a.OnAcked(now, key(n), sent[n]); ok {
					check(tr)
				}
			case 2:
				for _, tr := range a.Tick(now, nil) {
					check(tr)
				}
			}
		}
	})
}

func TestWatchingAllocatesNothing(t *testing.T) {
	a := newAgent(t, func(*Config) {})
	a.StartFlow(0, key(1), FlowExpectation{BaseRTT: time.Microsecond})
	now, end := model.Time(0), int64(0)
	var out []DiagnosisRequest
	out = a.Tick(0, out)
	k := key(1)
	if n := testing.AllocsPerRun(1000, func() {
		now += 10 * µs
		end += 1000
		a.OnSent(now, k, end)
		a.OnAcked(now+5*µs, k, end)
		out = a.Tick(now, out[:0])
	}); n != 0 {
		t.Errorf("a packet, its acknowledgement and a tick allocate %v times; want 0", n)
	}
}

// TestFollowUpPollsAtOnce: the analysis may poll again at any time, at flows
// that are there.
func TestFollowUpPollsAtOnce(t *testing.T) {
	a, err := New(DefaultConfig(7))
	if err != nil {
		t.Fatal(err)
	}
	key := model.FlowKey{SrcPort: 1, DstPort: 4791, Proto: model.UDP}
	if _, ok := a.FollowUp(0, key); ok {
		t.Error("Ask about a flow that never started polls; want nothing")
	}
	a.StartFlow(0, key, FlowExpectation{BaseRTT: time.Microsecond})
	for i := range uint32(3) {
		tr, ok := a.FollowUp(model.Time(i), key)
		if !ok || tr.Reason != FollowUp || tr.Poll.Flow != key || tr.Poll.Event.Host != 7 || tr.Poll.Event.Number != i+1 {
			t.Errorf("FollowUp = %+v, %v; want a separate poll, number %d", tr, ok, i+1)
		}
	}
}

// TestFollowUpSaysSinceWhen: a flow that is polled again was slow for a time. Switches
// remember more than that, of which nothing made this flow slow.
func TestFollowUpSaysSinceWhen(t *testing.T) {
	a, err := New(DefaultConfig(7))
	if err != nil {
		t.Fatal(err)
	}
	key := model.FlowKey{SrcPort: 1, DstPort: 4791, Proto: model.UDP}
	a.StartFlow(0, key, FlowExpectation{BaseRTT: 10 * time.Microsecond})
	a.OnSent(100*µs, key, 1000)
	if r, ok := a.OnAcked(150*µs, key, 1000); !ok || r.Latency() != 50*time.Microsecond {
		t.Fatalf("OnAcked = %+v, %v; want a packet that took 50 µs", r, ok)
	}
	for _, at := range []model.Time{400 * µs, 900 * µs} {
		if r, ok := a.FollowUp(at, key); !ok || r.Latency() != 0 || r.Window() != time.Duration(at-100*µs) {
			t.Errorf("FollowUp at %v = %+v, %v; want the time since 100 µs", at, r, ok)
		}
	}
	a.OnSent(1000*µs, key, 2000)
	if r, ok := a.FollowUp(1100*µs, key); !ok || r.Reason != Age || r.Latency() != 100*time.Microsecond {
		t.Errorf("FollowUp = %+v, %v; want the packet that is unacknowledged for 100 µs", r, ok)
	}
}
