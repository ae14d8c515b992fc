package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// Published times of FlowRadar's decoder on one 3.60 GHz core.
const (
	publishedSingle = 10   // ms, up to 100K flows
	publishedNet    = 3275 // ms per flowset of 126.8K flows
)

// compareSingleDecode compares SingleDecode, with bytes and ports as switches export
// them, with two decoders that have no queue: one scans the table again for every
// flow, one removes pure cells in passes. The first takes minutes at 100K flows, so
// both sides do a tenth.
func compareSingleDecode(ctx context.Context) ([]Result, error) {
	small, err := newSingleSet(flowsetFlows / 10)
	if err != nil {
		return nil, err
	}
	full, err := newSingleSet(flowsetFlows)
	if err != nil {
		return nil, err
	}
	tenth, err := alternateRounds(ctx, small.decode, func(n int) {
		for range n {
			copy(small.work, small.cells)
			for small.removeFirst() && ctx.Err() == nil {
			}
		}
	})
	if err != nil {
		return nil, err
	}
	all, err := alternateRounds(ctx, full.decode, func(n int) {
		for range n {
			copy(full.work, full.cells)
			for full.removePass() > 0 {
			}
		}
	})
	if err != nil {
		return nil, err
	}
	const rounds = 30
	used := processTime()
	full.decode(rounds)
	ms := float64((processTime() - used).Microseconds()) / 1e3 / rounds
	return []Result{
		lowerIsBetter("SingleDecode, 10K flows", tenth[0]/1e6, "ms", "scan again for every flow", tenth[1]/1e6, 20),
		lowerIsBetter("SingleDecode, 100K flows", all[0]/1e6, "ms", "scan in passes, flows only", all[1]/1e6, 1),
		lowerIsBetter("SingleDecode, 100K flows", ms, "ms of CPU", "published", publishedSingle, 1),
	}, nil
}

// singleSet is a flowset that can be decoded by itself.
type singleSet struct {
	set         *sketch.Set[sketch.Key4]
	fs          *flows.Flowset
	decoder     flows.Decoder
	cells, work []sketch.Cell[sketch.Key4]
}

func newSingleSet(n int) (*singleSet, error) {
	plan, err := flowset.Plan(n, 0.99, flowset.Single)
	if err != nil {
		return nil, err
	}
	a := new(singleSet)
	if a.set, err = sketch.NewSet[sketch.Key4](plan.Geometry, 1); err != nil {
		return nil, err
	}
	for i, k := range randomKeys(n) {
		key := sketch.Pack4(&k)
		if h, isNew := a.set.AddPacket(&key, uint32(64+i%1437)); isNew {
			a.set.InsertFlow(&key, h, model.PortID(1+i%32), model.PortID(1+i%31))
		}
	}
	if a.fs, err = assembleSet(1, 1, a.set, flowset.Layout4); err != nil {
		return nil, err
	}
	if d := a.decoder.SingleDecode(a.fs); !d.Complete() {
		return nil, fmt.Errorf("single decode left %d of %d flows", d.Undecoded, a.set.Inserted())
	}
	a.cells = a.set.AppendCells(nil)
	a.work = make([]sketch.Cell[sketch.Key4], len(a.cells))
	return a, nil
}

func (a *singleSet) decode(n int) {
	for range n {
		a.decoder.SingleDecode(a.fs)
	}
}

// removeFirst removes the flow of the first pure cell, and reports whether there
// was one.
func (a *singleSet) removeFirst() bool {
	for i := range a.work {
		if a.removeFlow(uint32(i)) {
			return true
		}
	}
	return false
}

// removePass removes the flows of all cells that are pure when it visits them.
func (a *singleSet) removePass() (taken int) {
	for i := range a.work {
		if a.removeFlow(uint32(i)) {
			taken++
		}
	}
	return taken
}

func (a *singleSet) removeFlow(i uint32) bool {
	h, pure := sketch.PureCell(a.set.Family(), a.set.Filter(), a.work, i)
	if !pure {
		return false
	}
	flow := a.work[i]
	for t := range int(a.set.Family().Tables) {
		a.work[a.set.Family().Cell(h, t)].Remove(&flow)
	}
	return true
}

// assembleSet sends a set through chunks, with cells of a layout, and an Assembler.
func assembleSet(sw model.NodeID, seed uint64, s *sketch.Set[sketch.Key4], l wire.Layout) (*flows.Flowset, error) {
	packets, bytes := s.Totals()
	h := wire.Header{
		Switch: sw, Seed: seed, Length: 10 * time.Millisecond,
		Geometry: wire.Geometry(s.Family().Geometry), Layout: l,
		Counts: wire.Counts{Packets: packets, Bytes: bytes, Flows: s.Inserted()},
	}
	split, err := h.Split(8900)
	if err != nil {
		return nil, err
	}
	var chunks [][]byte
	for span, more := split.Next(); more; span, more = split.Next() {
		b := h.Open(nil, span)
		if span.Section == wire.Filter {
			b = s.Filter().AppendBytes(b, span.First, span.Count)
		} else {
			for i := range span.Count {
				c := s.Cell(span.First + i)
				cell := wire.Cell{Flows: c.Flows, Packets: c.Packets, Bytes: c.Bytes, InPort: c.In, OutPort: c.Out}
				sketch.PutKey(&cell.Key, &c.Key)
				b = h.Layout.AppendCell(b, &cell)
			}
		}
		chunks = append(chunks, wire.Seal(b, 0))
	}
	return assembleChunks(chunks)
}

