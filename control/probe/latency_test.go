package probe_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/probe"
)

// TestClaimLinkLatency measures the round trip of a link that carries 30 % of
// its rate in both directions, whose switches have clocks that differ, by the
// near switch's own clock and by arrivals at the analyzer, which are 100 to 120
// µs late.
func TestClaimLinkLatency(t *testing.T) {
	race.LeaveToPlainRun(t)
	links := topo.DefaultLinks()
	f, err := topo.LeafSpine(2, 1, 4, links)
	check(t, err)
	leaf, _ := f.ByName("leaf0")
	spine, _ := f.ByName("spine0")
	const trips = 1000
	for _, stamps := range []bool{true, false} {
		l := newLab(t, setup{fabric: f, seed: 1})
		l.SetClock(leaf, sim.Clock{Offset: 3 * time.Millisecond, Drift: 20e-6})
		l.SetClock(spine, sim.Clock{Offset: -7 * time.Millisecond, Drift: -30e-6})
		var flows []traffic.Flow
		for i, src := range f.Hosts() {
			flows = append(flows, traffic.Flow{
				Src: src, Dst: f.Hosts()[(i+4)%8], Stop: 40e6, Start: model.Time(137 * i), Transport: traffic.UDP,
				Rate: links.Fabric.Rate * 3 / 40 * model.Rate(997+i) / 1000,
			})
		}
		check(t, l.AddFlows(flows))
		cfg := probe.DefaultConfig()
		cfg.Interval = 20 * time.Microsecond
		scheduler, err := probe.NewScheduler(cfg, l.Intent(), simhost.NewProbers(l.Network, nil))
		check(t, err)
		l.keep = func(tr *trace.Trace) { scheduler.MatchTrace(tr) }
		q, err := scheduler.Latency(0, leaf, spine, stamps, uint32(trips))
		check(t, err)
		l.Run(ms)
		out := f.Node(leaf).PortsTo(spine)[0]
		before := l.Port(model.Port{Node: leaf, Port: out}).TxData
		took, err := scheduler.Start(q)
		check(t, err)
		l.Run(ms + engine.Of(took))
		load := float64(l.Port(model.Port{Node: leaf, Port: out}).TxData-before) * 8 / took.Seconds() / float64(links.Fabric.Rate)
		if load < 0.28 || load > 0.34 {
			t.Fatalf("load %.3f; want 0.3", load)
		}
		l.Run(l.Now() + 3*ms)
		if found := l.finish(t); len(found) > 0 {
			t.Errorf("probes make somebody look guilty: %+v", found)
		}
		// There with three IP headers of four, back with two.
		a, ok := q.Answer()
		bytes := 2*(int(a.Bytes)+14) - 20 - 40
		truth := 2*links.Fabric.Delay + time.Duration(float64(bytes)*8e9/float64(links.Fabric.Rate))
		t.Logf("stamps %v: %+v; truth %v", stamps, a, truth)
		off := func(d time.Duration) float64 { return math.Abs(float64(d-truth)) / float64(truth) }
		if !ok || a.Returned < trips*99/100 || off(a.Min) > 0.05 || stamps && (off(a.Median) > 0.05 || off(a.Mean) > 0.05) {
			t.Errorf("stamps %v: %+v; want %v, 5 %% more or less", stamps, a, truth)
		}
		if !stamps && math.Abs(float64(a.Mean-truth)) > 4*float64(a.Error) {
			t.Errorf("mean %v ± %v; want %v within four errors", a.Mean, a.Error, truth)
		}
	}
}

// TestReplayRecoversATrace: no sample has caught a flow; a replay shows its path.
func TestReplayRecoversATrace(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(t, err)
	l := newLab(t, setup{fabric: f, seed: 2, loss: 0.2, linger: 20 * time.Microsecond})
	check(t, l.AddFlows([]traffic.Flow{{Src: 0, Dst: 15, Bytes: 10_000, Priority: 3}}))
	key, _ := l.FlowKey(0)
	scheduler, err := probe.NewScheduler(probe.DefaultConfig(), l.Intent(), simhost.NewProbers(l.Network, nil))
	check(t, err)
	l.keep = func(tr *trace.Trace) { scheduler.MatchTrace(tr) }
	l.Run(ms)
	if l.counters.Traces > 0 {
		t.Fatalf("%d traces; want none before the replay", l.counters.Traces)
	}
	q, err := scheduler.Replay(l.Now().Model(), key, 20)
	check(t, err)
	_, err = scheduler.Start(q)
	check(t, err)
	l.Run(6 * ms)
	got, n := q.Answer()
	if got == nil || n < 15 || got.End != trace.Arrived {
		t.Fatalf("%d traces, the best %+v; want one that arrived", n, got)
	}
	path, err := l.Routes().Path(key, 0)
	check(t, err)
	if len(got.Hops) != len(path)-2 {
		t.Fatalf("%d hops; want %d", len(got.Hops), len(path)-2)
	}
	for i, h := range got.Hops {
		if h.Switch != path[i+1].Node || h.Out != path[i+1].Out {
			t.Errorf("hop %d: %d by port %d; want %+v", i, h.Switch, h.Out, path[i+1])
		}
	}
	// The captured frame can be replayed too.
	again, err := scheduler.ReplayFrame(l.Now().Model(), got.Frame, 3)
	check(t, err)
	if _, err := scheduler.StartEvery(again, 0); err == nil {
		t.Error("probes are sent all at once")
	}
	if took, err := scheduler.StartEvery(again, 250*time.Microsecond); err != nil || took != 750*time.Microsecond {
		t.Errorf("three probes, 250 µs apart, take %v (%v); want 750 µs", took, err)
	}
	l.Run(9 * ms)
	if got, n := again.Answer(); got == nil || n == 0 || got.Key != key {
		t.Errorf("%d traces of the frame's replay, %+v; want some of %v", n, got, key)
	}
	if _, err := scheduler.ReplayFrame(0, []byte("no frame"), 1); err == nil {
		t.Error("bytes that are no frame are replayed")
	}
}

