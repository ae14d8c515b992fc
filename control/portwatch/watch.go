package portwatch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/model"
)

// Fabric is what a Watch needs of the switches.
type Fabric interface {
	// Active appends the switch ports that sent packets since the last call, each
	// once, by their counters.
	Active(list []model.Port) []model.Port
	// SetShift sends a command. It may get lost without an error: a setting
	// that matters is sent again.
	SetShift(p model.Port, shift uint8) error
}

// Config is the configuration of a Watch.
type Config struct {
	States coverage.Config
	// Window is the telemetry interval: coverage is the share of ports with traffic
	// in it that reported.
	Window time.Duration
	// KeepWindows is how many windows are kept, the newest ones.
	KeepWindows int
	// Tuner is nil where switches label at a fixed rate. It runs at each Tick, but at
	// most once per k·T.
	Tuner *coverage.TunerConfig
	// Probing is nil where ports without traffic stay unknown. It runs at each Tick.
	Probing *Probing
}

// Window is a span of the collector's clock and its coverage.
type Window struct {
	From, To model.Time
	coverage.Window
	Silent     []model.Port // had traffic, and no report for the length of a window
	Unreported int          // of all ports of switches, with or without traffic: those without a report for the length of a window
}

// Stats account for reports and commands.
type Stats struct {
	coverage.Stats
	Windows  uint64 // ended, kept or not
	Commands uint64 // sent, repetitions included
	Unsent   uint64 // commands that the fabric refused to send

	Probes     uint64 // sent over ports without traffic
	Unprobed   uint64 // probes that were refused
	Unprobable uint64 // times that a port without traffic was on no path between hosts
}

// tuner says how often ports should label.
type tuner interface {
	Step(now model.Time, b *coverage.PortStates, active []model.Port) []coverage.IntervalCommand
}

func newTuner(cfg coverage.TunerConfig) (tuner, error) {
	if cfg.Aging {
		return coverage.NewAgingDatabase(cfg)
	}
	return coverage.NewTuner(cfg)
}

// Watch keeps port states, windows and the tuner. One goroutine uses it.
type Watch struct {
	cfg    Config
	fabric Fabric
	board  *coverage.PortStates
	tuner  tuner
	ports  []model.Port // of switches, ascending

	from    model.Time
	begun   bool
	active  []model.Port // since the last Tick
	present []model.Port // since the window began, ascending
	windows []Window
	stats   Stats // without those of the port states
}

// New makes a watch without reports.
func New(cfg Config, f Fabric) (*Watch, error) {
	if f == nil {
		return nil, errors.New("portwatch: no fabric, want one that reports active ports")
	}
	if cfg.Window <= 0 || cfg.KeepWindows < 1 {
		return nil, fmt.Errorf("portwatch: windows of %v, %d kept; want more than 0, and at least 1", cfg.Window, cfg.KeepWindows)
	}
	w := &Watch{cfg: cfg, fabric: f}
	var err error
	if w.board, err = coverage.NewPortStates(cfg.States); err != nil {
		return nil, fmt.Errorf("portwatch: %w", err)
	}
	for _, id := range cfg.States.Fabric.Switches() {
		for _, p := range cfg.States.Fabric.Node(id).Ports {
			w.ports = append(w.ports, model.Port{Node: id, Port: p.ID})
		}
	}
	if err := cfg.Probing.check(); err != nil {
		return nil, err
	}
	if cfg.Tuner != nil {
		if w.tuner, err = newTuner(*cfg.Tuner); err != nil {
			return nil, fmt.Errorf("portwatch: %w", err)
		}
	}
	return w, nil
}

// IngestReport takes the data of one report, which arrived at a time of the collector's
// clock. A report that is not an export is an error, and counted; implausible labels
// are counted.
func (w *Watch) IngestReport(now model.Time, data []byte) error {
	return w.board.IngestReport(now, data)
}

// Tick ends the window if its time is over, and runs the tuner. The first call
// starts the first window. A late call ends a longer one.
func (w *Watch) Tick(now model.Time) {
	w.active = w.fabric.Active(w.active[:0])
	if !w.begun {
		w.begun, w.from = true, now // what was before belongs to no window
		w.board.EndWindow(nil)
		return
	}
	w.present = append(w.present, w.active...)
	slices.SortFunc(w.present, model.Port.Compare)
	w.present = slices.Compact(w.present)
	if now.Sub(w.from) >= w.cfg.Window {
		w.endWindow(now)
	}
	if w.tuner != nil {
		w.sendCommands(now)
	}
	if w.cfg.Probing != nil {
		w.probeIdlePorts(now)
	}
}

// endWindow ends the window.
func (w *Watch) endWindow(now model.Time) {
	if len(w.windows) == w.cfg.KeepWindows {
		w.windows = slices.Delete(w.windows, 0, 1)
	}
	win := Window{
		From: w.from, To: now, Window: w.board.EndWindow(w.present), Silent: w.board.SilentPorts(w.present, now, now.Sub(w.from)),
		Unreported: len(w.board.SilentPorts(w.ports, now, now.Sub(w.from))),
	}
	w.windows = append(w.windows, win)
	w.from, w.present = now, w.present[:0]
	w.stats.Windows++
}

// sendCommands sends what the tuner wants.
func (w *Watch) sendCommands(now model.Time) {
	for _, c := range w.tuner.Step(now, w.board, w.active) {
		if err := w.fabric.SetShift(c.Port, c.Shift); err != nil {
			w.stats.Unsent++ // it is sent again in the next period
			continue
		}
		w.stats.Commands++
	}
}

// States are the port states.
func (w *Watch) States() *coverage.PortStates { return w.board }

// Windows returns the windows that are kept, in order of time. They are the
// watch's own, valid until the next Tick.
func (w *Watch) Windows() []Window { return w.windows }

// Coverage is labelled over active ports of all windows that are kept.
func (w *Watch) Coverage() coverage.Window {
	var sum coverage.Window
	for i := range w.windows {
		sum.Labelled += w.windows[i].Labelled
		sum.Active += w.windows[i].Active
	}
	return sum
}

// Stats returns the present counts.
func (w *Watch) Stats() Stats {
	s := w.stats
	s.Stats = w.board.Stats()
	return s
}
