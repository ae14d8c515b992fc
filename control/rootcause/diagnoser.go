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

// Config sets how long a Diagnoser waits, and for what.
type Config struct {
	Diagnose diagnose.Config
	// SettleTime is how long after the last report on a detection its diagnosis
	// starts; ReportTimeout is how long it waits for reports that are missing
	// then: a switch CPU reads one snapshot after the other.
	SettleTime, ReportTimeout time.Duration
	// RecheckTimeout is how long the verdict on a deadlock cycle waits for a second
	// snapshot.
	RecheckTimeout time.Duration
	// MaxRequests is how many requests are kept.
	MaxRequests int
	// Memory bounds the reports of switches to one half, and the graphs that wait to
	// be compared with a second snapshot to the other.
	Memory model.Bytes
	// Repoll has the switches of a deadlock cycle polled again, and those whose
	// reports were not sufficient. If it is nil, hosts detect the flow again by
	// themselves, or there is no second poll.
	Repoll func(now model.Time, d diagnose.Detection)
	// OnGraph is called with the graph of a detection before its verdicts are
	// returned; it may be nil.
	OnGraph func(e *provenance.Evidence, g *provenance.Graph)
	// Clock measures the analysis time; nil does not.
	Clock func() time.Time
}

// DefaultConfig suits switches whose CPUs take 80 ms to read two epochs.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Diagnose: diagnose.DefaultConfig(in), SettleTime: time.Millisecond, ReportTimeout: 1500 * time.Millisecond,
		RecheckTimeout: 2 * time.Second, MaxRequests: 4096,
		Memory: 2 * model.GiB,
	}
}

// DiagnosisRequest is a detection, and when the host made it on its own clock.
type DiagnosisRequest struct {
	diagnose.Detection
	At model.Time
}

// Stats counts requests and reports.
type Stats struct {
	provenance.Stats
	Requests          uint64
	DuplicateRequests uint64 // of those: already known
	Rejected          uint64 // requests beyond MaxRequests
	Unanswered        uint64 // requests without any report
	OrphanReports     uint64 // reports on a request that is not known yet, or settled already
	Verdicts          uint64
	Repolls           uint64 // requested from Config.Repoll
}

// Diagnoser turns diagnosis requests and reports into verdicts. One goroutine
// uses it.
type Diagnoser struct {
	cfg         Config
	fabric      *topo.Fabric
	collector   *provenance.Collector
	diagnoser   *diagnose.Diagnoser
	open        map[poll.Event]*pending
	order       []*pending         // open requests, oldest first
	nextDue     model.Time         // no request is due before
	unconfirmed []unconfirmedCycle // verdicts that wait for a second snapshot
	seen        []keptGraph        // of deadlock cycles, the newest ones
	bursts      burstHistory
	triggers    diagnose.TriggerCache
	stats       Stats
}

// pending is a request that waits for reports.
type pending struct {
	DiagnosisRequest
	received     model.Time // when it was received, on the collector's clock
	lastReport   model.Time // 0: none
	lastAnalyzed model.Time // lastReport at the last analysis
	analyses     int        // that were not sufficient
}

// New returns a diagnoser without requests.
func New(cfg Config) (*Diagnoser, error) {
	if cfg.SettleTime <= 0 || cfg.ReportTimeout <= 0 || cfg.RecheckTimeout < 0 ||
		cfg.MaxRequests < 1 {
		return nil, fmt.Errorf("rootcause: settle time %v, report timeout %v, recheck timeout %v, "+
			"%d requests; want times above 0 and at least 1 request",
			cfg.SettleTime, cfg.ReportTimeout, cfg.RecheckTimeout, cfg.MaxRequests)
	}
	diagnoser, err := diagnose.New(cfg.Diagnose)
	if err != nil {
		return nil, fmt.Errorf("rootcause: %w", err)
	}
	fabric := cfg.Diagnose.Intent.At(0).Fabric()
	collector, err := provenance.NewCollector(provenance.Config{
		Detections: cfg.MaxRequests, Memory: cfg.Memory / 2,
		Known: func(sw model.NodeID) bool { return fabric.HasNode(sw) && fabric.Node(sw).Role.IsSwitch() },
	})
	if err != nil {
		return nil, fmt.Errorf("rootcause: %w", err)
	}
	return &Diagnoser{
		cfg: cfg, fabric: fabric, collector: collector, diagnoser: diagnoser,
		open: map[poll.Event]*pending{},
	}, nil
}

// ErrTooManyRequests is returned for a request beyond Config.MaxRequests.
var ErrTooManyRequests = errors.New("rootcause: too many open diagnosis requests")

// AddRequest adds a diagnosis request, at a time of the collector's clock.
// Reports may have come before it.
func (d *Diagnoser) AddRequest(now model.Time, r DiagnosisRequest) error {
	d.stats.Requests++
	if d.open[r.Event] != nil {
		d.stats.DuplicateRequests++
		return nil
	}
	if len(d.order) == d.cfg.MaxRequests {
		d.stats.Rejected++
		return ErrTooManyRequests
	}
	p := &pending{DiagnosisRequest: r, received: now}
	if d.collector.HasReports(r.Event) { // they came by another list, which was read first
		p.lastReport = max(now, 1)
	}
	d.open[r.Event] = p
	d.order = append(d.order, p)
	d.collector.Expect(r.Event, true)
	d.nextDue = min(d.nextDue, d.dueAt(p))
	return nil
}

