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
	// Wait is how long after the last report of a complaint it is looked at;
	// Patience is how long it waits for answers that are missing then: a
	// switch's processor reads one snapshot after the other.
	Wait, Patience time.Duration
	// Look is the least time between two looks at a loop, and Hold how long
	// its verdict waits for the second.
	Look, Hold time.Duration
	// Complaints is how many are kept.
	Complaints int
	// Ask is told whose switches should be polled again: those of a loop, and
	// those whose answer was not enough. Nil: hosts complain again by
	// themselves, or nobody does.
	Ask func(now model.Time, c diagnose.Detection)
	// Drawn is given the graph that the verdicts of a complaint rest on, before
	// they come; nil: nobody wants it.
	Drawn func(ev poll.Event, g *provenance.Graph)
	// Clock times the analysis; nil does not.
	Clock func() time.Time
}

// DefaultConfig suits switches whose processors take 80 ms to read two epochs.
func DefaultConfig(in *topo.Intent) Config {
	return Config{
		Diagnose: diagnose.DefaultConfig(in), Wait: time.Millisecond, Patience: 1500 * time.Millisecond,
		Look: 200 * time.Microsecond, Hold: 2 * time.Second, Complaints: 4096,
	}
}

// Complaint is what a host said, and when on its own clock.
type Complaint struct {
	diagnose.Detection
	At model.Time
}

// Stats account for complaints and reports.
type Stats struct {
	provenance.Stats
	Complaints uint64
	Repeated   uint64 // of those: already known
	Crowded    uint64 // complaints that found no room
	Unanswered uint64 // complaints of which no report came
	Orphans    uint64 // reports about a complaint that nobody made, or that is settled
	Verdicts   uint64
	Asked      uint64 // for a second look
}

// Watch turns complaints and reports into verdicts. One goroutine uses it.
type Watch struct {
	cfg       Config
	fabric    *topo.Fabric
	collector *provenance.Collector
	doctor    *diagnose.Diagnoser
	open      map[poll.Event]*pending
	order     []poll.Event        // open ones, oldest first
	loops     []held              // verdicts that wait for a second look
	seen      []*provenance.Graph // of loops, the newest ones
	rounds    rounds
	origins   diagnose.TriggerCache
	stats     Stats
}

// pending is a complaint that waits for reports.
type pending struct {
	Complaint
	heard model.Time // when it was made, on the collector's clock
	last  model.Time // report; 0: none
	tried model.Time // report that was the last when it was looked at
}

// New makes a watch that knows of nothing.
func New(cfg Config) (*Watch, error) {
	if cfg.Wait <= 0 || cfg.Patience <= 0 || cfg.Look < 0 || cfg.Hold < 0 || cfg.Complaints < 1 {
		return nil, fmt.Errorf("rootcause: wait %v, patience %v, look %v, hold %v, %d complaints; want times above 0 and at least 1", cfg.Wait, cfg.Patience, cfg.Look, cfg.Hold, cfg.Complaints)
	}
	doctor, err := diagnose.New(cfg.Diagnose)
	if err != nil {
		return nil, fmt.Errorf("rootcause: %w", err)
	}
	collector, err := provenance.NewCollector(cfg.Complaints)
	if err != nil {
		return nil, fmt.Errorf("rootcause: %w", err)
	}
	return &Watch{
		cfg: cfg, fabric: cfg.Diagnose.Intent.At(0).Fabric(), collector: collector, doctor: doctor, open: map[poll.Event]*pending{},
	}, nil
}

// ErrCrowded is returned for a complaint that finds no room.
var ErrCrowded = errors.New("rootcause: too many complaints at once")

// Complain takes a complaint, at a time of the collector's clock. Reports may
// have come before it.
func (w *Watch) Complain(now model.Time, c Complaint) error {
	w.stats.Complaints++
	if w.open[c.Event] != nil {
		w.stats.Repeated++
		return nil
	}
	if len(w.order) == w.cfg.Complaints {
		w.stats.Crowded++
		return ErrCrowded
	}
	w.open[c.Event] = &pending{Complaint: c, heard: now}
	w.order = append(w.order, c.Event)
	return nil
}

