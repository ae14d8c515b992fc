package flowwatch

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// Config is the configuration of a Watch. Each analysis has a separate part.
type Config struct {
	Intent *topo.Intent
	Slot   time.Duration // of the switches
	// WaitSlots is after how many slots a slot is decoded at the latest, if not all
	// switches have reported it: as long as a report may be in flight.
	WaitSlots int
	// MaxSkew is how long after the collector's clock a slot may begin, by the clock
	// of its switch: one that is ahead would make all others late. 0: the clocks are
	// unrelated.
	MaxSkew time.Duration

	Assembler flows.Config
	Decode    flows.Options
	Paths     paths.Config
	Loss      loss.Config
	Balance   load.BalanceConfig
	Bursts    load.BurstConfig
	MaxFlows  int // of the sizes that are kept
	// Partitions is the number of parts of the flows that are analysed at once, by
	// their hash; 0: as many as suit the machine. No result depends on it.
	Partitions int
	// Memory bounds the flowsets that are held, in the assembler and until their slot
	// is decoded, to one half, and decoding and its results to the other.
	Memory model.Bytes
}

// DefaultConfig suits flowsets of 10 ms.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, Slot: 10 * time.Millisecond, WaitSlots: 3,
		Assembler: flows.DefaultConfig(), Paths: paths.DefaultConfig(in), Loss: loss.DefaultConfig(in),
		Balance: load.DefaultBalanceConfig(in), Bursts: load.DefaultBurstConfig(in.At(0).Fabric()), MaxFlows: 1 << 20,
		Memory: 2 * model.GiB,
	}
}

// Stats account for reports.
type Stats struct {
	flows.Stats
	Late         uint64 // flowsets of a slot that was already analysed
	Inconsistent uint64 // of another slot length, or from a clock that is far ahead
	Undecoded    uint64 // flowsets not decoded, to keep to the memory limit
	// FlowHops are the records of flows at switches that were analysed.
	FlowHops uint64
	// UndecodedFlows are in flowsets that were decoded in part, or dropped while they
	// waited: switches counted them, and no record has them.
	UndecodedFlows uint64
	// Probes are packets that switches counted apart, as those of Weft's probes.
	Probes uint64
}

// Watch turns reports into Slots. Slots must be taken from what Complete, Tick and
// Flush return before the next call. One goroutine uses it.
type Watch struct {
	cfg    Config
	fabric *topo.Fabric
	asm    *flows.Assembler
	gather slotGatherer
	sets   []*flows.Flowset // returned by the assembler, memory reused
	flows  *analyses
	decode flows.Options
	wall   model.Time
	most   []flowset.Counts // by node: what its ports can carry in a slot

	undecoded, undecodedFlows, flowHops, probes uint64
}

// New makes a watch without reports.
func New(cfg Config) (*Watch, error) {
	if cfg.Intent == nil {
		return nil, errors.New("flowwatch: no intended routes, want a topo.Intent")
	}
	if cfg.Memory < 1 {
		return nil, fmt.Errorf("flowwatch: memory of %v, want more than 0", cfg.Memory)
	}
	if cfg.Partitions < 0 || cfg.Partitions > MaxPartitions {
		return nil, fmt.Errorf("flowwatch: %d partitions, want 0 to %d", cfg.Partitions, MaxPartitions)
	}
	if cfg.Slot <= 0 || cfg.WaitSlots < 1 {
		return nil, fmt.Errorf("flowwatch: slots of %v, wait of %d slots; want more than 0, and at least 1", cfg.Slot, cfg.WaitSlots)
	}
	w := &Watch{cfg: cfg, fabric: cfg.Intent.At(0).Fabric(), gather: slotGatherer{length: cfg.Slot, wait: int64(cfg.WaitSlots), skew: cfg.MaxSkew}}
	w.decode = cfg.Decode
	w.decode.Memory, w.decode.Compact = new(flows.Memory), true
	var err error
	fail := func(e error) { err = errors.Join(err, e) }
	var e error
	w.most = slotCapacities(w.fabric, cfg.Slot)
	cfg.Assembler.MaxMemory, cfg.Assembler.HoldEmitted, cfg.Assembler.Accept = cfg.Memory/2, true, w.accept
	w.asm, e = flows.NewAssembler(cfg.Assembler)
	if e == nil {
		w.gather.release = w.asm.Release
	}
	fail(e)
	w.flows, e = newAnalyses(&w.cfg)
	w.flows.checkPorts = true
	fail(e)
	if err != nil {
		return nil, fmt.Errorf("flowwatch: %w", err)
	}
	return w, nil
}

// IngestReport takes the data of one report, which arrived at a time of the collector's
// clock. Take the slots that are complete by it from Complete. A report that is of no
// use is an error, and counted.
func (w *Watch) IngestReport(now model.Time, data []byte) error {
	sets, err := w.asm.AddChunk(now, data, w.sets[:0])
	w.sets = w.asm.Expire(now, sets)
	w.gatherSets(now)
	return err
}

