package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Analyzer assembles, judges and counts traces, and outputs what is to be
// stored: traces to keep as they close, counters and findings once per period.
type Analyzer struct {
	*Assembler
	period      time.Duration
	periodStart model.Time
	started     bool
	counters    *Counters
	judge       *Judge
	matches     []CustomCounter
	out         Output
}

// Output receives an analyzer's results. Keep must not retain the trace, which
// is reused; counters and judge of Flush belong to the receiver.
type Output struct {
	Keep    func(t *Trace)
	KeepAll bool // Keep receives every trace, not only those worth keeping
	Flush   func(from, to model.Time, c *Counters, j *Judge)
}

// NewAnalyzer returns an analyzer that flushes every period of its clock.
func NewAnalyzer(cfg Config, judge JudgeConfig, period time.Duration, intent *topo.Intent, out Output) (*Analyzer,
	error,
) {
	if period <= 0 {
		return nil, fmt.Errorf("trace: flush period %v, want more than 0", period)
	}
	a := &Analyzer{period: period, counters: NewCounters(), out: out}
	var err error
	if a.Assembler, err = NewAssembler(cfg, intent, a.addTrace); err != nil {
		return nil, err
	}
	a.judge, err = NewJudge(judge, intent.At(0).Fabric())
	return a, err
}

func (a *Analyzer) addTrace(t *Trace) {
	// A trace belongs to the period in which it is complete, no matter when
	// that is noticed.
	a.startPeriod(min(a.now, t.Last.Add(a.cfg.CloseAfter)))
	a.counters.AddTrace(t, a.matches)
	a.judge.AddTrace(t)
	if a.out.KeepAll || t.WorthKeeping() {
		a.out.Keep(t)
	}
}

// Advance closes the traces that have been quiet for Config.CloseAfter, and
// flushes the periods that have ended.
func (a *Analyzer) Advance(now model.Time) {
	a.Assembler.Advance(now)
	if a.started {
		a.startPeriod(a.now)
	}
}

// startPeriod starts the period that contains an instant. Periods start at whole
// multiples of their length, so that those of all analyzers are the same. A
// period without a complete trace is not flushed.
func (a *Analyzer) startPeriod(at model.Time) {
	start := at - at%model.Time(a.period)
	switch {
	case !a.started:
		a.periodStart, a.started = start, true
	case start > a.periodStart:
		a.flush(a.periodStart.Add(a.period))
		a.periodStart = start
	}
}

// Finish closes all traces and flushes the last period, as at the end of a run.
func (a *Analyzer) Finish() {
	a.Flush()
	a.flushLast()
}

// Stop ends the analysis early: open traces are closed as if they were evicted,
// because more of their mirrors might have come.
func (a *Analyzer) Stop() {
	a.evictAll()
	a.flushLast()
}

func (a *Analyzer) flushLast() {
	if a.started {
		a.flush(max(a.now, a.periodStart))
	}
}

func (a *Analyzer) flush(to model.Time) {
	j, _ := NewJudge(a.judge.cfg, a.judge.fabric) // checked before
	c := a.counters
	done := a.judge
	a.counters, a.judge = NewCounters(), j
	a.out.Flush(a.periodStart, to, c, done)
	a.periodStart = to
}

// AddCounter counts the packets that m matches from now on. It replaces an
// earlier counter of that name.
func (a *Analyzer) AddCounter(m CustomCounter) {
	a.RemoveCounter(m.Name)
	a.matches = append(a.matches, m)
}

// RemoveCounter removes a counter. An unknown name is ignored.
func (a *Analyzer) RemoveCounter(name string) {
	a.matches = slices.DeleteFunc(a.matches, func(m CustomCounter) bool { return m.Name == name })
}
