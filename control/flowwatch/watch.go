package flowwatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config is what a Watch goes by. Each analysis has its own part.
type Config struct {
	Intent *topo.Intent
	Slot   time.Duration // of the switches
	// WaitSlots is how many slots later a slot is decoded at the latest, if not all
	// have reported it: as long as a report may take on its way.
	WaitSlots int
	// MaxSkew is how long after the collector's clock a slot may begin, by the clock
	// of its switch: one that is ahead would make all others late. 0: the two
	// clocks have nothing to do with each other.
	MaxSkew time.Duration

	Assembler flows.Config
	Decode    flows.Options
	Paths     paths.Config
	Loss      loss.Config
	Balance   load.BalanceConfig
	Bursts    load.BurstConfig
	MaxFlows  int // of the sizes that are kept
}

// DefaultConfig suits flowsets of 10 ms.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, Slot: 10 * time.Millisecond, WaitSlots: 3,
		Assembler: flows.DefaultConfig(), Paths: paths.DefaultConfig(in), Loss: loss.DefaultConfig(in),
		Balance: load.DefaultBalanceConfig(in), Bursts: load.DefaultBurstConfig(in.At(0).Fabric()), MaxFlows: 1 << 20,
	}
}

// Slot is what was made of one slot.
type Slot struct {
	Map     *paths.Map
	Decoded []flows.Decoded // of every flowset that came
	Paths   []paths.Finding
	Losses  []loss.Event
	Spikes  []load.Microburst
	Rhythms []load.PeriodicSender
}

// Stats account for reports.
type Stats struct {
	flows.Stats
	Late uint64 // flowsets whose slot was given out already
	Inconsistent  uint64 // of another slot length, or from a clock that is far ahead
}

// Watch turns reports into Slots. One goroutine uses it.
type Watch struct {
	cfg    Config
	fabric *topo.Fabric
	asm    *flows.Assembler
	gather slotGatherer
	sets   []*flows.Flowset // given out by the assembler, memory used again
	paths  *paths.Detector
	bursts *load.BurstDetector
	wall   model.Time

	// Windows that their user cuts when it likes.
	Loss    *loss.Tracker
	Balance *load.BalanceDetector
	Sizes   *load.Sizes
}

// New makes a watch that has seen nothing.
func New(cfg Config) (*Watch, error) {
	if cfg.Intent == nil {
		return nil, errors.New("flowwatch: no intended routes, want a topo.Intent")
	}
	if cfg.Slot <= 0 || cfg.WaitSlots < 1 {
		return nil, fmt.Errorf("flowwatch: slots of %v, %d to wait for; want more than 0, and at least 1", cfg.Slot, cfg.WaitSlots)
	}
	w := &Watch{cfg: cfg, fabric: cfg.Intent.At(0).Fabric(), gather: slotGatherer{length: cfg.Slot, wait: int64(cfg.WaitSlots), skew: cfg.MaxSkew}}
	var err error
	fail := func(e error) { err = errors.Join(err, e) }
	var e error
	w.asm, e = flows.NewAssembler(cfg.Assembler)
	fail(e)
	w.paths, e = paths.NewDetector(cfg.Paths)
	fail(e)
	w.Loss, e = loss.NewTracker(cfg.Loss)
	fail(e)
	w.Balance, e = load.NewBalanceDetector(cfg.Balance)
	fail(e)
	w.bursts, e = load.NewBurstDetector(cfg.Bursts)
	fail(e)
	w.Sizes = load.NewSizes(cfg.MaxFlows)
	if err != nil {
		return nil, fmt.Errorf("flowwatch: %w", err)
	}
	return w, nil
}

// IngestReport takes the data of one report, which arrived at a time of the collector's
// clock, and returns the slots that are complete by it. A report that is of no
// use is named in the error and counted.
func (w *Watch) IngestReport(now model.Time, data []byte) ([]*Slot, error) {
	sets, err := w.asm.AddChunk(now, data, w.sets[:0])
	w.sets = w.asm.Expire(now, sets)
	return w.decodeReady(now), err
}

// SetWallClock tells what the collector's clock shows, where a caller that is behind lets
// time pass more slowly: whose clock is ahead is judged by it.
func (w *Watch) SetWallClock(now model.Time) { w.wall = now }

// Tick returns the slots that need not be waited for any longer at a time of the
// collector's clock. It is to be called often, when all reports that had come
// were added: reports of one switch may be added long before those of another
// that came at the same time.
func (w *Watch) Tick(now model.Time) (slots []*Slot) {
	w.gather.tick(now)
	for w.gather.overdue() {
		slots = append(slots, w.decodeSlot())
		for w.gather.complete() {
			slots = append(slots, w.decodeSlot())
		}
	}
	return slots
}

// Flush decodes what is left, at the end.
func (w *Watch) Flush(now model.Time) []*Slot {
	w.sets = w.asm.Flush(w.sets[:0])
	slots := w.decodeReady(now)
	for w.gather.hasSlot() {
		slots = append(slots, w.decodeSlot())
	}
	return slots
}

func (w *Watch) decodeReady(now model.Time) (slots []*Slot) {
	for _, fs := range w.sets {
		w.gather.addFlowset(max(now, w.wall), fs)
	}
	for w.gather.complete() {
		slots = append(slots, w.decodeSlot())
	}
	return slots
}

// decodeSlot decodes the next slot and shows it to the analyses.
func (w *Watch) decodeSlot() *Slot {
	n, sets := w.gather.takeSlot()
	m := paths.NewMap(n, w.cfg.Slot)
	s := &Slot{Map: m}
	if len(sets) > 0 {
		// Routes tell where most flows went, neighbours find those that went
		// astray.
		guides := []flows.Guide{flows.RouteGuide(w.cfg.Intent.At(m.Start()), sets), flows.NeighbourGuide(w.fabric, sets)}
		s.Decoded = flows.NetDecode(sets, w.cfg.Decode, guides...)
	}
	for i := range s.Decoded {
		m.AddFlowset(&s.Decoded[i])
	}
	s.Paths = w.paths.Observe(m)
	s.Losses = w.Loss.Observe(m)
	s.Spikes, s.Rhythms = w.bursts.Observe(m)
	w.Balance.Observe(m)
	w.Sizes.Observe(m)
	return s
}

// Stats returns the present counts.
func (w *Watch) Stats() Stats {
	return Stats{Stats: w.asm.Stats(), Late: w.gather.late, Inconsistent: w.gather.odd}
}