// AddReport adds the data of one report, which arrived at a time of the
// collector's clock, and returns the verdicts that are due. It counts reports
// that are of no use, and returns an error for them.
func (d *Diagnoser) AddReport(now model.Time, data []byte) ([]diagnose.Verdict, error) {
	ev, err := d.collector.AddChunk(now, data)
	if err == nil {
		if p := d.open[ev]; p != nil {
			p.lastReport = max(now, 1)
			d.nextDue = min(d.nextDue, d.dueAt(p))
		} else {
			d.stats.OrphanReports++
		}
	}
	return d.Tick(now), err
}

// Tick returns the verdicts that are due. It must be called at least once per
// SettleTime; AddReport calls it, too.
func (d *Diagnoser) Tick(now model.Time) (out []diagnose.Verdict) {
	for now >= d.nextDue && len(d.order) > 0 {
		at := slices.IndexFunc(d.order, func(p *pending) bool { return d.dueAt(p) <= now })
		if at < 0 {
			d.nextDue = d.dueAt(d.order[0])
			for _, p := range d.order[1:] {
				d.nextDue = min(d.nextDue, d.dueAt(p))
			}
			break
		}
		p := d.order[at]
		out = append(out, d.diagnoseRequest(now, p, now.Sub(p.received) >= d.cfg.ReportTimeout)...)
	}
	return d.countVerdicts(append(out, d.expireUnconfirmed(now)...))
}

// maxAnalyses is how often a request is analysed at each report; afterwards reports
// of it are analysed in intervals of an eighth of the timeout.
const maxAnalyses = 64

// dueAt is when a request has waited long enough.
func (d *Diagnoser) dueAt(p *pending) model.Time {
	due := p.received.Add(d.cfg.ReportTimeout)
	if p.lastReport > p.lastAnalyzed {
		wait := d.cfg.SettleTime
		if p.analyses > maxAnalyses {
			return min(due, max(p.lastReport.Add(wait), p.lastAnalyzed.Add(d.cfg.ReportTimeout/8)))
		}
		due = min(due, p.lastReport.Add(wait))
	}
	return due
}

// Flush settles all requests, at the end.
func (d *Diagnoser) Flush() (out []diagnose.Verdict) {
	for len(d.order) > 0 {
		out = append(out, d.diagnoseRequest(0, d.order[0], true)...)
	}
	for _, h := range d.unconfirmed {
		out = append(out, h.unconfirmed(noSecondSnapshot))
	}
	d.unconfirmed = nil
	return d.countVerdicts(out)
}

func (d *Diagnoser) countVerdicts(out []diagnose.Verdict) []diagnose.Verdict {
	d.stats.Verdicts += uint64(len(out))
	return out
}

// Stats returns the current counts.
func (d *Diagnoser) Stats() Stats {
	s := d.stats
	s.Stats = d.collector.Stats()
	return s
}

// diagnoseRequest diagnoses a request. If reports are missing it goes on
// waiting, unless it must end.
func (d *Diagnoser) diagnoseRequest(now model.Time, p *pending, end bool) (out []diagnose.Verdict) {
	ev := p.Event
	// It is out of the table while it is analysed, so that a request whose analysis
	// panics does not come again.
	at := slices.Index(d.order, p)
	d.order = slices.Delete(d.order, at, at+1)
	delete(d.open, ev)
	p.lastAnalyzed = p.lastReport
	var start time.Time
	if d.cfg.Clock != nil {
		start = d.cfg.Clock()
	}
	e := d.collector.Evidence(ev)
	g := provenance.Build(e, p.Victim, d.fabric)
	verdicts := d.diagnoser.Diagnose(p.DiagnosisRequest.Detection, e, g)
	if verdicts[0].Incomplete && !end {
		p.analyses++
		d.open[ev] = p
		d.order = slices.Insert(d.order, min(at, len(d.order)), p)
		return nil
	}
	d.collector.Expect(ev, false)
	if p.lastReport == 0 {
		d.stats.Unanswered++
	}
	if d.cfg.OnGraph != nil {
		d.cfg.OnGraph(e, g)
	}
	times := splitTimes(p, e, g)
	if d.cfg.Clock != nil {
		times.Analysis = d.cfg.Clock().Sub(start)
	}
	out = d.recheck(g)
	kept := keptGraph{g, e.Memory() + g.IntervalMemory() + verdicts[0].Account.Memory() + verdicts[0].Timeline.Memory()}
	repolled := false
	for i := range verdicts {
		v := &verdicts[i]
		v.Times = times
		d.bursts.observe(v)
		d.triggers.Observe(v)
		if len(v.DeadlockCycle) > 0 {
			if d.confirmedBefore(kept, v) {
				out = append(out, *v)
				continue
			}
			out = append(out, d.addUnconfirmed(unconfirmedCycle{*v, kept, now})...)
		} else {
			out = append(out, *v)
		}
		if (len(v.DeadlockCycle) > 0 || v.Anomaly == anomaly.None && !e.Complete()) && d.cfg.Repoll != nil && !repolled {
			repolled = true
			d.stats.Repolls++
			d.cfg.Repoll(now, p.DiagnosisRequest.Detection)
		}
	}
	return out
}

// splitTimes splits the time from detection to verdict. Clocks of hosts and
// switches differ: negative times count as zero.
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