// Add takes the data of one report, which arrived at a time of the collector's
// clock, and returns verdicts whose time has come. A report that is of no use
// is named in the error and counted.
func (w *Watch) Add(now model.Time, data []byte) ([]diagnose.Verdict, error) {
	ev, err := w.collector.Add(now, data)
	if err == nil {
		if p := w.open[ev]; p != nil {
			p.last = max(now, 1)
		} else {
			w.stats.Orphans++
		}
	}
	return w.Tick(now), err
}

// Tick returns verdicts whose time has come. It must be called now and then, at
// least once per Wait; Add does, too.
func (w *Watch) Tick(now model.Time) (out []diagnose.Verdict) {
	for len(w.order) > 0 {
		at := slices.IndexFunc(w.order, func(ev poll.Event) bool { return w.due(w.open[ev], now) })
		if at < 0 {
			break
		}
		p := w.open[w.order[at]]
		out = append(out, w.settle(now, p, now.Sub(p.heard) >= w.cfg.Patience)...)
	}
	return w.count(append(out, w.expire(now)...))
}

// due tells whether a complaint has waited long enough.
func (w *Watch) due(p *pending, now model.Time) bool {
	return now.Sub(p.heard) >= w.cfg.Patience || p.last > p.tried && now.Sub(p.last) >= w.cfg.Wait
}

// Flush settles everything, at the end.
func (w *Watch) Flush() (out []diagnose.Verdict) {
	for len(w.order) > 0 {
		out = append(out, w.settle(0, w.open[w.order[0]], true)...)
	}
	for _, h := range w.loops {
		out = append(out, h.giveUp("nobody looked a second time"))
	}
	w.loops = nil
	return w.count(out)
}

func (w *Watch) count(out []diagnose.Verdict) []diagnose.Verdict {
	w.stats.Verdicts += uint64(len(out))
	return out
}

// Stats returns the present counts.
func (w *Watch) Stats() Stats {
	s := w.stats
	s.Stats = w.collector.Stats()
	return s
}

// settle diagnoses a complaint. Where answers are missing it goes on waiting,
// unless it must end.
func (w *Watch) settle(now model.Time, p *pending, end bool) (out []diagnose.Verdict) {
	ev := p.Event
	var began time.Time
	if w.cfg.Clock != nil {
		began = w.cfg.Clock()
	}
	e := w.collector.Evidence(ev)
	g := provenance.Build(e, p.Victim, w.fabric)
	verdicts := w.doctor.Diagnose(p.Complaint.Detection, e, g)
	times := split(p, e, g)
	if w.cfg.Clock != nil {
		times.Analysis = w.cfg.Clock().Sub(began)
	}
	if p.tried = p.last; verdicts[0].Incomplete && !end {
		return nil
	}
	delete(w.open, ev)
	w.order = slices.DeleteFunc(w.order, func(x poll.Event) bool { return x == ev })
	if p.last == 0 {
		w.stats.Unanswered++
	}
	if w.cfg.Drawn != nil {
		w.cfg.Drawn(ev, g)
	}
	out = w.lookAgain(g)
	asked := false
	for i := range verdicts {
		v := &verdicts[i]
		v.Times = times
		w.rounds.note(v)
		w.origins.Observe(v)
		if len(v.DeadlockCycle) > 0 {
			if w.stoodBefore(g, v) {
				out = append(out, *v)
				continue
			}
			w.loops = append(w.loops, held{*v, g, now})
		} else {
			out = append(out, *v)
		}
		if (len(v.DeadlockCycle) > 0 || v.Anomaly == anomaly.None && !e.Complete()) && w.cfg.Ask != nil && !asked {
			asked = true
			w.stats.Asked++
			w.cfg.Ask(now, p.Complaint.Detection)
		}
	}
	return out
}

// split says where the time went. Clocks of hosts and switches differ: what
// they make negative is none.
func split(p *pending, e *provenance.Evidence, g *provenance.Graph) (t diagnose.Times) {
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
