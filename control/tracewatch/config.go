package tracewatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config is what a Watch goes by.
type Config struct {
	Intent *topo.Intent
	Trace  trace.Config // of each analyzer
	Judge  trace.JudgeConfig

	// Analyzers is how many there are: as many as lists that mirrors come in.
	Analyzers int
	// Period is how often counters are combined.
	Period time.Duration
	// Periods is how many of them are remembered, the newest ones. Those before
	// are in whatever Output.Period writes to.
	Periods int
	// Window is how many periods a finding rests on, the newest ones; 0: all.
	Window int
	// Memory bounds the traces that are kept whole.
	Memory model.Bytes
	// KeepAll keeps every trace as long as there is room, not only those that are
	// abnormal, marked or of protocols.
	KeepAll bool
	// MaxNamed is the most counters of one's own, and the most debug marks.
	MaxNamed int
}

// DefaultConfig combines counters every ten seconds, as the paper does, and
// remembers ten minutes of them.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, Trace: trace.DefaultConfig(), Judge: trace.DefaultJudgeConfig(), Analyzers: 1,
		Period: 10 * time.Second, Periods: 60, Window: 6, Memory: 64 * model.MiB, MaxNamed: 64,
	}
}

// Check complains about what cannot work. Trace and Judge are checked by those
// who use them.
func (c *Config) Check() error {
	switch {
	case c.Intent == nil:
		return errors.New("tracewatch: no intended routes, want a topo.Intent")
	case c.Analyzers < 1 || c.Analyzers > 1<<12:
		return fmt.Errorf("tracewatch: %d analyzers, want 1 to %d", c.Analyzers, 1<<12)
	case c.Periods < 1:
		return fmt.Errorf("tracewatch: %d periods remembered, want at least 1", c.Periods)
	case c.Window < 0:
		return fmt.Errorf("tracewatch: a window of %d periods, want 0 or more", c.Window)
	case c.Memory < 0:
		return fmt.Errorf("tracewatch: %v of traces, want 0 or more", c.Memory)
	case c.MaxNamed < 0:
		return fmt.Errorf("tracewatch: %d counters of one's own, want 0 or more", c.MaxNamed)
	}
	return nil
}

// Output takes what a Watch makes, as it makes it. Each may be nil. They are
// called one at a time, must not call the Watch, and must not change what they
// are given, which is theirs to keep.
type Output struct {
	Trace   func(t *trace.Trace)                       // one that is kept
	Period  func(p *Period)                            // completePeriod
	Finding func(from, to model.Time, f trace.Finding) // that the period before did not have
}

// Period is what was counted in a span of the analyzers' clock, the end not
// included.
type Period struct {
	From, To model.Time
	Counters *trace.Counters

	judge *trace.Judge
}
