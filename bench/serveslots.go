package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/topo"
)

// slotLimits are the most milliseconds of CPU from an assembled flowset to records and
// findings, by flows of a switch and slot. The larger ones are a tenth and a
// hundredth of the slots that a core would have to analyse for one switch.
var slotLimits = []struct {
	flows int
	slots int // measured: the larger ones depend on what else the machine does
	plain int // slots of the plain pipeline
	limit float64
}{{1000, 20, 10, 0.25}, {10_000, 6, 3, 2.5}, {100_000, 6, 1, 25}}

// compareSlots measures how many flows a controller analyses per second of CPU, and
// the same with a pipeline as people build it: records of flows decoded from
// datagrams, joined in a map, and inserted into a database.
func compareSlots(ctx context.Context) (results []Result, err error) {
	for _, size := range slotLimits {
		f, err := newSlotFabric(size.flows)
		if err != nil {
			return nil, err
		}
		ours, err := f.analyse(ctx, size.slots)
		if err != nil {
			return nil, err
		}
		peer, err := f.runPlainPipeline(ctx, size.plain)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%dK flows a switch and slot", size.flows/1000)
		hops := float64(f.hops() * size.slots)
		perSlot := ours.analysis.Seconds() * 1e3 / float64(size.slots*len(f.seen))
		analysed := lowerIsBetter("CPU of a slot, "+name, perSlot, "ms", "limit", size.limit, 1)
		analysed.Note = fmt.Sprintf("%.3g switch-slots/s, %.2g switches per core; assembling %.3g ms; %v of memory",
			1e3/perSlot, 1/perSlot*float64(slotLength.Milliseconds()), ours.assembly.Seconds()*1e3/float64(size.slots*len(f.seen)), ours.heap)
		whole := ours.assembly + ours.analysis + ours.storing
		rate := higherIsBetter("flow-hops, "+name, hops/whole.Seconds()/1e3, "k per s of CPU", plainPipeline, peer.hopsPerSecond/1e3, 3)
		rate.Note = fmt.Sprintf("reports to committed records; %d flows of slots stored one by one, %d in sums", ours.stored, ours.reduced)
		kept := lowerIsBetter("stored, "+name, ours.bytes/float64(max(ours.stored+ours.reduced, 1)), "bytes per flow", plainPipeline, peer.bytesPerFlow, 1)
		account := higherIsBetter("flow-hops accounted for, "+name, float64(ours.hops+ours.lost), "", "sent", hops, 1)
		account.Pass = account.Ratio == 1
		account.Note = fmt.Sprintf("%d analysed, %d counted as lost", ours.hops, ours.lost)
		results = append(results, analysed, rate, account)
		if size.flows > 1000 { // or the file's own pages are most of it
			results = append(results, kept)
		}
	}
	return results, nil
}

// slotRun is what the analysis of some slots took, and its result.
type slotRun struct {
	assembly, analysis, storing time.Duration // of CPU
	hops                        uint64        // analysed
	lost                        uint64        // that switches counted and no record has
	stored, reduced             uint64        // flows of a slot: one by one, in sums
	bytes                       float64       // of the store
	heap                        model.Bytes
}

// slotMemory is enough for the flowsets of 20 switches with 100,000 flows each: half of it
// is for decoding, which counts 59 MB for such a flowset with its results.
const slotMemory = 2816 * model.MiB

// warmSlots pass before a slot is complete as soon as all switches have reported it.
const warmSlots = 6

// analyse has a controller with a store analyse slots.
func (s *slotFabric) analyse(ctx context.Context, slots int) (r slotRun, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-slots")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "weft.duckdb")
	keep, err := embedded.Open(path, embedded.DefaultConfig())
	if err != nil {
		return r, err
	}
	defer func() {
		if err = errors.Join(err, keep.Close()); err == nil {
			var file os.FileInfo
			if file, err = os.Stat(path); err == nil {
				r.bytes = float64(file.Size())
			}
		}
	}()
	cfg := control.DefaultConfig(topo.NewIntent(s.routes))
	cfg.Passive, cfg.Epoch, cfg.Flows.Memory = true, storeBegin, slotMemory
	measured, before := false, control.Stats{}
	out := control.Output{Records: func(b *record.Batch) {
		if !measured {
			return
		}
		r.stored += uint64(len(b.Flows))
		begin := processTime()
		err = errors.Join(err, keep.Append(ctx, b))
		r.storing += processTime() - begin
	}}
	c, e := control.New(cfg, control.NoDevices{}, out)
	if e != nil {
		return r, e
	}
	for n := range int64(warmSlots + slots) {
		reports := map[model.NodeID][][]byte{}
		for sw := range s.seen {
			if reports[sw], e = s.flowsetReports(sw, n); e != nil {
				return r, e
			}
		}
		if e := ctx.Err(); e != nil {
			return r, e
		}
		measured = n >= warmSlots
		if n == warmSlots {
			r, before = slotRun{}, c.Stats()
		}
		s.ingest(c, n, reports, &r)
	}
	if err != nil {
		return r, err
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	r.heap = model.Bytes(mem.HeapAlloc)
	after := c.Stats()
	r.hops = after.Flowsets.FlowHops - before.Flowsets.FlowHops
	r.lost = after.Flowsets.UndecodedFlows - before.Flowsets.UndecodedFlows
	r.reduced = after.Flows.Reduced - before.Flows.Reduced
	return r, nil
}

// ingest hands the reports of a slot to a controller, and adds what it took.
func (s *slotFabric) ingest(c *control.Controller, slot int64, reports map[model.NodeID][][]byte, r *slotRun) {
	plan := control.DefaultListPlan(s.fabric)
	now := model.Time((slot + 1) * int64(slotLength))
	last := func() {}
	begin := processTime()
	for _, sw := range s.fabric.Switches() {
		list := reports[sw]
		for i, data := range list {
			if i == len(list)-1 && sw == s.fabric.Switches()[len(s.fabric.Switches())-1] {
				last = func() { c.IngestReport(now, plan.FlowsetList(sw), data) }
				continue
			}
			c.IngestReport(now, plan.FlowsetList(sw), data)
		}
	}
	assembled := processTime()
	storing := r.storing
	last() // the slot is complete
	c.Tick(now)
	r.assembly += assembled - begin
	r.analysis += processTime() - assembled - (r.storing - storing)
}
