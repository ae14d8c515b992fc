package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// onCores sets the cores, and has windows run on all of them that a real run
// would leave to one.
func (n *Network) onCores(t testing.TB, cores int) {
	t.Helper()
	if err := n.SetCores(cores); err != nil {
		t.Fatal(err)
	}
	n.sched.minEvents = 0
}

// transcript is everything that a run leaves behind.
func (n *Network) transcript() uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, n.Now(), n.Counts, n.Finished, n.Records(), n.Computations())
	for _, p := range n.ports {
		fmt.Fprintln(h, p.TxPkts, p.TxData, p.Drops, p.Keepalives, p.PFC, p.PausedFor, p.Marked, p.inbox.at)
	}
	for i := range n.nodes {
		fmt.Fprintln(h, n.nodes[i].rng, n.nodes[i].next)
	}
	return h.Sum64()
}

// busyFabric is a fat-tree with every transport, dependent flows and faults that
// start and end.
func busyFabric(t testing.TB, seed uint64) *Network {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Seed, cfg.Buffer = seed, 2*model.MB
	switch seed % 4 {
	case 1:
		cfg.Congestion = congestion.DefaultHPCC()
		cfg.Window, cfg.GlobalWindow = true, true
	case 2:
		cfg.NoPFC, cfg.LossyQueue = true, 100*model.KB
	case 3:
		cfg.LoadBalancing, cfg.Selective, cfg.Trimming = LoadBalancing(1+seed/4%2), true, true
		cfg.NoPFC, cfg.LossyQueue = true, 100*model.KB
	}
	n := fatTree(t, 4, cfg)
	incast := traffic.DefaultIncast()
	incast.Bytes, incast.Rounds, incast.Period = 100*model.KB, 2, 60*time.Microsecond
	ring := traffic.RingAllReduce{Job: traffic.DefaultJob()}
	ring.Bytes, ring.Compute, ring.Iterations = 320*model.KB, 10*time.Microsecond, 2
	list, err := traffic.Generate(seed, traffic.HostsOf(n.fabric), traffic.DefaultPoisson(), incast, ring)
	if err != nil {
		t.Fatal(err)
	}
	n.add(t, list...)
	for i := range model.NodeID(8) {
		n.add(t,
			traffic.Flow{Src: i, Dst: 15 - i, Bytes: 80 * model.KB, Transport: traffic.TCP, Priority: 1, Start: model.Time(i) * 7},
			traffic.Flow{Src: 15 - i, Dst: (i + 3) % 8, Stop: 120_000, Transport: traffic.UDP, Rate: 5 * model.Gbps, Priority: 2})
	}
	if err := n.EnableBGP(20 * time.Microsecond); err != nil {
		t.Fatal(err)
	}
	const us = time.Microsecond
	tor := n.Host(0).ports[0].peer
	n.inject(t, 10*us, 60*us, Storm{Host: model.NodeID(seed % 16), Priority: 3, On: 7 * us, Off: 5 * us})
	n.inject(t, 20*us, 50*us, SlowReceiver{Host: model.NodeID((seed + 5) % 16), Rate: 20 * model.Gbps, Priority: 3})
	n.inject(t, 15*us, 40*us, LinkDown{Port: model.Port{Node: tor.Node, Port: 3}, Down: 8 * us, Up: 8 * us})
	n.inject(t, 30*us, 80*us, LossySwitch{Switch: tor.Node, Share: 0.02})
	n.inject(t, 0, 150*us, Straggler{Host: 4, Factor: 3})
	n.inject(t, 25*us, 45*us, SlowLink{Port: model.Port{Node: tor.Node, Port: 4}, Rate: 30 * model.Gbps, Delay: 2 * us})
	n.inject(t, 60*us, 30*us, SlowNIC{Host: model.NodeID((seed + 9) % 16), Rate: 40 * model.Gbps})
	n.inject(t, 70*us, 30*us, HashPolarization{})
	return n
}

// TestCoresDoNotMatter: everything that a run leaves behind is the same on any
// number of cores, wherever Run stops.
func TestCoresDoNotMatter(t *testing.T) {
	for seed := range uint64(race.Less(20, 4)) {
		run := func(cores int, slice engine.Time) (*Network, uint64) {
			n := busyFabric(t, seed)
			n.onCores(t, cores)
			for end := engine.Of(150 * time.Microsecond); n.Now() < end; {
				n.Run(min(n.Now()+slice, end))
			}
			return n, n.transcript()
		}
		one, want := run(1, engine.Second)
		if one.Counts.Hops < 10_000 || one.Finished < 20 || one.Counts.Drops == [numReasons]int64{} {
			t.Fatalf("seed %d: %+v, %d flows finished; want a busy fabric that drops some packets", seed, one.Counts, one.Finished)
		}
		for _, cores := range []int{2, 3} {
			if n, got := run(cores, engine.Time(cores)*3_217_001); got != want {
				t.Errorf("seed %d on %d cores: %+v, %d flows finished; want %+v, %d, and the same of everything else",
					seed, cores, n.Counts, n.Finished, one.Counts, one.Finished)
			}
		}
	}
}

