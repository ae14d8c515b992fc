package simhost

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestPassiveProgramsChangeNothing runs one seed with and without programs that
// observe everything, keep timers and report over the management network.
func TestPassiveProgramsChangeNothing(t *testing.T) {
	run := func(programs bool) ([]sim.FlowRecord, sim.Counts) {
		n := fatTree(t, tight())
		add(t, n, busy()...)
		var got int
		m, err := NewManagement(n, ManagementConfig{Delay: 30 * time.Microsecond, Jitter: 50 * time.Microsecond, Loss: 0.1, Reorder: true}, func(model.Time, model.NodeID, []byte) { got++ })
		if err != nil {
			t.Fatal(err)
		}
		for _, sw := range n.Switches() {
			if programs {
				data := make([]byte, 20)
				cfg := DefaultConfig()
				cfg.Carrier = m
				attach(t, n, sw.ID, cfg, &counter{}, at(func(_ *inswitch.Event, act *inswitch.Actions) {
					act.Report(dta.Report{Primitive: dta.Append, Data: data})
				}, inswitch.Enqueue))
			}
		}
		n.Run(20 * ms)
		if programs && got == 0 {
			t.Error("no datagram arrived; want many")
		}
		n.Counts.Events = 0 // timers are events
		records := n.Records()
		slices.SortFunc(records, func(a, b sim.FlowRecord) int { return a.ID - b.ID })
		return records, n.Counts
	}
	records, counts := run(false)
	watched, watchedCounts := run(true)
	if counts.Pauses == 0 || len(records) != len(busy()) {
		t.Fatalf("%d pauses, %d records; want some, %d: the workload shows nothing otherwise", counts.Pauses, len(records), len(busy()))
	}
	if diff := cmp.Diff(records, watched); diff != "" {
		t.Errorf("flow records differ with programs (-without +with):\n%s", diff)
	}
	if diff := cmp.Diff(counts, watchedCounts); diff != "" {
		t.Errorf("counts differ with programs (-without +with):\n%s", diff)
	}
}

func TestEveryPacketIsSeenAtEveryStage(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	const packets = 100
	add(t, n, traffic.Flow{Src: 0, Dst: 2, Bytes: packets * 1024, Transport: traffic.UDP, Start: 1000})
	var left, right counter
	attach(t, n, 4, DefaultConfig(), &left)
	attach(t, n, 5, DefaultConfig(), &right)
	n.Run(1 * ms)
	for name, c := range map[string]*counter{"first": &left, "second": &right} {
		for stage := inswitch.Ingress; stage <= inswitch.Dequeue; stage++ {
			if c.events[stage] != packets {
				t.Errorf("the %s switch saw %d packets at stage %d; want %d", name, c.events[stage], stage, packets)
			}
		}
		if c.bytes != packets*1066 {
			t.Errorf("the %s switch saw %d bytes; want %d", name, c.bytes, packets*1066)
		}
		if c.events[inswitch.Timer] != 101 {
			t.Errorf("the %s switch had %d timers; want 101: one at the start, one each 10 µs", name, c.events[inswitch.Timer])
		}
	}
	if left.perPort[3] != packets || right.perPort[1] != packets {
		t.Errorf("packets by egress port: %v and %v; want %d at port 3 and at port 1", left.perPort[:4], right.perPort[:4], packets)
	}
}

