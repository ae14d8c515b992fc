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
}

// DefaultConfig suits flowsets of 10 ms.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, Slot: 10 * time.Millisecond, WaitSlots: 3,
		Assembler: flows.DefaultConfig(), Paths: paths.DefaultConfig(in), Loss: loss.DefaultConfig(in),
		Balance: load.DefaultBalanceConfig(in), Bursts: load.DefaultBurstConfig(in.At(0).Fabric()), MaxFlows: 1 << 20,
	}
}

// Slot is the analysis of one slot.
type Slot struct {
	Map     *paths.Map
	Decoded []flows.Decoded // of every received flowset
	Paths   []paths.Finding
	Losses  []loss.Event
	Spikes  []load.Microburst
	Rhythms []load.PeriodicSender
}

// Stats account for reports.
type Stats struct {
	flows.Stats
	Late         uint64 // flowsets of a slot that was already analysed
	Inconsistent uint64 // of another slot length, or from a clock that is far ahead
}

// Watch turns reports into Slots. One goroutine uses it.
type Watch struct {
	cfg    Config
	fabric *topo.Fabric
	asm    *flows.Assembler
	gather slotGatherer
	sets   []*flows.Flowset // returned by the assembler, memory reused
	paths  *paths.Detector
	bursts *load.BurstDetector
	wall   model.Time

	// Windows that their user ends.
	Loss    *loss.Tracker
	Balance *load.BalanceDetector
	Sizes   *load.Sizes
}

// New makes a watch without reports.
func New(cfg Config) (*Watch, error) {
	if cfg.Intent == nil {
		return nil, errors.New("flowwatch: no intended routes, want a topo.Intent")
	}
	if cfg.Slot <= 0 || cfg.WaitSlots < 1 {
		return nil, fmt.Errorf("flowwatch: slots of %v, wait of %d slots; want more than 0, and at least 1", cfg.Slot, cfg.WaitSlots)
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
// use is an error, and counted.
func (w *Watch) IngestReport(now model.Time, data []byte) ([]*Slot, error) {
	sets, err := w.asm.AddChunk(now, data, w.sets[:0])
	w.sets = w.asm.Expire(now, sets)
	return w.decodeReady(now), err
}

// SetWallClock sets the collector's clock, where the times of a lagging caller
// advance more slowly: skew is measured by it.
func (w *Watch) SetWallClock(now model.Time) { w.wall = now }

// Tick returns the slots that need not be waited for any longer at a time of the
// collector's clock. Call it often, after all received reports were added: reports of
// one switch may be added long before simultaneous ones of another.
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

// decodeSlot decodes the next slot and runs the analyses.
func (w *Watch) decodeSlot() *Slot {
	n, sets := w.gather.takeSlot()
	m := paths.NewMap(n, w.cfg.Slot)
	s := &Slot{Map: m}
	if len(sets) > 0 {
		// Routes give the paths of most flows; neighbours find misrouted ones.
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
