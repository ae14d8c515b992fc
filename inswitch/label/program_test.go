package label

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// carried is a packet's labels and how the host answers about them.
type carried struct {
	block label.Block
	err   error
}

func (c *carried) Seq() uint32                        { return 0 }
func (c *carried) Labels() label.Block                { return c.block }
func (c *carried) CanPushLabel(label.Params) error    { return c.err }
func (c *carried) AppendFrame(b []byte, _ int) []byte { return b }

var flow = model.NewFlowKey(netip.MustParseAddrPort("10.0.0.2:1"), netip.MustParseAddrPort("10.1.0.2:2"), model.UDP)

// bench is one switch: port 1 and 2 lead to switches, port 3 to a host.
type bench struct {
	*Program
	src carried
	pkt inswitch.Packet
	ev  inswitch.Event
	act inswitch.Actions
}

func newBench(t testing.TB, cfg Config) *bench {
	dev := inswitch.Device{ID: 7, MTU: 2000, Ports: []inswitch.Port{{Rate: 100 * model.Gbps}, {Rate: 100 * model.Gbps}, {Rate: 100 * model.Gbps, FacesHost: true}}}
	p, err := New(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Program: p}
	b.pkt = inswitch.Packet{Key: &flow, Outer: &flow, Size: 1000, Source: &b.src}
	b.ev = inswitch.Event{Stage: inswitch.Dequeue, Packet: &b.pkt}
	return b
}

// labels gives the next packet n labels.
func (b *bench) labels(n int, specific bool) {
	o := label.Option{NextHeader: model.UDP, Num: uint8(n), MaxHop: 5}
	if specific {
		o.Num += o.MaxHop
	}
	raw := o.AppendTo(nil)
	for i := range n {
		raw = label.Item{Switch: model.NodeID(100 + i)}.AppendTo(raw)
	}
	b.src.block = label.Block{}
	if n > 0 {
		if _, err := b.src.block.Parse(raw); err != nil {
			panic(err)
		}
	}
	b.pkt.LabelCount = uint8(n)
}

// send shows a packet and reports whether it was labelled.
func (b *bench) send(now time.Duration, in, out model.PortID) bool {
	b.ev.Now, b.ev.In, b.ev.Out = model.Time(now), in, out
	b.act.Reset()
	b.Observe(&b.ev, &b.act)
	return b.act.Changes.Has(inswitch.PushLabel)
}

func TestBaseALabelsOncePerInterval(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Interval, cfg.MinInterval = 10*time.Millisecond, 10*time.Millisecond
	b := newBench(t, cfg)
	b.labels(3, false) // what a packet carries changes nothing in Base A
	n := 0
	for now := time.Duration(0); now < time.Second; now += 100 * time.Microsecond {
		if b.send(now, 1, 2) {
			n++
		}
	}
	// The first at once, then each first packet after more than 10 ms.
	if n != 100 || b.Stats().Interval != 100 || b.Stats().Random != 0 {
		t.Errorf("%d labels in a second, %+v; want 100, all due", n, b.Stats())
	}
	if b.send(time.Second, 1, 1) != true {
		t.Error("no label on another port's first packet; want one: ports are apart")
	}
}

// TestClaimEveryActivePortIsLabelledWithinTPlusTs sends packets at random
// gaps of at most Ts (section 4.1).
func TestClaimEveryActivePortIsLabelledWithinTPlusTs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		cfg.Interval = time.Duration(rapid.IntRange(1, 50).Draw(rt, "T")) * time.Millisecond
		cfg.MinInterval = time.Duration(rapid.Int64Range(0, int64(cfg.Interval)).Draw(rt, "T1"))
		cfg.Probability = rapid.SampledFrom([]Probability{ProbabilityF1(), ProbabilityF2(4), GrowWithTime(ProbabilityF2(4))}).Draw(rt, "odds")
		cfg.Seed = rapid.Uint64().Draw(rt, "seed")
		ts := time.Duration(rapid.Int64Range(1, int64(cfg.Interval)).Draw(rt, "Ts"))
		shift := uint8(rapid.IntRange(0, 3).Draw(rt, "S"))
		b := newBench(t, cfg)
		if err := b.SetShift(2, shift); err != nil {
			rt.Fatal(err)
		}
		now, last := time.Duration(0), time.Duration(0)
		for range 500 {
			now += time.Duration(rapid.Int64Range(0, int64(ts)).Draw(rt, "gap"))
			b.labels(rapid.IntRange(0, 4).Draw(rt, "labels"), false)
			if b.send(now, 1, 2) {
				last = now
			}
			if limit := cfg.Interval>>shift + ts; now-last > limit {
				rt.Fatalf("at %v the last label is %v old; want at most %v", now, now-last, limit)
			}
		}
	})
}

func TestBaseBPrefersPacketsWithLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		odds Probability
		at   time.Duration // since the last label, of 10 ms
		want [5]float64    // by labels
	}{
		"F1":             {ProbabilityF1(), 5 * time.Millisecond, [5]float64{0, 1, 1, 1, 1}},
		"F2":             {ProbabilityF2(4), 5 * time.Millisecond, [5]float64{0, .25, .5, .75, 1}},
		"F2, code's":     {ProbabilityF2(5), 5 * time.Millisecond, [5]float64{0, .2, .4, .6, .8}},
		"F3, halfway":    {GrowWithTime(ProbabilityF2(4)), 5 * time.Millisecond, [5]float64{0, .125, .25, .375, .5}},
		"F3, at the end": {GrowWithTime(ProbabilityF2(4)), 10 * time.Millisecond, [5]float64{0, .25, .5, .75, 1}},
		"resting":        {ProbabilityF1(), time.Millisecond, [5]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Interval, cfg.MinInterval, cfg.Probability = 10*time.Millisecond, 2*time.Millisecond, tc.odds
			for labels, want := range tc.want {
				b := newBench(t, cfg)
				n := 0
				const trials = 20000
				for i := range trials {
					base := time.Duration(i) * time.Second
					b.labels(0, false)
					b.send(base, 1, 2) // due: the interval begins
					b.labels(labels, false)
					if b.send(base+tc.at, 1, 2) {
						n++
					}
				}
				// Six standard deviations of a binomial.
				if got, tol := float64(n)/trials, 6*math.Sqrt(want*(1-want)/trials); math.Abs(got-want) > tol {
					t.Errorf("with %d labels %.3f were labelled; want %.3f ± %.3f", labels, got, want, tol)
				}
			}
		})
	}
}

func TestLastSwitchTakesLabelsOff(t *testing.T) {
	cfg := DefaultConfig()
	cfg.List = 77
	b := newBench(t, cfg)
	b.labels(2, false)
	b.send(0, 1, 3) // its own port is due
	if !b.act.Changes.Has(inswitch.StripLabels) || b.act.Changes.Has(inswitch.PushLabel) || len(b.act.Reports) != 1 {
		t.Fatalf("actions %+v; want labels taken off and one report", b.act)
	}
	var e label.Export
	r := b.act.Reports[0]
	if _, err := e.Parse(r.Data); err != nil || r.List != 77 || e.Key != flow || e.Labels.Len() != 3 || e.Labels.Item(0).Switch != 7 || e.Labels.Item(1).Switch != 100 {
		t.Fatalf("report %+v, %v; want the port's own label on top of two", e, err)
	}
	b.labels(2, false)
	b.send(time.Microsecond, 1, 3) // ProbabilityF1: labelled by chance, too
	b.labels(0, false)
	b.send(2*time.Microsecond, 1, 3)
	if len(b.act.Reports) != 0 || b.act.Pending() {
		t.Errorf("actions %+v of a packet without labels on a port that is not due; want none", b.act)
	}
	b.labels(5, false)
	b.send(3*time.Microsecond, 1, 3)
	if _, err := e.Parse(b.act.Reports[0].Data); err != nil || e.Labels.Len() != 5 || b.Stats().StackFull != 1 {
		t.Errorf("full packet: %d labels, %v, %+v; want its own 5 and the sixth counted as refused", e.Labels.Len(), err, b.Stats())
	}
}

