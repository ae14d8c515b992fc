package rootcause

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Config is what a Watch goes by.
type Config struct {
	Diagnose diagnose.Config
	// SettleTime is how long after the last report of a complaint it is looked at;
	// ReportTimeout is how long it waits for answers that are missing then: a
	// switch's processor reads one snapshot after the other.
	SettleTime, ReportTimeout time.Duration
	// MinRecheckInterval is the least time between two looks at a loop, and Hold how long
	// its verdict waits for the second.
	MinRecheckInterval, RecheckTimeout time.Duration
	// MaxRequests is how many are kept.
	MaxRequests int
	// Repoll is told whose switches should be polled again: those of a loop, and
	// those whose answer was not enough. Nil: hosts complain again by
	// themselves, or nobody does.
	Repoll func(now model.Time, c diagnose.Detection)
	// OnGraph is given the graph that the verdicts of a complaint rest on, before
	// they come; nil: nobody wants it.
	OnGraph func(ev poll.Event, g *provenance.Graph)
	// Clock times the analysis; nil does not.
	Clock func() time.Time
}

// DefaultConfig suits switches whose processors take 80 ms to read two epochs.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Diagnose: diagnose.DefaultConfig(in), SettleTime: time.Millisecond, ReportTimeout: 1500 * time.Millisecond,
		MinRecheckInterval: 200 * time.Microsecond, RecheckTimeout: 2 * time.Second, MaxRequests: 4096,
	}
}

// DiagnosisRequest is what a host said, and when on its own clock.
type DiagnosisRequest struct {
	diagnose.Detection
	At model.Time
}

// Stats account for complaints and reports.
type Stats struct {
	provenance.Stats
	Requests uint64
	DuplicateRequests   uint64 // of those: already known
	Rejected    uint64 // complaints that found no room
	Unanswered uint64 // complaints of which no report came
	OrphanReports    uint64 // reports about a complaint that nobody made, or that is settled
	Verdicts   uint64
	Repolls      uint64 // for a second look
}

// Diagnoser turns complaints and reports into verdicts. One goroutine uses it.
type Diagnoser struct {
	cfg       Config
	fabric    *topo.Fabric
	collector *provenance.Collector
	diagnoser    *diagnose.Diagnoser
	open      map[poll.Event]*pending
	order     []poll.Event        // open ones, oldest first
	unconfirmed     []unconfirmedCycle              // verdicts that wait for a second look
	seen      []*provenance.Graph // of loops, the newest ones
	bursts    burstHistory
	triggers   diagnose.TriggerCache
	stats     Stats
}

// pending is a complaint that waits for reports.
type pending struct {
	DiagnosisRequest
	received model.Time // when it was made, on the collector's clock
	lastReport  model.Time // report; 0: none
	lastAnalyzed model.Time // report that was the last when it was looked at
}

// New makes a watch that knows of nothing.
func New(cfg Config) (*Diagnoser, error) {
	if cfg.SettleTime <= 0 || cfg.ReportTimeout <= 0 || cfg.MinRecheckInterval < 0 || cfg.RecheckTimeout < 0 || cfg.MaxRequests < 1 {
		return nil, fmt.Errorf("rootcause: wait %v, patience %v, look %v, hold %v, %d complaints; want times above 0 and at least 1", cfg.SettleTime, cfg.ReportTimeout, cfg.MinRecheckInterval, cfg.RecheckTimeout, cfg.MaxRequests)
	}
	doctor, err := diagnose.New(cfg.Diagnose)
	if err != nil {
		return nil, fmt.Errorf("rootcause: %w", err)
	}
	collector, err := provenance.NewCollector(cfg.MaxRequests)
	if err != nil {
		return nil, fmt.Errorf("rootcause: %w", err)
	}
	return &Diagnoser{
		cfg: cfg, fabric: cfg.Diagnose.Intent.At(0).Fabric(), collector: collector, diagnoser: doctor, open: map[poll.Event]*pending{},
	}, nil
}

// ErrTooManyRequests is returned for a complaint that finds no room.
var ErrTooManyRequests = errors.New("rootcause: too many complaints at once")

// AddRequest takes a complaint, at a time of the collector's clock. Reports may
// have come before it.
func (w *Diagnoser) AddRequest(now model.Time, c DiagnosisRequest) error {
	w.stats.Requests++
	if w.open[c.Event] != nil {
		w.stats.DuplicateRequests++
		return nil
	}
	if len(w.order) == w.cfg.MaxRequests {
		w.stats.Rejected++
		return ErrTooManyRequests
	}
	w.open[c.Event] = &pending{DiagnosisRequest: c, received: now}
	w.order = append(w.order, c.Event)
	return nil
}

