package probe_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/mirror"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lab is a simulated fabric whose switches mirror one in so many packets to two
// analyzers.
type lab struct {
	*sim.Network
	analyzers [2]*trace.Analyzer
	counters  *trace.Counters
	judge     *trace.Judge
	keep      func(t *trace.Trace) // sees kept traces as they close
	short     []model.FlowKey      // of packets that did not arrive
	rng       *rand.Rand
}

// setup says what a lab is like.
type setup struct {
	fabric *topo.Fabric
	seed   uint64
	every  uint32 // one in so many packets is mirrored
	loss   float64
	linger time.Duration
	deaf   []model.NodeID // switches that mirror nothing
}

func newLab(t testing.TB, s setup) *lab {
	t.Helper()
	cfg := sim.DefaultConfig()
	cfg.Seed = s.seed
	routes, err := topo.NewRoutes(s.fabric, topo.RouteConfig{Seed: s.seed})
	check(t, err)
	l := &lab{counters: trace.NewCounters(), rng: rand.New(rand.NewPCG(s.seed, 1))}
	l.Network, err = sim.New(routes, cfg)
	check(t, err)
	judge := trace.DefaultJudgeConfig()
	l.judge, err = trace.NewJudge(judge, s.fabric)
	check(t, err)
	settings := trace.DefaultConfig()
	settings.CloseAfter, settings.RouteSettle, settings.MaxTraces = time.Millisecond, time.Millisecond, 1<<14
	for i := range l.analyzers {
		l.analyzers[i], err = trace.NewAnalyzer(settings, judge, 2*time.Millisecond, l.Intent(), trace.Output{
			Keep: func(tr *trace.Trace) {
				if tr.End == trace.Lost || tr.End == trace.Looped {
					l.short = append(l.short, tr.Key)
				}
				if l.keep != nil {
					l.keep(tr)
				}
			},
			Flush: func(_, _ model.Time, c *trace.Counters, j *trace.Judge) {
				l.counters.Merge(c)
				l.judge.Merge(j)
			},
		})
		check(t, err)
	}
	mgmt := simhost.DefaultManagementConfig()
	mgmt.Seed, mgmt.Loss, mgmt.Reorder = s.seed, s.loss, true
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
	check(t, err)
	host := simhost.DefaultConfig()
	host.Carrier, host.Linger = m, s.linger
	for _, id := range s.fabric.Switches() {
		if slices.Contains(s.deaf, id) {
			continue
		}
		c := mirror.DefaultConfig()
		c.SampleOneIn, c.Lists, c.Rate = s.every, 2, 0
		p, err := mirror.New(simhost.Describe(l.Network, id, 0), c)
		check(t, err)
		_, err = simhost.Attach(l.Network, id, inswitch.NewPipeline(p), host)
		check(t, err)
	}
	l.tick()
	return l
}

// tick closes traces in time, also when nothing more comes.
func (l *lab) tick() {
	for _, a := range l.analyzers {
		a.Advance(l.Now().Model())
	}
	l.At(l.Now()+ms/2, l.tick)
}

// talk adds flows between hosts by chance, of some transports in turn, in the
// first two milliseconds.
func (l *lab) talk(t testing.TB, flows int, kinds ...traffic.Transport) {
	t.Helper()
	hosts := l.Fabric().Hosts()
	var list []traffic.Flow
	for i := range flows {
		src, dst := l.rng.IntN(len(hosts)), l.rng.IntN(len(hosts)-1)
		if dst >= src {
			dst++
		}
		list = append(list, traffic.Flow{
			Src: hosts[src], Dst: hosts[dst], Bytes: model.Bytes(20_000 + l.rng.IntN(40_000)), Priority: 3, Start: model.Time(l.rng.IntN(2_000_000)),
			Transport: kinds[i%len(kinds)], Rate: 5 * model.Gbps, V6: i/len(kinds)%4 == 3,
		})
	}
	check(t, l.AddFlows(list))
}

// finish closes all traces and returns what is found.
func (l *lab) finish(t testing.TB) []trace.Finding {
	t.Helper()
	for _, a := range l.analyzers {
		a.Advance(l.Now().Model() + 1_000_000) // packets that are still in flight are not lost
		if s := a.Stats(); s.Malformed+s.Evicted > 0 {
			t.Errorf("%+v; want nothing malformed, nothing evicted", s)
		}
		a.Finish()
	}
	return l.judge.Findings()
}

func (l *lab) inject(t testing.TB, f sim.Fault) {
	t.Helper()
	check(t, l.Inject(sim.Injection{Fault: f}))
}

const ms = engine.Millisecond

var (
	allKinds = []traffic.Transport{traffic.RDMA, traffic.TCP, traffic.UDP}
	noticed  = []traffic.Transport{traffic.RDMA, traffic.TCP} // whose senders learn of losses
)
