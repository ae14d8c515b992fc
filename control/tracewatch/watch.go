package tracewatch

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// Watch is the controller of traces. Many goroutines may use it; each Partition is
// best used by one.
type Watch struct {
	cfg        Config
	out        Output
	fabric     *topo.Fabric
	schema     *filter.Schema[trace.View]
	packets    *filter.Schema[headers.Frame]
	places     locations
	partitions []*Partition

	// A Partition's lock is taken before this one, never after.
	mu                sync.Mutex
	store             store
	periods           []*Period // complete ones, the oldest first
	open              []*Period // the oldest first
	judges            []*trace.Judge
	findings          []trace.Finding
	named             []userCounter
	marker            Marker
	marks             []Mark
	malformed, forced uint64
}

// Partition is one analyzer and the list of mirrors that goes to it.
type Partition struct {
	w       *Watch
	mu      sync.Mutex
	a       *trace.Analyzer
	through model.Time // periods before are flushed; written under both locks
	view    trace.View // for filters of counters
	m       mirror.Mirror
	// Of the analyzers before Rewind.
	evicted, unproven uint64
}

// Stats account for mirrors and traces.
type Stats struct {
	trace.Stats                  // of all analyzers
	Unreadable  uint64           // reports that are not mirrors
	Refused     uint64           // flows and loops beyond the limit of verdicts, in the window
	Kept        map[Class]uint64 // traces, including evicted ones
	Evicted     map[Class]uint64 // kept traces that were evicted
	Memory      model.Bytes      // of kept traces
	Forced      uint64           // periods that closed before all analyzers had finished them
}

// New makes a watch. The marker may be nil where hosts cannot mark.
func New(cfg Config, marker Marker, out Output) (*Watch, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	f := cfg.Intent.At(0).Fabric()
	w := &Watch{cfg: cfg, out: out, fabric: f, schema: trace.Schema(f), places: locationsOf(f), store: newStore(cfg.Memory), marker: marker}
	w.packets = headers.Schema(func(name string) (model.Addr, bool) {
		id, ok := f.ByName(name)
		if !ok {
			return model.Addr{}, false
		}
		return f.Node(id).IPv4, true
	})
	for range cfg.Analyzers {
		feed := &Partition{w: w, through: math.MinInt64}
		var err error
		if feed.a, err = w.newAnalyzer(); err != nil {
			return nil, err
		}
		w.partitions = append(w.partitions, feed)
	}
	return w, nil
}

// Schema is the fields that filters of traces may name.
func (w *Watch) Schema() *filter.Schema[trace.View] { return w.schema }

// PacketSchema is the fields that filters of EnableDebug may name.
func (w *Watch) PacketSchema() *filter.Schema[headers.Frame] { return w.packets }

// Partition returns the analyzer of a list, counted from 0 and below
// Config.Analyzers.
func (w *Watch) Partition(list int) *Partition { return w.partitions[list] }

// AddMirror hands a mirror that is in no list, such as an ERSPAN packet, to the
// analyzer of its flow.
func (w *Watch) AddMirror(now model.Time, m *mirror.Mirror) {
	n := uint32(len(w.partitions))
	at := uint32(m.Switch) % n
	var p packet.Packet
	if n > 1 && p.Parse(m.Frame) == nil && p.Depth > 0 {
		at = mirror.Shard(&p.Innermost().Key, n)
	}
	w.partitions[at].lockAndAdd(now, m)
}

// IngestReport takes the data of an Append report to this partition's list, which
// arrived at an instant of the collector's clock. It counts what is not a mirror.
func (f *Partition) IngestReport(now model.Time, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.m.Parse(data); err != nil {
		f.w.mu.Lock()
		f.w.malformed++
		f.w.mu.Unlock()
		return fmt.Errorf("tracewatch: report: %w", err)
	}
	f.addMirror(now, &f.m)
	return nil
}

func (f *Partition) lockAndAdd(now model.Time, m *mirror.Mirror) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addMirror(now, m)
}

// addMirror hands a mirror to the analyzer. The lock is held.
func (f *Partition) addMirror(now model.Time, m *mirror.Mirror) {
	if begin := f.w.periodStart(now); begin > f.through {
		f.advance(now)
	}
	f.a.AddMirror(now, m)
	if f.w.out.Pause == nil || !pfc.IsFrame(m.Frame) {
		return
	}
	var frame pfc.Frame
	if _, err := frame.Parse(m.Frame); err == nil && m.In != 0 {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		f.w.out.Pause(m.Time, model.Port{Node: m.Switch, Port: m.In}, &frame)
	}
}

// MirrorsLost says that mirrors of this partition were lost on their path to here, at
// an instant of the collector's clock: traces that are open may lack some.
func (f *Partition) MirrorsLost(now model.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.a.MirrorsLost(now)
}

// MirrorsLost says that mirrors of any partition were lost.
func (w *Watch) MirrorsLost(now model.Time) {
	for _, f := range w.partitions {
		f.MirrorsLost(now)
	}
}

// periodStart is when the period of an instant begins.
func (w *Watch) periodStart(t model.Time) model.Time { return t - t%model.Time(w.cfg.Period) }

// Advance sets the clock of all analyzers. Call it regularly: traces complete by the
// clock, and a period completes when every analyzer has passed its end.
func (w *Watch) Advance(now model.Time) {
	for _, f := range w.partitions {
		f.lockAndAdvance(now)
	}
}

// lockAndAdvance releases the lock also when the analyzer panics.
func (f *Partition) lockAndAdvance(now model.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now)
}

// advance closes and flushes what is due. The partition's lock is held.
func (f *Partition) advance(now model.Time) {
	f.a.Advance(now)
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.through = max(f.through, f.w.periodStart(now))
	f.w.closePeriods()
}

