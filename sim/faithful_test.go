package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// waits measures how long packets wait at one port before they start to leave.
type waits struct {
	NopObserver
	port    *Port
	entered map[int64]engine.Time
	total   engine.Time
	count   int64
}

func (w *waits) Enqueued(now engine.Time, p *Packet, out *Port) {
	if out == w.port {
		w.entered[int64(p.flow)] = now
	}
}

func (w *waits) Dequeued(now engine.Time, p *Packet, out *Port) {
	if out == w.port {
		w.total += now - w.entered[int64(p.flow)]
		w.count++
		delete(w.entered, int64(p.flow))
	}
}

// TestQueueIsMD1 sends packets of one size at random over one link: the mean
// wait must be Pollaczek and Khinchine's.
func TestQueueIsMD1(t *testing.T) {
	race.LeaveToPlainRun(t)
	const packets, payload = 300_000, 958 // 1000 bytes on the wire
	for _, load := range []float64{0.3, 0.6, 0.8} {
		links := topo.DefaultLinks()
		links.Host.Rate = 8 * model.Tbps // arrivals are not spaced by the sender's own wire
		f, err := topo.Dumbbell(1, links)
		cfg := DefaultConfig()
		cfg.Buffer, cfg.Lossless, cfg.AlphaShift, cfg.LossyQueue = 512*model.MB, 0, 0, 0
		n := network(t, f, err, cfg)
		service := engine.Transmit(1000, 100*model.Gbps)
		rng := rand.New(rand.NewPCG(7, uint64(load*10)))
		flows := make([]traffic.Flow, packets)
		at := 0.0
		for i := range flows {
			at += rng.ExpFloat64() * float64(service) / load / float64(engine.Nanosecond)
			flows[i] = traffic.Flow{Src: 0, Dst: 1, Bytes: payload, Transport: traffic.UDP, SrcPort: 1, Start: model.Time(at)}
		}
		n.add(t, flows...)
		s0, _ := f.ByName("s0")
		w := &waits{port: n.Switch(s0).ports[1], entered: map[int64]engine.Time{}}
		n.Observe(w)
		n.Run(engine.Forever - 1)
		got := float64(w.total) / float64(w.count)
		want := load / (2 * (1 - load)) * float64(service)
		if w.count != packets || math.Abs(got-want) > 0.02*want {
			t.Errorf("load %.1f: mean wait of %d packets is %.0f ps; want %.0f of %d, within 2%%", load, w.count, got, want, packets)
		}
	}
}

// TestDCQCNSharesFairly runs four flows over one bottleneck with the paper's
// parameters. Marks are random and few (one packet in several hundred), so the
// shares of a single period of 100 ms scatter by some per cent; they must be
// within 5 % of fair as a rule, and no flow may be favoured.
func TestDCQCNSharesFairly(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg := DefaultConfig()
	cfg.ECN = []ECNParams{{Kmin: 5 * model.KB, Kmax: 200 * model.KB, Pmax: 0.01}} // the paper's
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = 40*model.Gbps, 40*model.Gbps
	f, err := topo.Dumbbell(4, links)
	n := network(t, f, err, cfg)
	var flows []traffic.Flow
	for i := range model.NodeID(4) {
		flows = append(flows, traffic.Flow{Src: i, Dst: i + 4, Stop: 1e12, Priority: 3, Start: model.Time(i) * 1000})
	}
	n.add(t, flows...)
	const warm, period, periods = 50 * time.Millisecond, 100 * time.Millisecond, 8
	n.run(warm)
	var before, first [4]int64
	for i := range before {
		before[i] = n.flows[i].acked
	}
	first = before
	squares := 0.0
	for s := range periods {
		n.run(warm + time.Duration(s+1)*period)
		total := int64(0)
		for i := range before {
			total += n.flows[i].acked - before[i]
		}
		for i := range before {
			off := float64(n.flows[i].acked-before[i])/float64(total)/0.25 - 1
			squares += off * off
			before[i] = n.flows[i].acked
		}
	}
	if off := math.Sqrt(squares / (4 * periods)); off > 0.05 {
		t.Errorf("shares over 100 ms are off by %.1f %% (root mean square); want at most 5 %%", 100*off)
	}
	total := int64(0)
	for i := range before {
		total += before[i] - first[i]
	}
	for i := range before {
		if off := float64(before[i]-first[i])/float64(total)/0.25 - 1; math.Abs(off) > 0.05 {
			t.Errorf("flow %d is off by %.1f %% over 800 ms; want within 5 %%", i, 100*off)
		}
	}
	if use := float64(total) * 8 / (periods * period).Seconds() / 40e9; use < 0.85 {
		t.Errorf("the bottleneck carries %.2f of its rate as payload; want at least 0.85", use)
	}
	if n.Counts.Drops != [numReasons]int64{} {
		t.Errorf("drops %v; want none", n.Counts.Drops)
	}
}