// TestProbeByFormat sends the paper's example: TCP in a tunnel, by names.
func TestProbeByFormat(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(t, err)
	l := newLab(t, setup{fabric: f, seed: 2})
	scheduler, err := probe.NewScheduler(probe.DefaultConfig(), l.Intent(), simhost.NewProbers(l.Network, nil))
	check(t, err)
	l.keep = func(tr *trace.Trace) { scheduler.MatchTrace(tr) }
	q, err := scheduler.Series(0, "ip.src == h3,h0 && ip.dst == spine1,h15 && ip.proto == 6 && tcp.dstport == 80", 30)
	check(t, err)
	took, err := scheduler.StartEvery(q, 50*time.Microsecond)
	check(t, err)
	l.Run(engine.Of(took) + 3*ms)
	a := q.Answer()
	last, _ := f.ByName("tor7")
	if a.Host != 3 || a.Seen != 30 || a.Arrived != 30 || len(a.Ends) != 1 || a.Ends[0] != (probe.End{Switch: last, Probes: 30}) || len(a.Traces) != 16 {
		t.Errorf("%+v; want 30 probes from h3 seen last at tor7", a)
	}
	spine, _ := f.ByName("spine1")
	if h := a.Traces[0].Hops; h[2].Switch != spine || h[2].Depth != 2 || h[3].Depth != 1 {
		t.Errorf("%+v; want a tunnel to spine1", h)
	}
	if _, err := scheduler.Series(0, "ip.src == h3", 1); err == nil {
		t.Error("a probe without destination is sent")
	}
	if scheduler.Late+scheduler.Foreign != 0 {
		t.Errorf("%d late and %d foreign traces; want none", scheduler.Late, scheduler.Foreign)
	}
	scheduler.Close(q)
	late := a.Traces[0]
	scheduler.MatchTrace(late)
	s, err := wire.FindStamp(late.Frame)
	check(t, err)
	at := bytes.Index(late.Frame, s.AppendTo(nil))
	s.Series++
	copy(late.Frame[at:], s.AppendTo(nil))
	if !scheduler.MatchTrace(late) || scheduler.Late != 1 || scheduler.Foreign != 1 {
		t.Errorf("%d late and %d foreign traces after one of each", scheduler.Late, scheduler.Foreign)
	}
}

// TestDeafSwitches: the mirrors of the only spine go nowhere, and later it dies.
// Probes see the far leaf while it lives, and are distinguished from a dead one only
// by that.
func TestDeafSwitches(t *testing.T) {
	f, err := topo.LeafSpine(2, 1, 2, topo.DefaultLinks())
	check(t, err)
	spine, _ := f.ByName("spine0")
	for _, dead := range []bool{false, true} {
		l := newLab(t, setup{fabric: f, seed: 2, deaf: []model.NodeID{spine}})
		if dead {
			l.inject(t, sim.LossySwitch{Switch: spine, Share: 1})
		}
		cfg := probe.DefaultConfig()
		cfg.Interval = 20 * time.Microsecond
		scheduler, err := probe.NewScheduler(cfg, l.Intent(), simhost.NewProbers(l.Network, nil))
		check(t, err)
		l.keep = func(tr *trace.Trace) { scheduler.MatchTrace(tr) }
		q, err := scheduler.Drops(0, model.FlowKey{Src: f.Node(0).IPv4, Dst: f.Node(2).IPv4, SrcPort: 1, DstPort: 2, Proto: model.UDP}, nil, 10)
		check(t, err)
		took, err := scheduler.Start(q)
		check(t, err)
		l.Run(engine.Of(took) + 3*ms)
		a := q.Answer()
		if want := map[bool]probe.Kind{false: probe.Passed, true: probe.Persistent}[dead]; a.Kind != want || a.Deaf != dead {
			t.Errorf("dead %v: %v, deaf %v, %+v; want %v", dead, a.Kind, a.Deaf, a.At, want)
		}
	}
}
