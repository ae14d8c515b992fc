package probe_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
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
)

// seeds is how many faults are drawn.
const seeds = 200

// drawFabric is one of three small shapes.
func drawFabric(t testing.TB, rng *rand.Rand) *topo.Fabric {
	t.Helper()
	var f *topo.Fabric
	var err error
	switch rng.IntN(3) {
	case 0:
		f, err = topo.LeafSpine(3, 2, 2, topo.DefaultLinks())
	case 1:
		f, err = topo.LeafSpine(4, 3, 2, topo.DefaultLinks())
	default:
		f, err = topo.FatTree(4, topo.DefaultLinks())
	}
	check(t, err)
	return f
}

// broken is a fault, and what must be said of it: that kind of finding, at one
// of these switches and nowhere else.
type broken struct {
	sim.Fault
	name string
	kind trace.Kind
	at   []model.NodeID
	// probed is what guided probes may call it.
	probed []probe.Kind
}

// drawFault breaks one thing between switches or in one.
func drawFault(f *topo.Fabric, rng *rand.Rand) broken {
	switches := f.Switches()
	sw := switches[rng.IntN(len(switches))]
	host := f.Hosts()[rng.IntN(len(f.Hosts()))]
	to := netip.PrefixFrom(f.Node(host).IPv4.Netip(), 32)
	var inner []model.Port // ports of sw to other switches
	for _, p := range f.Node(sw).Ports {
		if f.Node(p.Peer.Node).Role.IsSwitch() {
			inner = append(inner, model.Port{Node: sw, Port: p.ID})
		}
	}
	wire := inner[rng.IntN(len(inner))]
	peer := f.Port(wire).Peer.Node
	share := 0.1 + 0.9*rng.Float64()
	if rng.IntN(4) == 0 {
		share = 1
	}
	at, random := []model.NodeID{sw}, []probe.Kind{probe.Random}
	if share > 0.95 { // so few pass that none may be seen
		random = append(random, probe.Persistent)
	}
	switch rng.IntN(7) {
	case 0:
		return broken{sim.LossySwitch{Switch: sw, Share: share}, "random in a switch", trace.Drop, at, random}
	case 1:
		return broken{sim.Lossy{Port: wire, Share: share}, "random on a wire", trace.Drop, at, random}
	case 2:
		return broken{sim.Reroute{Entries: []sim.Entry{{Switch: sw, To: to}}}, "no route to a host", trace.Drop, at, []probe.Kind{probe.Blackhole}}
	case 3:
		return broken{sim.CorruptTable{Switch: sw, Share: 0.1 + 0.4*rng.Float64(), Seed: rng.Uint64()}, "no route for some flows", trace.Drop, at, []probe.Kind{probe.Blackhole}}
	case 4:
		seed := rng.Uint64()
		return broken{sim.LossySwitch{Switch: sw, Share: 1, Match: func(k model.FlowKey) bool { return k.Hash(seed)%4 == 0 }}, "silent for some flows", trace.Drop, at, []probe.Kind{probe.Blackhole}}
	case 5:
		return broken{sim.LinkDown{Port: wire}, "a link down", trace.Drop, []model.NodeID{sw, peer}, []probe.Kind{probe.Persistent}}
	default:
		return broken{sim.Reroute{Entries: []sim.Entry{{Switch: sw, To: to, Via: []model.NodeID{peer}}, {Switch: peer, To: to, Via: []model.NodeID{sw}}}}, "a loop", trace.Loop, []model.NodeID{sw, peer}, []probe.Kind{probe.Looping}}
	}
}

// enough is how many packets a fault must cost to be one that can be judged:
// faults that affect no flow are drawn again.
const enough = 5

// scenario is a lab with one fault. The traffic is in flight when it is
// returned, and the fault has cost something.
func scenario(t testing.TB, seed uint64, every uint32, kinds []traffic.Transport, run engine.Time) (*lab, broken) {
	t.Helper()
	for again := uint64(0); ; again++ {
		rng := rand.New(rand.NewPCG(seed, again))
		f := drawFabric(t, rng)
		b := drawFault(f, rng)
		l := newLab(t, setup{fabric: f, seed: seed + again<<32, every: every, linger: 20 * time.Microsecond})
		l.talk(t, 100, kinds...)
		l.inject(t, b)
		l.Run(run)
		drops := int64(0)
		for _, n := range l.Counts.Drops {
			drops += n
		}
		if drops >= enough {
			return l, b
		}
	}
}

// TestClaimFaultsAreNamed: with every packet mirrored, of random single faults
// all are found, in the right switch and of the right kind, and nothing else
// is.
func TestClaimFaultsAreNamed(t *testing.T) {
	race.LeaveToPlainRun(t)
	for seed := range uint64(seeds) {
		l, b := scenario(t, seed, 1, allKinds, 10*ms)
		found := l.finish(t)
		if len(found) == 0 {
			t.Errorf("seed %d: %s at %v is not found; %d short, %d looped of %d", seed, b.name, b.at, l.counters.Lost, l.counters.Looped, l.counters.Traces)
		}
		for _, f := range found {
			if f.Kind != b.kind || !slices.Contains(b.at, f.Switch) {
				t.Errorf("seed %d: %s at %v is called %+v", seed, b.name, b.at, f)
			}
		}
	}
}