// TestCoresMayChange: between two runs, also back to one.
func TestCoresMayChange(t *testing.T) {
	run := func(cores ...int) uint64 {
		n := busyFabric(t, 3)
		for i, c := range cores {
			n.onCores(t, c)
			n.run(time.Duration(i+1) * 20 * time.Microsecond)
		}
		return n.transcript()
	}
	if got, want := run(2, 1, 4, 2), run(1, 1, 1, 1); got != want {
		t.Errorf("transcript %x on 2, 1, 4 and 2 cores; want %x as on one", got, want)
	}
	for _, cores := range []int{0, -1, MaxCores + 1} {
		if err := fatTree(t, 4, DefaultConfig()).SetCores(cores); err == nil {
			t.Errorf("SetCores(%d) succeeds; want an error", cores)
		}
	}
}

// hookLog is a log that the hooks of many nodes share.
type hookLog struct {
	NopObserver
	lines    []string
	parallel bool
}

func (l *hookLog) add(now engine.Time, at *Port, what string) {
	l.lines = append(l.lines, fmt.Sprint(now, " ", at.Node, ".", at.ID, " ", what))
}

func (l *hookLog) ObservesParallel(int) bool { return l.parallel }

func (l *hookLog) Dropped(now engine.Time, p *Packet, at *Port, why Reason) {
	l.add(now, at, fmt.Sprint("drops ", p.Key, p.Seq, why))
}

func (l *hookLog) PauseReceived(now engine.Time, at *Port, prio model.Priority, stop bool) {
	l.add(now, at, fmt.Sprint("gets a pause ", prio, stop))
}

func (l *hookLog) PauseChanged(now engine.Time, at *Port, prio model.Priority, stop bool) {
	l.add(now, at, fmt.Sprint("is paused ", prio, stop))
}

func (l *hookLog) FlowDone(now engine.Time, r *FlowRecord) {
	l.lines = append(l.lines, fmt.Sprint(now, " done ", *r))
}

// TestHooksSeeTheOrderOfOneCore: an observer of rare events, one that is not made
// for several cores, and taps that share a log.
func TestHooksSeeTheOrderOfOneCore(t *testing.T) {
	for name, hook := range map[string]func(n *Network, l *hookLog){
		"parallel observer": func(n *Network, l *hookLog) { l.parallel = true; n.Observe(l) },
		"observer":          func(n *Network, l *hookLog) { n.Observe(l) },
		"taps": func(n *Network, l *hookLog) {
			for _, id := range []int{3, 20, 31, 40, 70} {
				p := n.ports[id]
				p.SetTap(func(now engine.Time, pkt *Packet) { l.add(now, p, fmt.Sprint(pkt.Key, pkt.Seq, n.Now() == now)) })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(cores int) (l hookLog, shared bool) {
				n := busyFabric(t, 1)
				n.onCores(t, cores)
				hook(n, &l)
				n.run(race.Less(100*time.Microsecond, 40*time.Microsecond))
				return l, n.sched.shared
			}
			want, _ := run(1)
			got, shared := run(2)
			if len(want.lines) < 100 || !slices.Equal(got.lines, want.lines) {
				t.Errorf("%d lines on two cores; want the %d of one core", len(got.lines), len(want.lines))
			}
			if shared != (name != "observer") {
				t.Errorf("several cores used: %v", shared)
			}
		})
	}
}

// TestDivide: every node has a worker, loads are about equal, and pinned nodes
// are the first worker's.
func TestDivide(t *testing.T) {
	n := fatTree(t, 8, DefaultConfig())
	order := n.byPod()
	ids := make([]int, 0, len(order))
	total := int64(0)
	for i, nd := range order {
		ids = append(ids, int(nd.id))
		nd.cost = int64(10 + i%7)
		nd.pinned = i%50 == 3
		total += nd.cost
	}
	slices.Sort(ids)
	for i, id := range ids {
		if i != id || len(ids) != len(n.nodes) {
			t.Fatalf("nodes %v; want each once", ids)
		}
	}
	for workers := 1; workers <= 5; workers++ {
		loads := make([]int64, workers)
		for id, w := range divide(order, workers) {
			loads[w] += n.nodes[id].cost
			if n.nodes[id].pinned && w != 0 {
				t.Errorf("pinned node %d runs on worker %d of %d", id, w, workers)
			}
		}
		for _, l := range loads {
			if mean := total / int64(workers); l < mean-20 || l > mean+20 {
				t.Errorf("loads of %d workers %v; want %d each", workers, loads, mean)
			}
		}
	}
}
