package tracewatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// Config is the configuration of a Watch.
type Config struct {
	Intent *topo.Intent
	Trace  trace.Config // of each analyzer
	Judge  trace.JudgeConfig

	// Analyzers is their number: one per list of mirrors.
	Analyzers int
	// Period is how often counters are combined.
	Period time.Duration
	// Periods is how many of the newest periods are kept. Output.Period receives
	// all.
	Periods int
	// Window is how many of the newest periods findings are based on; 0: all.
	Window int
	// Memory bounds the traces that are kept whole.
	Memory model.Bytes
	// KeepAll keeps every trace within Memory, not only abnormal, marked and protocol
	// packets.
	KeepAll bool
	// MaxNamed is the largest number of user-defined counters, and of debug marks.
	MaxNamed int
}

// DefaultConfig combines counters every ten seconds, as the paper does, and
// keeps ten minutes of them.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Intent: in, Trace: trace.DefaultConfig(), Judge: trace.DefaultJudgeConfig(), Analyzers: 1,
		Period: 10 * time.Second, Periods: 60, Window: 6, Memory: 64 * model.MiB, MaxNamed: 64,
	}
}

// Check returns the first error of the configuration. Trace and Judge are checked
// by their users.
func (c *Config) Check() error {
	switch {
	case c.Intent == nil:
		return errors.New("tracewatch: no intended routes, want a topo.Intent")
	case c.Analyzers < 1 || c.Analyzers > 1<<12:
		return fmt.Errorf("tracewatch: %d analyzers, want 1 to %d", c.Analyzers, 1<<12)
	case c.Periods < 1:
		return fmt.Errorf("tracewatch: %d periods kept, want at least 1", c.Periods)
	case c.Window < 0:
		return fmt.Errorf("tracewatch: a window of %d periods, want 0 or more", c.Window)
	case c.Memory < 0:
		return fmt.Errorf("tracewatch: %v of traces, want 0 or more", c.Memory)
	case c.MaxNamed < 0:
		return fmt.Errorf("tracewatch: %d user-defined counters, want 0 or more", c.MaxNamed)
	}
	return nil
}

// Output receives what a Watch makes. Each may be nil. They are called one at a
// time, must not call the Watch, and may keep but not change their arguments.
type Output struct {
	Trace   func(t *trace.Trace)                       // one that is kept
	Period  func(p *Period)                            // a complete one
	Finding func(from, to model.Time, f trace.Finding) // that the period before did not have
	// Pause receives every PFC frame that a port received, as soon as its mirror arrives.
	Pause func(at model.Time, port model.Port, f *pfc.Frame)
}

// Period is what was counted in a span of the analyzers' clock, the end not
// included.
type Period struct {
	From, To model.Time
	Counters *trace.Counters

	judge *trace.Judge
}
