package congestion

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

const us = engine.Microsecond

// flow is one at 100 Gb/s with a round trip of 10 µs.
var flow = Flow{Line: 100 * model.Gbps, Window: 125_000, BaseRTT: 10 * us, Payload: 1000}

func stack(at engine.Time, sent model.Bytes, queued int64) *Stack {
	s := &Stack{}
	s.Push(at, sent, queued, 100*model.Gbps, 1)
	return s
}

// One hop, one rate. The first acknowledgement only records the first sample; the second
// comes a round trip later from a port that was fully busy and had 62.4 KB
// left in its queue both times: its load is 1 + 0.4992.
func TestHPCCDividesByTheLoad(t *testing.T) {
	p := DefaultHPCC()
	p.PerHop, p.Stages = false, 0
	h := newHPCC(p, flow)
	if r := h.OnAck(&Ack{Seq: 1000, Next: 100_000, INT: stack(0, 0, 62_400)}); r != flow.Line {
		t.Errorf("the first acknowledgement sets %v; want line rate", r)
	}
	// 124,928 bytes are 976 units of 128; the load 0.999424 + 0.4992.
	want := model.Rate(float64(flow.Line)/((0.999424+0.4992)/0.95)) + p.AI
	r := h.OnAck(&Ack{Seq: 101_000, Next: 200_000, INT: stack(10*us, 124_928, 62_400)})
	if d := r - want; d < -1 || d > 1 {
		t.Errorf("a load of 1.498624 sets %v; want %v", r, want)
	}
	// Between round trips it reacts from the same reference, not further down.
	fast := h.OnAck(&Ack{Seq: 102_000, Next: 200_000, INT: stack(20*us, 249_856, 62_400)})
	if again := h.OnAck(&Ack{Seq: 103_000, Next: 200_000, INT: stack(30*us, 374_784, 62_400)}); again != fast || again >= r {
		t.Errorf("two reactions within a round trip set %v and %v; want the same, below %v", fast, again, r)
	}
}

// An idle path brings the rate back: additive steps, then a multiplicative one.
func TestHPCCRecovers(t *testing.T) {
	p := DefaultHPCC()
	h := newHPCC(p, flow)
	h.OnAck(&Ack{Seq: 1, Next: 1000, INT: stack(0, 0, 800_000)})
	low := h.OnAck(&Ack{Seq: 1001, Next: 2000, INT: stack(10*us, 124_928, 800_000)})
	if low > flow.Line/4 {
		t.Fatalf("a queue of 6.4 windows leaves %v; want a quarter at most", low)
	}
	seq, at := int64(2001), 20*us
	r := low
	for range p.Stages {
		next := h.OnAck(&Ack{Seq: seq, Next: seq + 999, INT: stack(at, 124_928, 0)})
		if next != r+p.AI {
			t.Errorf("an idle round trip sets %v after %v; want %v more", next, r, p.AI)
		}
		r, seq, at = next, seq+1000, at+10*us
	}
	if r = h.OnAck(&Ack{Seq: seq, Next: seq + 999, INT: stack(at, 124_928, 0)}); r != flow.Line {
		t.Errorf("after %d steps an idle path allows %v; want line rate", p.Stages, r)
	}
}

// Paths longer than the header are not judged.
func TestHPCCIgnoresLongPaths(t *testing.T) {
	p := DefaultHPCC()
	h := newHPCC(p, flow)
	s := &Stack{}
	for range MaxHops + 1 {
		s.Push(0, 0, 1e6, 100*model.Gbps, 1)
	}
	for i := range int64(3) {
		if r := h.OnAck(&Ack{Seq: 1000*i + 1, Next: 1000*i + 1000, INT: s}); r != flow.Line || s.Len() != 6 {
			t.Errorf("a path of %d switches sets %v; want line rate", s.Len(), r)
		}
	}
}

func TestTIMELYFollowsTheGradient(t *testing.T) {
	p := DefaultTIMELY()
	c := newTIMELY(p, flow)
	step := func(i int64, rtt engine.Time) model.Rate {
		return c.OnAck(&Ack{Now: rtt, Seq: 1000*i + 1, Next: 1000*i + 1000})
	}
	step(0, 100*us)
	// 10 µs more: 0.875 × 10 of 20 is a gradient of 0.4375, a cut by 0.35.
	if r, want := step(1, 110*us), model.Rate(65e9); r < want-100 || r > want+100 {
		t.Errorf("10 µs more set %v; want %v", r, want)
	}
	if r := step(2, 600*us); r > 60e9 {
		t.Errorf("a round trip above the high mark sets %v; want less", r)
	}
	low := c.rate
	for i := range int64(5) {
		if r, want := step(3+i, 40*us), low+model.Rate(i+1)*p.AI; r != want {
			t.Errorf("step %d sets %v; want %v", i, r, want)
		}
	}
	if r, want := step(8, 40*us), low+5*p.AI+p.HAI; r != want {
		t.Errorf("the sixth step sets %v; want %v", r, want)
	}
}

