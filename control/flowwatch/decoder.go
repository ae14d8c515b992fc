package flowwatch

import (
	"errors"
	"fmt"
	"iter"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// Decoder turns reports into decoded slots, without analysing them. Slots must be taken
// from what Complete, Tick and Flush return before the next call. One goroutine uses it.
type Decoder struct {
	cfg    Config
	fabric *topo.Fabric
	asm    *flows.Assembler
	gather slotGatherer
	sets   []*flows.Flowset // returned by the assembler, memory reused
	decode flows.Options
	wall   model.Time
	most   []flowset.Counts // by node: what its ports can carry in a slot

	undecoded, undecodedFlows, flowHops, probes uint64
}

// DecodedSlot is what the switches counted in one slot. It is valid until the next one is
// asked for.
type DecodedSlot struct {
	Index   int64
	Sets    []flows.Decoded // of every received flowset
	missing []flowsetSource // whose flowsets did not arrive
}

// NewDecoder makes a decoder without reports.
func NewDecoder(cfg Config) (*Decoder, error) {
	if cfg.Intent == nil {
		return nil, errors.New("flowwatch: no intended routes, want a topo.Intent")
	}
	if cfg.Memory < 1 {
		return nil, fmt.Errorf("flowwatch: memory of %v, want more than 0", cfg.Memory)
	}
	if cfg.Slot <= 0 || cfg.WaitSlots < 1 {
		return nil, fmt.Errorf("flowwatch: slots of %v, wait of %d slots; want more than 0, and at least 1", cfg.Slot, cfg.WaitSlots)
	}
	w := &Decoder{cfg: cfg, fabric: cfg.Intent.At(0).Fabric(), gather: slotGatherer{length: cfg.Slot, wait: int64(cfg.WaitSlots), skew: cfg.MaxSkew}}
	w.decode = cfg.Decode
	w.decode.Memory, w.decode.Compact, w.decode.InPlace = new(flows.Memory), true, true
	w.most = slotCapacities(w.fabric, cfg.Slot)
	cfg.Assembler.MaxMemory, cfg.Assembler.HoldEmitted, cfg.Assembler.Accept = cfg.Memory/2, true, w.accept
	var err error
	if w.asm, err = flows.NewAssembler(cfg.Assembler); err != nil {
		return nil, fmt.Errorf("flowwatch: %w", err)
	}
	w.gather.release = w.asm.Release
	return w, nil
}

// IngestReport takes the data of one report, which arrived at a time of the collector's
// clock. Take the slots that are complete by it from Complete. A report that is of no
// use is an error, and counted.
func (w *Decoder) IngestReport(now model.Time, data []byte) error {
	sets, err := w.asm.AddChunk(now, data, w.sets[:0])
	w.sets = w.asm.Expire(now, sets)
	w.gatherSets(now)
	return err
}

// Complete decodes the slots that every reporter has reported, each when it is
// asked for: what a decoded one takes is bounded, what many take is not.
func (w *Decoder) Complete() iter.Seq[*DecodedSlot] {
	return w.decodeWhile(w.gather.complete)
}

// decodeWhile decodes slots as long as the next one is due. What decoding used is used
// again after a slot.
func (w *Decoder) decodeWhile(due func() bool) iter.Seq[*DecodedSlot] {
	return func(yield func(*DecodedSlot) bool) {
		for due() {
			if !w.decodeSlot(yield) {
				return
			}
		}
	}
}

// SetWallClock sets the collector's clock, where the times of a lagging caller
// advance more slowly: skew is measured by it.
func (w *Decoder) SetWallClock(now model.Time) { w.wall = now }

// Tick returns the slots that need not be waited for any longer at a time of the
// collector's clock. Call it often, after all received reports were added: reports of
// one switch may be added long before simultaneous ones of another. Slots are decoded
// as by Complete.
func (w *Decoder) Tick(now model.Time) iter.Seq[*DecodedSlot] {
	w.gather.tick(now)
	late := false // a slot was overdue: those that are complete follow it
	return w.decodeWhile(func() bool {
		overdue := w.gather.overdue()
		late = late || overdue
		return overdue || late && w.gather.complete()
	})
}

// Flush decodes what is left, at the end.
func (w *Decoder) Flush(now model.Time) iter.Seq[*DecodedSlot] {
	w.sets = w.asm.Flush(w.sets[:0])
	w.gatherSets(now)
	return w.decodeWhile(w.gather.hasSlot)
}

// gatherSets hands the flowsets of the assembler to their slots.
func (w *Decoder) gatherSets(now model.Time) {
	for _, fs := range w.sets {
		w.gather.addFlowset(max(now, w.wall), fs)
	}
	clear(w.sets)
}

// decodeSlot decodes the next slot and hands it to yield.
func (w *Decoder) decodeSlot(yield func(*DecodedSlot) bool) bool {
	missing := w.gather.missing()
	n, sets := w.gather.takeSlot()
	defer func() {
		for _, fs := range sets {
			w.asm.Release(fs)
		}
	}()
	s := &DecodedSlot{Index: n}
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
		guides := []flows.Guide{flows.RouteGuide(w.cfg.Intent.At(model.Time(n*int64(w.cfg.Slot))), held), flows.NeighbourGuide(w.fabric, held)}
		s.Sets = flows.NetDecode(held, w.decode, guides...)
	}
	for i := range s.Sets {
		w.flowHops += uint64(s.Sets[i].Flows())
		w.undecodedFlows += uint64(s.Sets[i].Undecoded)
	}
	s.missing = missing
	more := yield(s)
	w.asm.Recycle(held)
	return more
}

// NotDue counts flowsets, at most some, that wait for others of their slot and may do
// so: when the fabric falls silent, they wait until it reports again.
func (w *Decoder) NotDue(most uint64) uint64 { return w.gather.notDue(most) }

// Stats returns the present counts.
func (w *Decoder) Stats() Stats {
	return Stats{
		Stats: w.asm.Stats(), Late: w.gather.late, Inconsistent: w.gather.odd, Undecoded: w.undecoded,
		FlowHops: w.flowHops, UndecodedFlows: w.undecodedFlows, Probes: w.probes,
	}
}
