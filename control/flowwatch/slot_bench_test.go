package flowwatch

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// steady makes successive slots of one fabric: fat-tree k=4, 20 switches that all
// see the same number of flows, each flow over five of them.
type steady struct {
	intent  *topo.Intent
	decoded []flows.Decoded
	flows   int
	hops    int
}

func newSteady(tb testing.TB, perSwitch int) *steady {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(tb, err)
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	check(tb, err)
	s := &steady{intent: topo.NewIntent(routes), decoded: make([]flows.Decoded, len(f.Switches()))}
	rng := rand.New(rand.NewPCG(1, 2))
	index := map[model.NodeID]int{}
	for i, sw := range f.Switches() {
		index[sw] = i
		s.decoded[i] = flows.Decoded{Switch: sw, Length: 10 * time.Millisecond, MayContain: func(model.FlowKey) bool { return true }}
	}
	hosts := f.Hosts()
	for i := 0; s.hops < perSwitch*len(f.Switches()); i++ {
		src := rng.IntN(len(hosts))
		dst := (src + 4 + rng.IntN(len(hosts)-7)) % len(hosts) // of another pod
		if f.Node(hosts[src]).Pod == f.Node(hosts[dst]).Pod {
			continue
		}
		key := model.FlowKey{Src: f.Node(hosts[src]).IPv4, Dst: f.Node(hosts[dst]).IPv4, SrcPort: uint16(i), DstPort: uint16(4000 + i>>16), Proto: model.TCP}
		path, err := routes.Path(key, hosts[src])
		check(tb, err)
		packets := uint64(1 + rng.IntN(20))
		for _, h := range path[1 : len(path)-1] {
			d := &s.decoded[index[h.Node]]
			d.Records = append(d.Records, flows.Record{Key: key, Packets: packets, Bytes: 1000 * packets, In: h.In, Out: h.Out, Grade: flows.Exact})
			s.hops++
		}
		s.flows++
	}
	for i := range s.decoded { // each switch has its flows in another order
		r := s.decoded[i].Records
		rng.Shuffle(len(r), func(a, b int) { r[a], r[b] = r[b], r[a] })
	}
	return s
}

// slot is the n-th slot.
func (s *steady) slot(n int) *Slot {
	for i := range s.decoded {
		s.decoded[i].Slot, s.decoded[i].Start = uint32(n), model.Time(n)*model.Time(10*time.Millisecond)
	}
	return &Slot{Index: int64(n), Length: 10 * time.Millisecond, Decoded: s.decoded}
}

func (s *steady) config(partitions int) *Config {
	cfg := DefaultConfig(s.intent)
	cfg.Partitions = partitions
	return &cfg
}

// BenchmarkSlot analyses slots from decoded records to findings, with every flow visited
// once more as for its record.
func BenchmarkSlot(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("flows=%d", n), func(b *testing.B) { benchmarkSlot(b, n, 0) })
	}
}

// BenchmarkPartitions is BenchmarkSlot with different numbers of partitions.
func BenchmarkPartitions(b *testing.B) {
	for _, p := range []int{1, 2, 4, 16, 64} {
		b.Run(fmt.Sprintf("partitions=%d", p), func(b *testing.B) { benchmarkSlot(b, 100_000, p) })
	}
}

func benchmarkSlot(b *testing.B, perSwitch, partitions int) {
	s := newSteady(b, perSwitch)
	a, err := newAnalyses(s.config(partitions))
	check(b, err)
	n := 0
	for ; n < keptSlots+1; n++ {
		a.observe(s.slot(n), nil)
	}
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		slot := s.slot(n)
		a.observe(slot, nil)
		seen := 0
		for range slot.Flows() {
			seen++
		}
		if seen != s.flows || len(slot.Paths) > 0 || len(slot.Losses) > 0 {
			b.Fatalf("%d flows, %d findings, %d losses; want %d, none", seen, len(slot.Paths), len(slot.Losses), s.flows)
		}
		if n++; n%100 == 0 {
			a.takeImbalances()
			a.takeLinks()
			a.resetSizes()
		}
	}
	cpu := cpuTime() - start
	b.ReportMetric(float64(cpu)/float64(b.N)/float64(s.hops), "CPU-ns/flow-hop")
	b.ReportMetric(float64(cpu)/1e6/float64(b.N)/float64(len(s.decoded)), "CPU-ms/switch-slot")
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSteadySlotAllocatesNothingPerFlow: memory of slots is used again, so that what a
// slot allocates does not grow with its flows.
func TestSteadySlotAllocatesNothingPerFlow(t *testing.T) {
	allocs := func(perSwitch int) float64 {
		s := newSteady(t, perSwitch)
		a, err := newAnalyses(s.config(2))
		check(t, err)
		a.workers = a.workers[:1]
		n := 0
		next := func() { a.observe(s.slot(n), nil); n++ }
		for range 80 { // longer than what is dated of a flow
			next()
		}
		return testing.AllocsPerRun(5, next)
	}
	few, many := allocs(20), allocs(400)
	if many > few+5 {
		t.Errorf("a slot of 400 flows at each switch allocates %v times, one of 20 %v times; want no difference", many, few)
	}
}
