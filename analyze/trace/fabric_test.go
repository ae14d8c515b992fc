package trace_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/mirror"
)

// lab is a simulated fabric in which every packet is mirrored to two
// analyzers.
type lab struct {
	*sim.Network
	analyzers [2]*trace.Analyzer
	counters  *trace.Counters
	judge     *trace.Judge
	kept      []*trace.Trace
	rng       *rand.Rand
}

// newLab builds the k=4 fat-tree: hosts 0 to 15, ToRs 16 to 23, leaves 24 to
// 31, spines 32 to 35.
func newLab(t testing.TB, seed uint64, mgmt simhost.ManagementConfig) *lab {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return labOf(t, f, seed, mgmt)
}

func labOf(t testing.TB, f *topo.Fabric, seed uint64, mgmt simhost.ManagementConfig) *lab {
	t.Helper()
	cfg := sim.DefaultConfig()
	cfg.Seed = seed
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{counters: trace.NewCounters(), rng: rand.New(rand.NewPCG(seed, 1))}
	if l.Network, err = sim.New(routes, cfg); err != nil {
		t.Fatal(err)
	}
	judge := trace.DefaultJudgeConfig()
	if l.judge, err = trace.NewJudge(judge, f); err != nil {
		t.Fatal(err)
	}
	settings := trace.DefaultConfig()
	settings.CloseAfter, settings.RouteSettle = time.Millisecond, time.Millisecond
	for i := range l.analyzers {
		l.analyzers[i], err = trace.NewAnalyzer(settings, judge, 2*time.Millisecond, l.Intent(), trace.Output{
			Keep: func(tr *trace.Trace) { l.kept = append(l.kept, tr.Clone()) },
			Flush: func(_, _ model.Time, c *trace.Counters, j *trace.Judge) {
				l.counters.Merge(c)
				l.judge.Merge(j)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	mgmt.Seed = seed
	m, err := simhost.NewManagement(l.Network, mgmt, func(at model.Time, _ model.NodeID, datagram []byte) {
		var read dta.Reader
		_ = read.Reset(datagram)
		for rep := (dta.Report{}); read.Next(&rep); {
			var one wire.Mirror
			if _, err := one.Parse(rep.Data); err != nil {
				t.Fatalf("report %x: %v", rep.Data, err)
			}
			l.analyzers[rep.List].AddMirror(at, &one)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	host := simhost.DefaultConfig()
	host.Carrier = m
	for _, id := range f.Switches() {
		c := mirror.DefaultConfig()
		c.SampleOneIn, c.Lists, c.Rate = 1, 2, 0
		p, err := mirror.New(simhost.Describe(l.Network, id, 0), c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := simhost.Attach(l.Network, id, inswitch.NewPipeline(p), host); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// talk adds flows of all transports between hosts by chance.
func (l *lab) talk(t testing.TB, flows int) {
	t.Helper()
	var list []traffic.Flow
	for i := range flows {
		src, dst := model.NodeID(l.rng.IntN(16)), model.NodeID(l.rng.IntN(15))
		if dst >= src {
			dst++
		}
		list = append(list, traffic.Flow{
			Src: src, Dst: dst, Bytes: model.Bytes(20_000 + l.rng.IntN(40_000)), Priority: 3, Start: model.Time(l.rng.IntN(2_000_000)),
			Transport: []traffic.Transport{traffic.RDMA, traffic.TCP, traffic.UDP}[i%3], Rate: 5 * model.Gbps, V6: i%4 == 3,
		})
	}
	if err := l.AddFlows(list); err != nil {
		t.Fatal(err)
	}
}

// run simulates to the end and returns the findings.
func (l *lab) run(t testing.TB) []trace.Finding {
	t.Helper()
	l.Run(12 * engine.Millisecond)
	for _, a := range l.analyzers {
		a.Advance(13_000_000) // packets that are still in flight are not lost
		if s := a.Stats(); s.Malformed+s.Overflow+s.Evicted > 0 {
			t.Errorf("%+v; want nothing malformed, nothing evicted", s)
		}
		a.Finish()
	}
	return l.judge.Findings()
}

func (l *lab) inject(t testing.TB, f sim.Fault) {
	t.Helper()
	if err := l.Inject(sim.Injection{Fault: f}); err != nil {
		t.Fatal(err)
	}
}

func lossy(share float64) simhost.ManagementConfig {
	m := simhost.DefaultManagementConfig()
	m.Loss, m.Reorder = share, true
	return m
}

// losses are the shares of mirrors that are lost in flight.
var losses = race.Less([]float64{0, 0.05, 0.2}, []float64{0.2})

// TestHealthyFabricRaisesNoAlarm: routes change under traffic, switch by
// switch, mirrors come in any order and up to a fifth of them is lost.
func TestHealthyFabricRaisesNoAlarm(t *testing.T) {
	for seed := range race.Less(uint64(5), 1) {
		for _, loss := range losses {
			t.Run(fmt.Sprintf("seed=%d,loss=%v", seed, loss), func(t *testing.T) {
				l := newLab(t, seed, lossy(loss))
				l.talk(t, 60)
				for i := range 3 {
					l.At(engine.Time(i+1)*engine.Millisecond, func() {
						cfg := l.Routes().Config()
						cfg.Down = []int{16 + l.rng.IntN(16)} // between a ToR and a leaf, or above
						r, err := topo.NewRoutes(l.Fabric(), cfg)
						if err != nil {
							t.Error(err)
							return
						}
						l.SetIntendedRoutes(r, func(model.NodeID) time.Duration { return time.Duration(l.rng.IntN(200_000)) })
					})
				}
				if found := l.run(t); len(found) > 0 {
					t.Errorf("findings in a healthy fabric: %+v", found)
				}
				c := l.counters
				if c.Arrived < 1000 || loss == 0 && (c.Lost != 0 || c.MirrorsLost != 0) || loss > 0 && c.MirrorsLost == 0 {
					t.Errorf("%d of %d traces arrived, %d lost, %d mirrors lost", c.Arrived, c.Traces, c.Lost, c.MirrorsLost)
				}
			})
		}
	}
}

// TestFaultsAreFound breaks one thing at a time, with and without loss of
// mirrors.
func TestFaultsAreFound(t *testing.T) {
	race.LeaveToPlainRun(t)
	const tor, leaf, spine = 16, 24, 32
	host := func(l *lab, id model.NodeID) netip.Prefix {
		a := l.Fabric().Node(id).IPv4.Netip()
		return netip.PrefixFrom(a, 32)
	}
	for name, tc := range map[string]struct {
		fault func(l *lab) sim.Fault
		kind  trace.Kind
		at    []model.NodeID
	}{
		"a leaf loses a third":       {func(*lab) sim.Fault { return sim.LossySwitch{Switch: leaf, Share: 0.3} }, trace.Drop, []model.NodeID{leaf}},
		"a spine loses all":          {func(*lab) sim.Fault { return sim.LossySwitch{Switch: spine, Share: 1} }, trace.Drop, []model.NodeID{spine}},
		"a wire loses half":          {func(*lab) sim.Fault { return sim.Lossy{Port: model.Port{Node: leaf, Port: 3}, Share: 0.5} }, trace.Drop, []model.NodeID{leaf}},
		"a blackhole for one host":   {func(l *lab) sim.Fault { return sim.Reroute{Entries: []sim.Entry{{Switch: leaf, To: host(l, 0)}}} }, trace.Drop, []model.NodeID{leaf}},
		"a blackhole for some flows": {func(*lab) sim.Fault { return sim.CorruptTable{Switch: spine, Share: 0.3, Seed: 5} }, trace.Drop, []model.NodeID{spine}},
		"a loop of a ToR and a leaf": {func(l *lab) sim.Fault {
			return sim.Reroute{Entries: []sim.Entry{{Switch: leaf, To: host(l, 2), Via: []model.NodeID{tor}}, {Switch: tor, To: host(l, 2), Via: []model.NodeID{leaf}}}}
		}, trace.Loop, []model.NodeID{leaf, tor}},
	} {
		for _, loss := range losses {
			t.Run(fmt.Sprintf("%s,loss=%v", name, loss), func(t *testing.T) {
				l := newLab(t, 7, lossy(loss))
				l.talk(t, 150)
				l.inject(t, tc.fault(l))
				found := l.run(t)
				if len(found) == 0 {
					t.Fatalf("nothing found; %d arrived, %d lost, %d looped", l.counters.Arrived, l.counters.Lost, l.counters.Looped)
				}
				for _, f := range found {
					if f.Kind != tc.kind || !slices.Contains(tc.at, f.Switch) {
						t.Errorf("found %+v; want %v at %v alone", f, tc.kind, tc.at)
					}
				}
			})
		}
	}
}