// Complete decodes the slots that every reporter has reported, each when it is
// asked for: what a decoded one takes is bounded, what many take is not.
func (w *Watch) Complete() iter.Seq[*Slot] {
	return w.decodeWhile(w.gather.complete)
}

// decodeWhile decodes slots as long as the next one is due.
func (w *Watch) decodeWhile(due func() bool) iter.Seq[*Slot] {
	return func(yield func(*Slot) bool) {
		for due() {
			if !yield(w.decodeSlot()) {
				return
			}
		}
	}
}

// SetWallClock sets the collector's clock, where the times of a lagging caller
// advance more slowly: skew is measured by it.
func (w *Watch) SetWallClock(now model.Time) { w.wall = now }

// Tick returns the slots that need not be waited for any longer at a time of the
// collector's clock. Call it often, after all received reports were added: reports of
// one switch may be added long before simultaneous ones of another. Slots are decoded
// as by Complete.
func (w *Watch) Tick(now model.Time) iter.Seq[*Slot] {
	w.gather.tick(now)
	late := false // a slot was overdue: those that are complete follow it
	return w.decodeWhile(func() bool {
		overdue := w.gather.overdue()
		late = late || overdue
		return overdue || late && w.gather.complete()
	})
}

// Flush decodes what is left, at the end.
func (w *Watch) Flush(now model.Time) iter.Seq[*Slot] {
	w.sets = w.asm.Flush(w.sets[:0])
	w.gatherSets(now)
	return w.decodeWhile(w.gather.hasSlot)
}

// gatherSets hands the flowsets of the assembler to their slots.
func (w *Watch) gatherSets(now model.Time) {
	for _, fs := range w.sets {
		w.gather.addFlowset(max(now, w.wall), fs)
	}
	clear(w.sets)
}

// decodeSlot decodes the next slot and runs the analyses.
func (w *Watch) decodeSlot() *Slot {
	missing := w.gather.missing()
	n, sets := w.gather.takeSlot()
	defer func() {
		for _, fs := range sets {
			w.asm.Release(fs)
		}
	}()
	s := &Slot{Index: n, Length: w.cfg.Slot}
	// Some may have been dropped while they waited.
	var held []*flows.Flowset
	for _, fs := range sets {
		w.probes += uint64(fs.Counts.Probes)
		if fs.Dropped() {
			w.undecodedFlows += uint64(fs.Counts.Flows)
			missing = append(missing, sourceOf(fs))
		} else {
			held = append(held, fs)
		}
	}
	held, excess := flows.FitDecode(held, w.cfg.Memory/2)
	w.undecoded += uint64(len(excess))
	for _, fs := range excess {
		w.undecodedFlows += uint64(fs.Counts.Flows)
		missing = append(missing, sourceOf(fs))
	}
	w.asm.DropSpare()
	if len(held) > 0 {
		// Routes give the paths of most flows; neighbours find misrouted ones.
		guides := []flows.Guide{flows.RouteGuide(w.cfg.Intent.At(s.Start()), held), flows.NeighbourGuide(w.fabric, held)}
		s.Decoded = flows.NetDecode(held, w.decode, guides...)
	}
	for i := range s.Decoded {
		w.flowHops += uint64(s.Decoded[i].Flows())
		w.undecodedFlows += uint64(s.Decoded[i].Undecoded)
	}
	w.flows.observe(s, missing)
	w.asm.Recycle(held)
	return s
}

// TakeLinks is loss.Tracker.TakeLinks of all flows.
func (w *Watch) TakeLinks() []*loss.Link { return w.flows.takeLinks() }

// TakeImbalances is load.BalanceDetector.TakeImbalances of all flows.
func (w *Watch) TakeImbalances() []load.Imbalance { return w.flows.takeImbalances() }

// LargestFlows returns the n largest flows since ResetSizes, the largest first.
func (w *Watch) LargestFlows(n int) []load.Size { return w.flows.largestFlows(n) }

// ResetSizes starts a new window of sizes.
func (w *Watch) ResetSizes() { w.flows.resetSizes() }

// NotDue counts flowsets, at most some, that wait for others of their slot and may do
// so: when the fabric falls silent, they wait until it reports again.
func (w *Watch) NotDue(most uint64) uint64 { return w.gather.notDue(most) }

// Stats returns the present counts.
func (w *Watch) Stats() Stats {
	return Stats{
		Stats: w.asm.Stats(), Late: w.gather.late, Inconsistent: w.gather.odd, Undecoded: w.undecoded,
		FlowHops: w.flowHops, UndecodedFlows: w.undecodedFlows, Probes: w.probes,
	}
}
