package flows

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// productLayout is the layout of an IPv4 cell that switches export: with bytes and
// ports.
var productLayout = flowset.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4, Bytes: 4, Ports: 2}

// planned is about the geometry that flowset.Plan chooses for 99 % of slots.
func planned(flows int) sketch.Geometry {
	return sketch.Geometry{FilterHashes: 16, FilterBits: uint32(flows) * 39 &^ 63, Tables: 3, TableCells: uint32(flows*1228/3000) + 40}
}

// slotOf records a slot of random flows.
func slotOf(tb testing.TB, sw model.NodeID, flows int) *recorded {
	e := newEncoder(tb, sw, uint64(5+sw), planned(flows), productLayout)
	r := rand.New(rand.NewPCG(1, 2))
	for range flows {
		k := model.FlowKey{Src: model.Addr4(r.Uint32()), Dst: model.Addr4(r.Uint32()), SrcPort: uint16(r.Uint32()), DstPort: 80, Proto: model.TCP}
		e.add(k, 1+r.IntN(3), 64+r.Uint32N(1400), model.PortID(1+r.IntN(32)), model.PortID(1+r.IntN(32)))
	}
	return e.done()
}

// cpuTime returns the CPU time that the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuMeter measures CPU time per flowset, which other processes disturb less than
// elapsed time: its mean, and the least of all rounds, in which they disturbed least.
type cpuMeter struct {
	start, last, least time.Duration
	sets               int
}

func newCPUMeter(sets int) *cpuMeter {
	now := cpuTime()
	return &cpuMeter{start: now, last: now, least: time.Hour, sets: sets}
}

func (m *cpuMeter) endRound() {
	now := cpuTime()
	m.least, m.last = min(m.least, now-m.last), now
}

func (m *cpuMeter) report(b *testing.B) {
	per := func(d time.Duration, rounds int) float64 { return d.Seconds() * 1e3 / float64(rounds*m.sets) }
	b.ReportMetric(per(m.last-m.start, b.N), "ms-cpu/flowset")
	b.ReportMetric(per(m.least, 1), "least-ms-cpu/flowset")
}

// BenchmarkSingleDecode decodes the flowset of a switch as the product exports it.
func BenchmarkSingleDecode(b *testing.B) {
	for _, flows := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("flows=%d", flows), func(b *testing.B) {
			fs := slotOf(b, 1, flows).whole(b)
			var d Decoder
			if got := d.SingleDecode(fs); !got.Complete() {
				b.Fatalf("%d flows undecoded; want none", got.Undecoded)
			}
			b.ReportAllocs()
			meter := newCPUMeter(1)
			for b.Loop() {
				d.SingleDecode(fs)
				meter.endRound()
			}
			meter.report(b)
		})
	}
}

// BenchmarkNetDecodeAlone decodes a fabric in which every table empties by itself.
func BenchmarkNetDecodeAlone(b *testing.B) {
	for _, flows := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("flows=%d", flows), func(b *testing.B) {
			fabric := fatTree(b, 4)
			var sets []*Flowset
			for _, sw := range fabric.Switches() {
				sets = append(sets, slotOf(b, sw, flows).whole(b))
			}
			guide := NeighbourGuide(fabric, sets)
			b.ReportAllocs()
			meter := newCPUMeter(len(sets))
			for b.Loop() {
				for i, d := range NetDecode(sets, Options{Workers: 1}, guide) {
					if !d.Complete() {
						b.Fatalf("switch %d: %d flows undecoded; want none", sets[i].Switch, d.Undecoded)
					}
				}
				meter.endRound()
			}
			meter.report(b)
		})
	}
}
