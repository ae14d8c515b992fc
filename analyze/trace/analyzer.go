package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Analyzer assembles, judges and counts, and hands out what is to be stored:
// traces to keep as they close, counters and findings once per period.
type Analyzer struct {
	*Assembler
	period   time.Duration
	periodStart    model.Time
	started  bool
	counters *Counters
	judge    *Judge
	matches  []CustomCounter
	out      Output
}

// Output takes what an analyzer makes. Keep must not keep the trace, which is
// used again; counters and judge of Flush are the receiver's.
type Output struct {
	Keep  func(t *Trace)
	KeepAll   bool // WorthKeeping takes every trace, not only those worth keeping
	Flush func(from, to model.Time, c *Counters, j *Judge)
}

// NewAnalyzer makes an analyzer that flushes every period of its clock.
func NewAnalyzer(cfg Config, judge JudgeConfig, period time.Duration, intent *topo.Intent, out Output) (*Analyzer, error) {
	if period <= 0 {
		return nil, fmt.Errorf("trace: counters are flushed every %v, want more than 0", period)
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
	// A trace belongs to the period in which it is complete, whenever that is
	// noticed.
	a.startPeriod(min(a.now, t.Last.Add(a.cfg.CloseAfter)))
	a.counters.AddTrace(t, a.matches)
	a.judge.AddTrace(t)
	if a.out.KeepAll || t.WorthKeeping() {
		a.out.Keep(t)
	}
}

// Advance closes what has been quiet for long enough, and flushes the periods
// that are over.
func (a *Analyzer) Advance(now model.Time) {
	a.Assembler.Advance(now)
	if a.started {
		a.startPeriod(a.now)
	}
}

// startPeriod begins the period of an instant. Periods begin at whole multiples of
// their length, so that those of all analyzers are the same; of one in which
// nothing was complete there is nothing to flush.
func (a *Analyzer) startPeriod(at model.Time) {
	begin := at - at%model.Time(a.period)
	switch {
	case !a.started:
		a.periodStart, a.started = begin, true
	case begin > a.periodStart:
		a.flush(a.periodStart.Add(a.period))
		a.periodStart = begin
	}
}

// Finish closes all traces and flushes what there is, as at the end of a run.
func (a *Analyzer) Finish() {
	a.Flush()
	a.flushLast()
}

// Stop ends the work in the middle: traces that are open are closed early, as
// if they were evicted, because more of them might have come.
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

// AddCounter counts the packets that m accepts from now on, in place of an
// earlier counter of that name.
func (a *Analyzer) AddCounter(m CustomCounter) {
	a.RemoveCounter(m.Name)
	a.matches = append(a.matches, m)
}

// RemoveCounter ends a counter; of none of that name it does nothing.
func (a *Analyzer) RemoveCounter(name string) {
	a.matches = slices.DeleteFunc(a.matches, func(m CustomCounter) bool { return m.Name == name })
}