func TestTCPCompletes(t *testing.T) {
	for name, tc := range map[string]struct {
		loss  float64
		flows int
		most  time.Duration
	}{
		"alone":       {0, 1, 2 * time.Millisecond},
		"many":        {0, 8, 20 * time.Millisecond},
		"lossy":       {0.01, 1, 500 * time.Millisecond},
		"very lossy":  {0.1, 1, 10 * time.Second},
		"many, lossy": {0.02, 8, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := topo.Dumbbell(tc.flows, topo.DefaultLinks())
			cfg := DefaultConfig()
			n := network(t, f, err, cfg)
			var flows []traffic.Flow
			for i := range tc.flows {
				flows = append(flows, traffic.Flow{Src: model.NodeID(i), Dst: model.NodeID(i + tc.flows), Bytes: 5_000_000, Transport: traffic.TCP, Start: 1})
			}
			n.add(t, flows...)
			if tc.loss > 0 {
				s0, _ := f.ByName("s0")
				out := n.Switch(s0).ports[tc.flows]
				if err := n.Inject(Injection{Fault: Lossy{Port: model.Port{Node: s0, Port: out.ID}, Share: tc.loss}}); err != nil {
					t.Fatal(err)
				}
			}
			n.run(tc.most)
			if n.Finished != tc.flows {
				t.Fatalf("%d of %d flows finished in %v: %+v", n.Finished, tc.flows, tc.most, n.Counts)
			}
			for _, fl := range n.flows {
				if fl.expected != fl.size {
					t.Errorf("flow %d: the receiver has %d bytes; want %d", fl.id, fl.expected, fl.size)
				}
				if (fl.retransmitted > 0) != (tc.loss > 0) {
					t.Errorf("flow %d retransmitted %d bytes at loss %v", fl.id, fl.retransmitted, tc.loss)
				}
			}
		})
	}
}

// TestTCPWaitsItsLeastTimeout cuts a link under a flow: what was lost at its end
// brings no duplicate acknowledgements, so only the timer can recover it.
func TestTCPWaitsItsLeastTimeout(t *testing.T) {
	for least, want := range map[time.Duration][2]time.Duration{
		0:                      {1300 * time.Microsecond, 20 * time.Millisecond},
		200 * time.Millisecond: {200 * time.Millisecond, 250 * time.Millisecond},
	} {
		f, err := topo.Dumbbell(1, topo.DefaultLinks())
		cfg := DefaultConfig()
		cfg.TCPMinRTO = least
		n := network(t, f, err, cfg)
		n.add(t, traffic.Flow{Src: 0, Dst: 1, Bytes: 5_000_000, Transport: traffic.TCP, Start: 1})
		s0, _ := f.ByName("s0")
		cut := Injection{At: 300_000, For: time.Millisecond, Fault: LinkDown{Port: model.Port{Node: s0, Port: 2}}}
		if err := n.Inject(cut); err != nil {
			t.Fatal(err)
		}
		n.run(time.Second)
		took := n.Records()[0].Finish.Duration()
		if n.Finished != 1 || took < want[0] || took > want[1] {
			t.Errorf("least timeout %v: %d finished, after %v; want %v to %v", least, n.Finished, took, want[0], want[1])
		}
	}
}