func TestFollowedFlowsAreLabelledEverywhere(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MinInterval = cfg.Interval
	b := newBench(t, cfg)
	b.send(0, 1, 2)
	if err := b.SampleFlow(FlowSample{Key: flow, OneIn: 4}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range 100 {
		if b.send(time.Duration(i), 3, 2) { // from the host
			n++
			if !b.act.LabelParams.Specific {
				t.Fatal("label of a followed flow is not marked; want Specific")
			}
		}
		if b.send(time.Duration(i), 1, 2) {
			t.Fatal("labelled a packet that came from another switch without labels")
		}
	}
	if n != 25 {
		t.Errorf("%d of 100 packets were labelled; want one in 4", n)
	}
	b.labels(2, true)
	if !b.send(101, 1, 2) || !b.act.LabelParams.Specific {
		t.Error("a packet of a sampled flow was not labelled")
	}
	b.labels(0, false)
	if b.StopSampling(flow); b.send(102, 3, 2) {
		t.Error("labelled after Forget")
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	b := newBench(t, DefaultConfig())
	for _, err := range []error{label.ErrFull, label.ErrTooLong, label.ErrChecksum} {
		b.src.err = err
		if b.send(0, 1, 2) {
			t.Errorf("labelled a packet of which the host says %v", err)
		}
	}
	if s := b.Stats(); s != (Stats{StackFull: 1, OverMTU: 1, NotRestorable: 1}) {
		t.Errorf("stats %+v; want one of each refusal and no label", s)
	}
	b.src.err = nil
	if !b.send(0, 1, 2) {
		t.Error("no label on the next packet; want one, a refusal does not use the turn up")
	}
}

func TestClockSetBackDoesNotSilenceAPort(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.send(time.Hour, 1, 2)
	if !b.send(0, 1, 2) {
		t.Error("no label after the clock went back an hour; want one")
	}
}

func TestUtilisation(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.send(0, 1, 2)
	for i := range 99 {
		b.send(time.Duration(i)*100*time.Microsecond, 1, 2)
	}
	b.send(100*time.Millisecond, 1, 2)
	// 100 packets of 1000 bytes in 100 ms at 100 Gb/s.
	want := 100 * 8000.0 / (100e9 * 0.1) * math.MaxUint16
	if got := float64(b.act.LabelItem.Utilisation); math.Abs(got-want) > 1 {
		t.Errorf("utilisation %v of 65535; want %.1f", got, want)
	}
}

func TestShiftIsCheckedAndAbsolute(t *testing.T) {
	b := newBench(t, DefaultConfig())
	for range 3 {
		if err := b.SetShift(2, 4); err != nil || b.Shift(2) != 4 {
			t.Fatalf("SetShift(2, 4) = %v, then %d; want nil, 4 however often", err, b.Shift(2))
		}
	}
	for _, bad := range []struct {
		id model.PortID
		s  uint8
	}{{0, 1}, {4, 1}, {1, MaxShift + 1}} {
		if err := b.SetShift(bad.id, bad.s); err == nil {
			t.Errorf("SetShift(%d, %d) = nil; want an error", bad.id, bad.s)
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	b := newBench(t, DefaultConfig())
	rng := rand.New(rand.NewPCG(1, 1))
	now := time.Duration(0)
	b.labels(2, false)
	b.send(0, 1, 3) // the export's memory grows once
	if n := testing.AllocsPerRun(1000, func() {
		now += time.Duration(rng.IntN(1e8))
		b.send(now, 1, model.PortID(1+rng.IntN(3)))
	}); n != 0 {
		t.Errorf("Observe allocates %v times; want 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, name := range []string{"not due", "push"} {
		b.Run(name, func(b *testing.B) {
			x := newBench(b, DefaultConfig())
			step := time.Duration(1)
			if name == "push" {
				step = time.Second
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.send(time.Duration(i)*step, 1, 2)
			}
		})
	}
}
