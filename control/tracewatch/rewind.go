package tracewatch

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/trace"
)

// Rewind starts again at another time, before or after the present one: traces that
// are open and periods are dropped without verdicts. Kept traces, custom counters and
// marks stay.
func (w *Watch) Rewind() error {
	for _, f := range w.partitions {
		if err := f.rewind(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.open, w.periods, w.judges, w.findings = nil, nil, nil, nil
	named := slices.Clone(w.named)
	w.mu.Unlock()
	for _, n := range named {
		if err := w.AddCounter(n.name, n.filter); err != nil {
			return fmt.Errorf("tracewatch: counter %q: %w", n.name, err) // it was accepted before
		}
	}
	return nil
}

func (f *Partition) rewind() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.through = math.MinInt64
	s := f.a.Stats()
	f.evicted, f.unproven = f.evicted+s.Evicted, f.unproven+s.Unproven
	f.a, err = f.w.newAnalyzer()
	return err
}

// ForgetOutPorts has traces judged without the ports by which packets left: there are
// mirrors that lack them.
func (w *Watch) ForgetOutPorts() {
	for _, f := range w.partitions {
		f.mu.Lock()
		f.a.ForgetOutPorts()
		f.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cfg.Trace.OutPorts = false
}

// newAnalyzer makes the analyzer of a partition.
func (w *Watch) newAnalyzer() (*trace.Analyzer, error) {
	a, err := trace.NewAnalyzer(w.cfg.Trace, w.cfg.Judge, w.cfg.Period, w.cfg.Intent,
		trace.Output{Keep: w.keepTrace, Flush: w.addCounters, KeepAll: w.cfg.KeepAll})
	if err != nil {
		return nil, fmt.Errorf("tracewatch: %w", err)
	}
	return a, nil
}
