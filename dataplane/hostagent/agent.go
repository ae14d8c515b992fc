package hostagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/inhost/evidence"
	"github.com/weft-telemetry/weft/model"
)

// Config is how often an agent looks, and how often it reports.
type Config struct {
	Every time.Duration // between two snapshots
	// Again is the least time between two reports of one flow, and of one verdict to the log.
	Again time.Duration
	// MaxReports bounds the reports after one snapshot; further slow flows wait for the next.
	MaxReports int
}

// DefaultConfig looks every second, and reports a flow once a minute.
func DefaultConfig() Config { return Config{Every: time.Second, Again: time.Minute, MaxReports: 10} }

// Deps are what an agent works with.
type Deps struct {
	Read func() *evidence.Snapshot
	// Report requests the diagnosis of a slow flow; nil: none is requested.
	Report func(ctx context.Context, flow model.FlowKey) error
	Log    *slog.Logger
}

// Stats count what an agent found.
type Stats struct {
	Snapshots uint64
	Verdicts  map[evidence.Where]uint64
	Slow      uint64 // slow connections, once in each interval
	Reported  uint64 // requests of a diagnosis
	Refused   uint64 // requests that failed
	Skipped   uint64 // slow connections beyond MaxReports
}

// Agent watches a host.
type Agent struct {
	cfg    Config
	deps   Deps
	said   map[string]time.Time        // verdicts, without their numbers
	report map[model.FlowKey]time.Time // flows that were reported

	mu    sync.Mutex // guards all below
	stats Stats
	last  *evidence.Snapshot
}

// New returns an agent that has seen nothing.
func New(cfg Config, deps Deps) (*Agent, error) {
	switch {
	case cfg.Every < 10*time.Millisecond:
		return nil, fmt.Errorf("hostagent: every %v, want at least 10ms", cfg.Every)
	case cfg.Again < cfg.Every:
		return nil, fmt.Errorf("hostagent: again after %v, want at least every %v", cfg.Again, cfg.Every)
	case cfg.MaxReports < 1:
		return nil, fmt.Errorf("hostagent: %d reports, want at least 1", cfg.MaxReports)
	case deps.Read == nil || deps.Log == nil:
		return nil, errors.New("hostagent: no reader or log")
	}
	return &Agent{
		cfg: cfg, deps: deps, said: map[string]time.Time{}, report: map[model.FlowKey]time.Time{},
		stats: Stats{Verdicts: map[evidence.Where]uint64{}},
	}, nil
}

// Run watches until ctx is done.
func (a *Agent) Run(ctx context.Context) error {
	tick := time.NewTicker(a.cfg.Every)
	defer tick.Stop()
	before := a.deps.Read()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		after := a.deps.Read()
		a.observe(ctx, before, after)
		before = after
	}
}

// observe judges two snapshots.
func (a *Agent) observe(ctx context.Context, before, after *evidence.Snapshot) {
	list, slow := evidence.Verdicts(before, after), evidence.Slow(before, after)
	a.mu.Lock()
	a.last = after
	a.stats.Snapshots++
	a.stats.Slow += uint64(len(slow))
	for _, v := range list {
		a.stats.Verdicts[v.Where]++
	}
	a.mu.Unlock()
	for _, v := range list {
		if a.sayOnce(string(v.Where)+" "+v.Object, after.Time) {
			a.deps.Log.Warn(v.Text, "where", v.Where, "object", v.Object)
		}
	}
	if a.deps.Report != nil {
		a.reportSlow(ctx, slow, after.Time)
	}
}

// recent reports whether something was done within some time, and forgets what was before.
func recent[K comparable](done map[K]time.Time, what K, now time.Time, within time.Duration) bool {
	for k, at := range done {
		if now.Sub(at) >= within {
			delete(done, k)
		}
	}
	_, ok := done[what]
	return ok
}

// sayOnce reports whether something was not said for some time, and notes that it is said.
func (a *Agent) sayOnce(what string, now time.Time) bool {
	if recent(a.said, what, now, a.cfg.Again) {
		return false
	}
	a.said[what] = now
	return true
}

// reportSlow requests diagnoses of slow connections.
func (a *Agent) reportSlow(ctx context.Context, slow []evidence.Connection, now time.Time) {
	sent := 0
	for i := range slow {
		key := model.NewFlowKey(slow[i].Local, slow[i].Remote, model.TCP)
		if recent(a.report, key, now, a.cfg.Again) {
			continue
		}
		if sent == a.cfg.MaxReports {
			a.count(func(s *Stats) { s.Skipped++ })
			continue
		}
		a.report[key] = now
		sent++
		if err := a.deps.Report(ctx, key); err != nil {
			a.count(func(s *Stats) { s.Refused++ })
			if a.sayOnce("report", now) {
				a.deps.Log.Warn("no diagnosis was requested", "flow", key, "error", err)
			}
			continue
		}
		a.count(func(s *Stats) { s.Reported++ })
		a.deps.Log.Info("requested a diagnosis", "flow", key, "rtt", slow[i].RTT, "retransmitted", slow[i].Retransmitted)
	}
}

func (a *Agent) count(change func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.stats)
}