// TestClaimSampleAndProbesNameFaults mirrors one packet in a hundred. What the
// sample shows to end short, and flows whose senders have to send again, are
// probed in both directions, six at a time. At least 99 % of random single faults are
// found, in the right place and with the right kind of drop, and nothing else
// is.
func TestClaimSampleAndProbesNameFaults(t *testing.T) {
	race.LeaveToPlainRun(t)
	named := 0
	for seed := range uint64(seeds) {
		l, b := scenario(t, seed, 100, noticed, 6*ms)
		answers := investigate(t, l, seed)
		for _, a := range answers {
			if !slices.Contains(b.at, a.At.Switch) || !slices.Contains(b.probed, a.Kind) {
				t.Errorf("seed %d: %s at %v is called %v at %v: %s", seed, b.name, b.at, a.Kind, a.At, a.Scope)
			}
		}
		if len(answers) > 0 {
			named++
		} else {
			t.Logf("seed %d: %s at %v is not found", seed, b.name, b.at)
		}
	}
	if t.Logf("%d of %d found", named, seeds); named*100 < seeds*99 {
		t.Errorf("%d of %d faults found; want 99 %%", named, seeds)
	}
}

// investigate probes suspects until one of them shows a fault, and returns what
// all that were asked at the same time showed. It knows mirrors, and what
// senders know of their own flows.
func investigate(t testing.TB, l *lab, seed uint64) (faulty []probe.DropAnswer) {
	t.Helper()
	cfg := probe.DefaultConfig()
	cfg.Interval = 20 * time.Microsecond
	scheduler, err := probe.NewScheduler(cfg, l.Intent(), simhost.NewProbers(l.Network, nil))
	check(t, err)
	suspects := l.short
	l.keep = func(tr *trace.Trace) { scheduler.MatchTrace(tr) }
	well := map[int]bool{}
	for _, r := range l.Records() {
		well[r.ID] = r.Finished && r.Retransmitted == 0
	}
	var complaints []model.FlowKey
	for id := range l.Flows() {
		if !well[id] {
			key, _ := l.FlowKey(id)
			complaints = append(complaints, key, l.BackKey(id))
		}
	}
	rand.New(rand.NewPCG(seed, 9)).Shuffle(len(complaints), func(i, j int) { complaints[i], complaints[j] = complaints[j], complaints[i] })
	suspects = append(suspects, complaints...)
	for ask := 0; ask < min(len(suspects), 24) && len(faulty) == 0; ask += 6 {
		var questions []*probe.Drops
		longest := time.Duration(0)
		for _, k := range suspects[ask:min(ask+6, len(suspects))] {
			q, err := scheduler.Drops(l.Now().Model(), k, nil, 20)
			check(t, err)
			d, err := scheduler.Start(q)
			check(t, err)
			longest, questions = max(longest, d), append(questions, q)
		}
		l.Run(l.Now() + engine.Of(longest) + 3*ms)
		for _, q := range questions {
			if a := q.Answer(); a.Kind != probe.Passed && a.Kind != probe.Unreached {
				faulty = append(faulty, a)
			}
			scheduler.Close(q)
		}
	}
	return faulty
}

// healthy is a run under route changes, switch by switch, with mirrors in any
// order.
func healthy(t testing.TB, seed uint64, loss float64) (*lab, []trace.Finding) {
	t.Helper()
	f := drawFabric(t, rand.New(rand.NewPCG(seed, 3)))
	l := newLab(t, setup{fabric: f, seed: seed, every: 1, loss: loss, linger: 20 * time.Microsecond})
	l.talk(t, 60, allKinds...)
	var inner []int // links between switches
	for i, link := range f.Links() {
		if f.Node(link.A.Node).Role.IsSwitch() && f.Node(link.B.Node).Role.IsSwitch() {
			inner = append(inner, i)
		}
	}
	for i := range 3 {
		l.At(engine.Time(i+1)*ms, func() {
			cfg := l.Routes().Config()
			cfg.Down = []int{inner[l.rng.IntN(len(inner))]}
			r, err := topo.NewRoutes(f, cfg)
			check(t, err)
			l.SetIntendedRoutes(r, func(model.NodeID) time.Duration { return time.Duration(l.rng.IntN(200_000)) })
		})
	}
	l.Run(10 * ms)
	return l, l.finish(t)
}

// TestClaimNoFalseAlarm: healthy runs in which routes change and packets and
// mirrors overtake each other.
func TestClaimNoFalseAlarm(t *testing.T) {
	race.LeaveToPlainRun(t)
	for seed := range uint64(seeds) {
		if l, found := healthy(t, seed, 0); len(found) > 0 || l.counters.Arrived < 500 {
			t.Errorf("seed %d: %d packets arrived, found %+v; want many and nothing", seed, l.counters.Arrived, found)
		}
	}
}

// TestClaimLostMirrorsAreNoFault loses a fifth of the mirrors: no healthy flow
// is called dropped.
func TestClaimLostMirrorsAreNoFault(t *testing.T) {
	race.LeaveToPlainRun(t)
	for seed := range uint64(seeds) {
		if l, found := healthy(t, seed, 0.2); len(found) > 0 || l.counters.MirrorsLost < 500 {
			t.Errorf("seed %d: %d mirrors lost, found %+v; want many and nothing", seed, l.counters.MirrorsLost, found)
		}
	}
}