// paperCell has the counts of the published times of NetDecode: packets alone.
var paperCell = wire.Layout{Key: model.KeyLen4, Flows: 4, Packets: 4}

// compareNetDecode measures NetDecode where no switch can be decoded by itself.
func compareNetDecode(ctx context.Context) ([]Result, error) {
	f, err := newFlowFabric(8, 126_800, 0.02)
	if err != nil {
		return nil, err
	}
	var out []Result
	for _, path := range []struct {
		name  string
		guide flows.Guide
	}{
		{"routes known", flows.RouteGuide(f.routes, f.sets)},
		{"routes unknown", flows.NeighbourGuide(f.routes.Fabric(), f.sets)},
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ms, whole := f.decode(path.guide)
		r := lowerIsBetter("NetDecode, 126.8K flows, "+path.name, ms, "ms of CPU", "published", publishedNet, 20)
		if whole < len(f.sets) {
			r.Name += fmt.Sprintf(", %d of %d complete", whole, len(f.sets))
			r.Pass = false
		}
		out = append(out, r)
	}
	return out, nil
}

// flowFabric is a fat-tree whose switches all see the same number of flows.
type flowFabric struct {
	routes *topo.Routes
	sets   []*flows.Flowset
}

// newFlowFabric sends flows between pods, as many over each path, so that every
// switch sees perSwitch of them in a table for 100K, or in proportion. A share of
// flows, differ, counts one packet more or less from some switch on.
func newFlowFabric(k, perSwitch int, differ float64) (*flowFabric, error) {
	fabric, err := topo.FatTree(k, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	// Bits of the source port determine the path of a flow.
	hash := func(key model.FlowKey, node model.NodeID, _ uint64) uint64 {
		return uint64(key.SrcPort >> (4 * fabric.Node(node).Tier))
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Hash: hash})
	if err != nil {
		return nil, err
	}
	plan, err := flowset.Plan(flowsetFlows, 0.99, flowset.Single)
	if err != nil {
		return nil, err
	}
	// The paper's table for 100K flows: 130K cells for four hashes.
	g := plan.Geometry
	g.Tables, g.TableCells = 4, 32_500

	r := rand.New(rand.NewPCG(1, uint64(k)))
	sets := map[model.NodeID]*sketch.Set[sketch.Key4]{}
	seeds := map[model.NodeID]uint64{}
	for _, sw := range fabric.Switches() {
		seeds[sw] = r.Uint64()
		if sets[sw], err = sketch.NewSet[sketch.Key4](g, seeds[sw]); err != nil {
			return nil, err
		}
	}
	hosts, half := fabric.Hosts(), k/2
	pod := len(hosts) / k
	var hops []topo.Hop
	for i := range perSwitch * k * half / 2 {
		round := i / len(hosts)
		src := hosts[i%len(hosts)]
		path := round % (half * half) // as many as there are spines
		dst := hosts[(i+pod*(1+round/(half*half)%(k-1)))%len(hosts)]
		key := model.FlowKey{
			Src: fabric.Node(src).IPv4, Dst: fabric.Node(dst).IPv4, Proto: model.TCP,
			SrcPort: uint16(r.Uint32())<<12 | uint16(path/half)<<8 | uint16(path%half)<<4, DstPort: uint16(r.Uint32()),
		}
		if hops, err = routes.AppendPath(hops[:0], key, src); err != nil {
			return nil, err
		}
		n := 1 + r.IntN(3)
		if r.IntN(20) == 0 {
			n += r.IntN(60)
		}
		packed := sketch.Pack4(&key)
		for _, h := range hops[1 : len(hops)-1] {
			if r.Float64() < differ {
				n = max(1, n-1+2*r.IntN(2))
			}
			for range n {
				if hash, isNew := sets[h.Node].AddPacket(&packed, 1000); isNew {
					sets[h.Node].InsertFlow(&packed, hash, h.In, h.Out)
				}
			}
		}
	}
	f := &flowFabric{routes: routes}
	for _, sw := range fabric.Switches() {
		fs, err := assembleSet(sw, seeds[sw], sets[sw], paperCell)
		if err != nil {
			return nil, err
		}
		f.sets = append(f.sets, fs)
	}
	return f, nil
}

// decode returns the time per flowset in ms on one core, and how many decoded
// completely: all flows, and all counters exact.
func (f *flowFabric) decode(guide flows.Guide) (ms float64, whole int) {
	used := processTime()
	decoded := flows.NetDecode(f.sets, flows.Options{Workers: 1}, guide)
	ms = float64((processTime() - used).Microseconds()) / 1e3 / float64(len(f.sets))
	for i := range decoded {
		if decoded[i].Complete() {
			whole++
		}
	}
	return ms, whole
}

// processTime returns the CPU time used so far, which other processes disturb less
// than the wall clock. It is used for comparison with published times only.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