// TestQueueAndWaitAreExact sends two flows into one link: what waits, and for
// how long, follows from the links' speed.
func TestQueueAndWaitAreExact(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	add(
		t, n,
		traffic.Flow{Src: 0, Dst: 2, Bytes: 10 * 1024, Transport: traffic.UDP, Start: 1000},
		traffic.Flow{Src: 1, Dst: 2, Bytes: 10 * 1024, Transport: traffic.UDP, Start: 1000},
	)
	type seen struct {
		ahead, left model.Bytes
		wait        time.Duration
	}
	var got []seen
	attach(t, n, 4, DefaultConfig(), at(func(ev *inswitch.Event, _ *inswitch.Actions) {
		got = append(got, seen{ev.DepthAtEnqueue, ev.Queue.Bytes, ev.Latency})
	}, inswitch.Dequeue))
	n.Run(1 * ms)
	// Two packets arrive each 85.28 ns and one leaves: of the first pair one
	// waits for a packet's time, of the second for two…
	const size, send = 1066, 85.28
	if len(got) != 20 {
		t.Fatalf("%d packets left; want 20", len(got))
	}
	for i, g := range got {
		arrived := float64(i/2) * send
		left := float64(i) * send
		if want := time.Duration(left - arrived + 1e-6); g.wait != want {
			t.Errorf("packet %d waited %v; want %v", i, g.wait, want)
		}
	}
	if got[0].ahead != 0 || got[19].left != 0 {
		t.Errorf("%v before the first and %v after the last; want nothing", got[0].ahead, got[19].left)
	}
	// Before packet 10 arrives, 10 have arrived and 5 have left, or 5 have and
	// one more leaves at that instant.
	if a := got[10].ahead; a != 5*size && a != 4*size {
		t.Errorf("packet 10 was enqueued after %v; want %d or %d bytes", a, 5*size, 4*size)
	}
}

func TestPassiveProgramAllocatesNothing(t *testing.T) {
	race.LeaveToPlainRun(t)
	n := fatTree(t, sim.DefaultConfig())
	addSteady(t, n)
	for _, sw := range n.Switches() {
		c := &counter{}
		stages := inswitch.StageSet(inswitch.Ingress, inswitch.Routed, inswitch.Enqueue, inswitch.Dequeue, inswitch.PFC)
		attach(t, n, sw.ID, DefaultConfig(), scripted{stages, c.Observe}, scripted{stages, c.Observe})
	}
	n.Run(500 * µs) // rings and pools have grown
	before := n.Counts.Hops
	if allocs := testing.AllocsPerRun(20, func() { n.Run(n.Now() + 10*µs) }); allocs != 0 {
		t.Errorf("10 µs of the run allocate %v times; want 0", allocs)
	}
	if hops := n.Counts.Hops - before; hops < 10_000 {
		t.Errorf("only %d packet-hops in the measured part; want at least 10000", hops)
	}
}

// addSteady adds paced flows that never end.
func addSteady(t testing.TB, n *sim.Network) {
	for i := range model.NodeID(16) {
		for j := range model.NodeID(4) {
			add(t, n, traffic.Flow{
				Src: i, Dst: (i + 1 + (j*2+1)*2) % 16, Stop: 1e12, Priority: 3,
				Rate: 10 * model.Gbps, Start: model.Time(100*j + i),
			})
		}
	}
}

// BenchmarkFatTree is what hosting costs beside the programs, in the field's
// unit: packets crossing links. Programs here read the packet and count.
func BenchmarkFatTree(b *testing.B) {
	for _, programs := range []int{0, 1, 4} {
		b.Run(fmt.Sprintf("programs=%d", programs), func(b *testing.B) {
			n := fatTree(b, sim.DefaultConfig())
			addSteady(b, n)
			for _, sw := range n.Switches() {
				var list []inswitch.Program
				for range programs {
					list = append(list, &light{})
				}
				if programs > 0 {
					attach(b, n, sw.ID, DefaultConfig(), list...)
				}
			}
			n.Run(100 * µs)
			start, cpu := n.Counts.Hops, cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				n.Run(n.Now() + 10*µs)
			}
			hops := float64(n.Counts.Hops - start)
			b.ReportMetric(hops/(cpuTime()-cpu).Seconds()/1e6, "Mhop/cpu-s")
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/hops, "cpu-ns/hop")
		})
	}
}

// light does at two stages what the cheapest program would.
type light struct{ bytes, depth int64 }

func (p *light) Stages() inswitch.Stages {
	return inswitch.StageSet(inswitch.Enqueue, inswitch.Dequeue)
}

func (p *light) Observe(ev *inswitch.Event, _ *inswitch.Actions) {
	p.bytes += int64(ev.Packet.Size)
	p.depth += int64(ev.Queue.Bytes)
}

// cpuTime is what the process has used: on a shared machine it says more than
// the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