// AddReport takes the data of one report, which arrived at a time of the collector's
// clock, and returns verdicts whose time has come. A report that is of no use
// is named in the error and counted.
func (w *Diagnoser) AddReport(now model.Time, data []byte) ([]diagnose.Verdict, error) {
	ev, err := w.collector.AddChunk(now, data)
	if err == nil {
		if p := w.open[ev]; p != nil {
			p.lastReport = max(now, 1)
		} else {
			w.stats.OrphanReports++
		}
	}
	return w.Tick(now), err
}

// Tick returns verdicts whose time has come. It must be called now and then, at
// least once per Wait; Add does, too.
func (w *Diagnoser) Tick(now model.Time) (out []diagnose.Verdict) {
	for len(w.order) > 0 {
		at := slices.IndexFunc(w.order, func(ev poll.Event) bool { return w.isDue(w.open[ev], now) })
		if at < 0 {
			break
		}
		p := w.open[w.order[at]]
		out = append(out, w.diagnoseRequest(now, p, now.Sub(p.received) >= w.cfg.ReportTimeout)...)
	}
	return w.countVerdicts(append(out, w.expireUnconfirmed(now)...))
}

// isDue tells whether a complaint has waited long enough.
func (w *Diagnoser) isDue(p *pending, now model.Time) bool {
	return now.Sub(p.received) >= w.cfg.ReportTimeout || p.lastReport > p.lastAnalyzed && now.Sub(p.lastReport) >= w.cfg.SettleTime
}

// Flush settles everything, at the end.
func (w *Diagnoser) Flush() (out []diagnose.Verdict) {
	for len(w.order) > 0 {
		out = append(out, w.diagnoseRequest(0, w.open[w.order[0]], true)...)
	}
	for _, h := range w.unconfirmed {
		out = append(out, h.unconfirmed("nobody looked a second time"))
	}
	w.unconfirmed = nil
	return w.countVerdicts(out)
}

func (w *Diagnoser) countVerdicts(out []diagnose.Verdict) []diagnose.Verdict {
	w.stats.Verdicts += uint64(len(out))
	return out
}

// Stats returns the present counts.
func (w *Diagnoser) Stats() Stats {
	s := w.stats
	s.Stats = w.collector.Stats()
	return s
}

// diagnoseRequest diagnoses a complaint. Where answers are missing it goes on waiting,
// unless it must end.
func (w *Diagnoser) diagnoseRequest(now model.Time, p *pending, end bool) (out []diagnose.Verdict) {
	ev := p.Event
	var began time.Time
	if w.cfg.Clock != nil {
		began = w.cfg.Clock()
	}
	e := w.collector.Evidence(ev)
	g := provenance.Build(e, p.Victim, w.fabric)
	verdicts := w.diagnoser.Diagnose(p.DiagnosisRequest.Detection, e, g)
	times := splitTimes(p, e, g)
	if w.cfg.Clock != nil {
		times.Analysis = w.cfg.Clock().Sub(began)
	}
	if p.lastAnalyzed = p.lastReport; verdicts[0].Incomplete && !end {
		return nil
	}
	delete(w.open, ev)
	w.order = slices.DeleteFunc(w.order, func(x poll.Event) bool { return x == ev })
	if p.lastReport == 0 {
		w.stats.Unanswered++
	}
	if w.cfg.OnGraph != nil {
		w.cfg.OnGraph(ev, g)
	}
	out = w.recheck(g)
	asked := false
	for i := range verdicts {
		v := &verdicts[i]
		v.Times = times
		w.bursts.observe(v)
		w.triggers.Observe(v)
		if len(v.DeadlockCycle) > 0 {
			if w.confirmedBefore(g, v) {
				out = append(out, *v)
				continue
			}
			w.unconfirmed = append(w.unconfirmed, unconfirmedCycle{*v, g, now})
		} else {
			out = append(out, *v)
		}
		if (len(v.DeadlockCycle) > 0 || v.Anomaly == anomaly.None && !e.Complete()) && w.cfg.Repoll != nil && !asked {
			asked = true
			w.stats.Repolls++
			w.cfg.Repoll(now, p.DiagnosisRequest.Detection)
		}
	}
	return out
}

// splitTimes says where the time went. Clocks of hosts and switches differ: what
// they make negative is none.
func splitTimes(p *pending, e *provenance.Evidence, g *provenance.Graph) (t diagnose.Times) {
	if len(e.Reports) == 0 {
		return t
	}
	t.Polling = max(g.To.Sub(p.At), 0)
	arrived := e.Reports[0].Arrived
	for _, r := range e.Reports {
		arrived = max(arrived, r.Arrived)
	}
	t.Collection = max(arrived.Sub(g.To), 0)
	return t
}