// TestReplay holds that a seed gives the same run, to the picosecond.
func TestReplay(t *testing.T) {
	span := race.Less(3*time.Millisecond, 500*time.Microsecond)
	run := func(seed uint64) ([]FlowRecord, Counts) {
		cfg := DefaultConfig()
		cfg.Seed, cfg.Buffer = seed, 3*model.MB
		n := fatTree(t, 4, cfg)
		list, err := traffic.Generate(seed, traffic.HostsOf(n.fabric), traffic.DefaultPoisson())
		if err != nil {
			t.Fatal(err)
		}
		n.add(t, list...)
		n.run(span)
		return n.Records(), n.Counts
	}
	a, ca := run(5)
	b, cb := run(5)
	if len(a) != len(b) || ca != cb {
		t.Fatalf("the same seed gave %d flows and %+v, then %d and %+v", len(a), ca, len(b), cb)
	}
	for i := range a {
		if a[i].Finish != b[i].Finish || a[i].Key != b[i].Key {
			t.Fatalf("flow %d: %+v, then %+v", i, a[i], b[i])
		}
	}
	if _, cc := run(6); cc == ca {
		t.Error("another seed gave the same run")
	}
}

// TestReplayDoesNotDependOnSlices holds that it does not matter where Run
// stops: progress bars must not change results.
func TestReplayDoesNotDependOnSlices(t *testing.T) {
	race.LeaveToPlainRun(t)
	const end = 2 * engine.Millisecond
	run := func(slice engine.Time) ([]FlowRecord, Counts) {
		cfg := DefaultConfig()
		cfg.Buffer = 2 * model.MB
		n := fatTree(t, 4, cfg)
		in := traffic.DefaultIncast()
		list, err := traffic.Generate(3, traffic.HostsOf(n.fabric), traffic.DefaultPoisson(), in)
		if err != nil {
			t.Fatal(err)
		}
		n.add(t, list...)
		n.inject(t, 300*time.Microsecond, 200*time.Microsecond, Storm{Host: 3, Priority: 3, On: 7 * time.Microsecond, Off: 5 * time.Microsecond})
		for n.Now() < end {
			n.Run(min(n.Now()+slice, end))
		}
		return n.Records(), n.Counts
	}
	a, ca := run(end)
	for _, slice := range []engine.Time{engine.Microsecond, 12_345_678, 333 * engine.Microsecond} {
		b, cb := run(slice)
		if ca != cb || len(a) != len(b) {
			t.Fatalf("slices of %v gave %+v; want %+v", slice, cb, ca)
		}
		for i := range a {
			if a[i].Finish != b[i].Finish || a[i].Key != b[i].Key {
				t.Fatalf("slices of %v: flow %d is %+v; want %+v", slice, i, b[i], a[i])
			}
		}
	}
}

// TestSteadyStateAllocatesNothing runs a loaded fabric and counts.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg := DefaultConfig()
	cfg.Buffer = 2 * model.MB
	n := fatTree(t, 4, cfg)
	var flows []traffic.Flow
	for i := range model.NodeID(16) {
		flows = append(flows, steady(i, (i+5)%16), steady(i, (i+9)%16),
			traffic.Flow{Src: i, Dst: 15 - i, Stop: 1e12, Transport: traffic.TCP, Rate: 5 * model.Gbps},
			traffic.Flow{Src: i, Dst: (i + 1) % 16, Stop: 1e12, Priority: 3})
	}
	n.add(t, flows...)
	n.Run(5 * engine.Millisecond)
	hops := n.Counts.Hops
	if got := testing.AllocsPerRun(5, func() { n.Run(n.Now() + 200*engine.Microsecond) }); got > 1 {
		t.Errorf("200 µs of a loaded fabric allocate %v times; want 0", got)
	}
	if n.Counts.Hops-hops < 10_000 || n.Counts.Pauses == 0 {
		t.Errorf("%d hops and %d pauses; want a loaded fabric", n.Counts.Hops-hops, n.Counts.Pauses)
	}
}