// Finish ends the work: counters of the last periods are combined, and traces
// that are still open are closed without a verdict. Advance the clock first, by
// Trace.CloseAfter, if no more mirrors can arrive.
func (w *Watch) Finish() {
	for _, f := range w.partitions {
		f.finish()
	}
}

func (f *Partition) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.a.Stop()
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.through = math.MaxInt64
	f.w.closePeriods()
}

// keepTrace is called by analyzers.
func (w *Watch) keepTrace(t *trace.Trace) {
	t = t.Clone()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store.add(t)
	if w.out.Trace != nil {
		w.out.Trace(t)
	}
}

// addCounters is called by analyzers, with what they counted in a period.
func (w *Watch) addCounters(from, to model.Time, c *trace.Counters, j *trace.Judge) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from = w.periodStart(from)
	at, found := slices.BinarySearchFunc(w.open, from, func(p *Period, from model.Time) int { return int(min(max(p.From-from, -1), 1)) })
	if !found {
		w.open = slices.Insert(w.open, at, &Period{From: from, To: from.Add(w.cfg.Period), Counters: c, judge: j})
		return
	}
	w.open[at].Counters.Merge(c)
	w.open[at].judge.Merge(j)
}

// closePeriods closes those that all analyzers have passed. The lock is held. An
// analyzer whose clock is not advanced cannot delay more of them than are kept.
func (w *Watch) closePeriods() {
	through := model.Time(math.MaxInt64)
	for _, f := range w.partitions {
		through = min(through, f.through)
	}
	for len(w.open) > 0 {
		p := w.open[0]
		if p.To > through && through != math.MaxInt64 {
			if len(w.open) <= w.cfg.Periods {
				return
			}
			w.forced++
		}
		w.open = slices.Delete(w.open, 0, 1)
		w.completePeriod(p)
	}
}

// completePeriod keeps a period, and publishes its findings.
func (w *Watch) completePeriod(p *Period) {
	if n := len(w.periods); n > 0 && w.periods[n-1].From == p.From {
		w.periods[n-1].Counters.Merge(p.Counters) // the rest of one that was forced
	} else {
		w.periods = append(w.periods, p)
	}
	if extra := len(w.periods) - w.cfg.Periods; extra > 0 {
		w.periods = slices.Delete(w.periods, 0, extra)
	}
	w.evaluatePeriod(p)
	p.judge = nil // the window has it; periods are kept for longer
	if w.out.Period != nil {
		w.out.Period(p)
	}
}

// evaluatePeriod evaluates the window again.
func (w *Watch) evaluatePeriod(p *Period) {
	if w.cfg.Window == 0 && len(w.judges) > 0 {
		w.judges[0].Merge(p.judge)
	} else {
		w.judges = append(w.judges, p.judge)
	}
	if extra := len(w.judges) - max(w.cfg.Window, 1); extra > 0 {
		w.judges = slices.Delete(w.judges, 0, extra)
	}
	before := w.findings
	w.findings = w.windowVerdict().Findings()
	if w.out.Finding == nil {
		return
	}
	for i := range w.findings {
		f := &w.findings[i]
		if !slices.ContainsFunc(before, func(o trace.Finding) bool { return sameFinding(f, &o) }) {
			w.out.Finding(p.From, p.To, *f)
		}
	}
}

// windowVerdict combines the judges of the window.
func (w *Watch) windowVerdict() *trace.Judge {
	if len(w.judges) == 1 {
		return w.judges[0]
	}
	sum, _ := trace.NewJudge(w.cfg.Judge, w.fabric) // checked before
	for _, j := range w.judges {
		sum.Merge(j)
	}
	return sum
}

// sameFinding reports whether two findings are about the same fault.
func sameFinding(a, b *trace.Finding) bool {
	if a.Kind != b.Kind || a.Detour() != b.Detour() || a.Switch != b.Switch || a.Next != b.Next || a.Known != b.Known || !slices.Equal(a.Switches, b.Switches) {
		return false
	}
	if a.Kind == trace.Loop || a.Flow == nil || b.Flow == nil {
		return a.Kind == trace.Loop || a.Flow == b.Flow
	}
	return *a.Flow == *b.Flow
}

// Findings returns the faulty locations in the complete periods of the window, the
// most certain first.
func (w *Watch) Findings() []trace.Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.findings)
}

// WithoutVerdict returns how many traces were closed before their time, and how many end
// early and prove no loss, as mirrors were lost.
func (w *Watch) WithoutVerdict() (evicted, unproven uint64) {
	for _, f := range w.partitions {
		f.mu.Lock()
		s := f.a.Stats()
		evicted, unproven = evicted+f.evicted+s.Evicted, unproven+f.unproven+s.Unproven
		f.mu.Unlock()
	}
	return evicted, unproven
}

// Stats returns the present counts.
func (w *Watch) Stats() Stats {
	s := Stats{Kept: map[Class]uint64{}, Evicted: map[Class]uint64{}}
	for _, f := range w.partitions {
		f.mu.Lock()
		one := f.a.Stats()
		f.mu.Unlock()
		s.Mirrors += one.Mirrors
		s.Malformed += one.Malformed
		s.Overflow += one.Overflow
		s.Duplicates += one.Duplicates
		s.Repeats += one.Repeats
		s.Open += one.Open
		s.Closed += one.Closed
		s.Stats.Evicted += one.Evicted
		s.Unproven += one.Unproven
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Unreadable, s.Forced, s.Memory = w.malformed, w.forced, model.Bytes(w.store.used)
	if len(w.judges) > 0 {
		s.Refused = w.windowVerdict().Refused
	}
	for c := range classes {
		s.Kept[c], s.Evicted[c] = w.store.kept[c], w.store.evicted[c]
	}
	return s
}
