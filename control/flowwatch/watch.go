package flowwatch

import (
	"fmt"
	"iter"
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
	*Decoder
	flows *analyses
}

// New makes a watch without reports.
func New(cfg Config) (*Watch, error) {
	if cfg.Partitions < 0 || cfg.Partitions > MaxPartitions {
		return nil, fmt.Errorf("flowwatch: %d partitions, want 0 to %d", cfg.Partitions, MaxPartitions)
	}
	d, err := NewDecoder(cfg)
	if err != nil {
		return nil, err
	}
	w := &Watch{Decoder: d}
	if w.flows, err = newAnalyses(&d.cfg); err != nil {
		return nil, fmt.Errorf("flowwatch: %w", err)
	}
	w.flows.checkPorts = true
	return w, nil
}

// Complete decodes and analyses the slots that every reporter has reported: see Decoder.
func (w *Watch) Complete() iter.Seq[*Slot] { return w.analyse(w.Decoder.Complete()) }

// Tick is Decoder.Tick with the analyses.
func (w *Watch) Tick(now model.Time) iter.Seq[*Slot] { return w.analyse(w.Decoder.Tick(now)) }

// Flush is Decoder.Flush with the analyses.
func (w *Watch) Flush(now model.Time) iter.Seq[*Slot] { return w.analyse(w.Decoder.Flush(now)) }

// analyse analyses slots as they are decoded.
func (w *Watch) analyse(slots iter.Seq[*DecodedSlot]) iter.Seq[*Slot] {
	return func(yield func(*Slot) bool) {
		for d := range slots {
			s := &Slot{Index: d.Index, Length: w.cfg.Slot, Decoded: d.Sets}
			w.flows.observe(s, d.missing)
			if !yield(s) {
				return
			}
		}
	}
}

// TakeLinks is loss.Tracker.TakeLinks of all flows.
func (w *Watch) TakeLinks() []*loss.Link { return w.flows.takeLinks() }

// TakeImbalances is load.BalanceDetector.TakeImbalances of all flows.
func (w *Watch) TakeImbalances() []load.Imbalance { return w.flows.takeImbalances() }

// LargestFlows returns the n largest flows since ResetSizes, the largest first.
func (w *Watch) LargestFlows(n int) []load.Size { return w.flows.largestFlows(n) }

// ResetSizes starts a new window of sizes.
func (w *Watch) ResetSizes() { w.flows.resetSizes() }