// Below the target a window grows by a packet in a round trip, above it shrinks
// once a round trip by 0.8 of the excess; small windows have a larger target.
func TestSwiftHoldsTheTarget(t *testing.T) {
	f := flow
	f.Hops = 5
	c := DefaultSwift().New(f).(*Swift)
	if got := c.target(); got != 30*us {
		t.Errorf("a large window has a target of %v; want 25 µs and 5 of 1 µs", got)
	}
	start := c.window
	now := 100 * us
	r := c.OnAck(&Ack{Now: now, Sent: now - 60*us, Seq: 1000}) // twice the target
	if want := start * 0.6; c.window < want-1e-6 || c.window > want+1e-6 || r > f.Line {
		t.Errorf("twice the target cuts the window from %v to %v; want %v", start, c.window, want)
	}
	if after := c.window; c.OnAck(&Ack{Now: now + us, Sent: now - 59*us, Seq: 2000}) == 0 || c.window != after {
		t.Errorf("a second cut within a round trip sets the window to %v; want %v", c.window, after)
	}
	if c.OnAck(&Ack{Now: now + 900*us, Sent: 0, Seq: 3000}); c.window < start*0.3-1e-6 {
		t.Errorf("the largest cut leaves %v; want half of %v", c.window, start*0.6)
	}
	before := c.window
	for i := range int64(before) {
		c.OnAck(&Ack{Now: now, Sent: now - 10*us, Seq: 4000 + 1000*i})
	}
	if grown := c.window - before; grown < 0.9 || grown > 1.01 {
		t.Errorf("a round trip below the target adds %v packets; want 1", grown)
	}
	c.window = 0.1
	if got := c.target(); got < 130*us-1000 || got > 130*us {
		t.Errorf("a window of 0.1 packets has a target of %v; want 100 µs more", got)
	}
	if c.OnAck(&Ack{Now: now, Sent: now - 10*us, Seq: 200_000_000}); c.window < 0.1 || c.rate > f.Line {
		t.Errorf("window %v and rate %v after one acknowledgement; want more than 0.1, at most line rate", c.window, c.rate)
	}
}

func TestDCTCPLowersOnceARoundTrip(t *testing.T) {
	p := DefaultDCTCP()
	c := newDCTCP(p, flow)
	c.OnAck(&Ack{Seq: 1000, Next: 10_000})
	if r := c.OnAck(&Ack{Seq: 2000, Next: 11_000, Marked: true}); r != 50e9 {
		t.Errorf("the first mark sets %v; want half", r)
	}
	if r := c.OnAck(&Ack{Seq: 3000, Next: 12_000, Marked: true}); r != 50e9 {
		t.Errorf("the second mark of a round trip sets %v; want no change", r)
	}
	// A new round trip: two marks of 11 packets weigh alpha down to
	// 15/16 + 2/11/16, and the mark is beyond the byte sent when it was cut.
	alpha := 15./16 + 2./11/16
	r := c.OnAck(&Ack{Seq: 11_001, Next: 20_000})
	if r != 51e9 {
		t.Errorf("a round trip later the rate is %v; want 1 Gb/s more", r)
	}
	if got := c.alpha; got < alpha-1e-9 || got > alpha+1e-9 {
		t.Errorf("alpha is %v; want %v", got, alpha)
	}
}

// Whatever comes, rates stay between their bounds and nothing is allocated.
func TestRatesStayBetweenTheirBounds(t *testing.T) {
	hp, ti, dc, sw := DefaultHPCC(), DefaultTIMELY(), DefaultDCTCP(), DefaultSwift()
	single := *hp
	single.PerHop, single.Sampled, single.Stages = false, true, 0
	rapid.Check(t, func(t *rapid.T) {
		controls := []Control{newHPCC(hp, flow), newHPCC(&single, flow), newTIMELY(ti, flow), newDCTCP(dc, flow)}
		swift := sw.New(flow)
		var a Ack
		for range 40 {
			s := &Stack{}
			for range rapid.IntRange(0, 6).Draw(t, "hops") {
				s.Push(a.Now, model.Bytes(rapid.Uint32().Draw(t, "sent")), int64(rapid.Uint32Range(0, 1<<24).Draw(t, "queued")), LineRates[2], 1)
			}
			a.Now += engine.Time(rapid.IntRange(0, 1e9).Draw(t, "later"))
			a.Sent = a.Now - engine.Time(rapid.IntRange(0, 1e9).Draw(t, "rtt"))
			a.Seq += int64(rapid.IntRange(0, 5000).Draw(t, "acked"))
			a.Next = a.Seq + int64(rapid.IntRange(0, 100_000).Draw(t, "ahead"))
			a.Marked, a.INT = rapid.Bool().Draw(t, "marked"), s
			if r := swift.OnAck(&a); r < 1 || r > flow.Line {
				t.Fatalf("Swift.OnAck(%+v) = %v; want 1b/s to 100Gb/s", a, r)
			}
			for _, c := range controls {
				if r := c.OnAck(&a); r < 100*model.Mbps || r > flow.Line {
					t.Fatalf("%T.OnAck(%+v) = %v; want 100Mb/s to 100Gb/s", c, a, r)
				}
			}
		}
	})
	c := newHPCC(hp, flow)
	a := Ack{Seq: 1, Next: 2, INT: stack(us, 1000, 80)}
	if n := testing.AllocsPerRun(100, func() { a.Seq++; a.Next++; c.OnAck(&a) }); n != 0 {
		t.Errorf("OnAck allocates %v times; want never", n)
	}
}

func TestCheckRejects(t *testing.T) {
	h, ti, d, s := DefaultHPCC(), DefaultTIMELY(), DefaultDCTCP(), DefaultSwift()
	for _, err := range []error{h.Check(), ti.Check(), d.Check(), s.Check()} {
		if err != nil {
			t.Errorf("defaults: %v", err)
		}
	}
	h.Target, ti.MinRTT, d.Gain, s.MaxCut = 0, 0, 2, 1
	for i, err := range []error{h.Check(), ti.Check(), d.Check(), s.Check()} {
		if err == nil {
			t.Errorf("case %d passes; want an error", i)
		}
	}
	if EncodableRate(40*model.Gbps) || !EncodableRate(400*model.Gbps) {
		t.Error("EncodableRate(40Gb/s), EncodableRate(400Gb/s); want false and true")
	}
}
