package admission

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
)

// GuardConfig configures a Guard.
type GuardConfig struct {
	Input string         // what it guards, for the log: "dta"
	Allow []netip.Prefix // that may report; none: all
	Rate  float64        // datagrams a second of one source address; 0: no limit
	Log   *slog.Logger
	Now   func() time.Time // limits the log
}

// Guard decides about the sources of one input, and counts all its refusals.
// Several goroutines may use it. Its memory is constant.
type Guard struct {
	cfg  GuardConfig
	rate *rateLimiter

	mu      sync.Mutex // guards the fields below
	counts  Counts
	sources sourceTable
	logged  [translate.Refusals]time.Time
	quiet   [translate.Refusals]uint64 // refusals since then
}

// Counts are refusals by reason.
type Counts struct {
	Datagrams [translate.Refusals]uint64 // or parts of one, if it was admitted
	Reports   [translate.Refusals]uint64 // in them
	Empty     uint64                     // datagrams without reports
}

// MaxRate is the highest rate of a source: one datagram per nanosecond.
const MaxRate = 1e9

// NewGuard makes a guard.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	if !(cfg.Rate >= 0 && cfg.Rate <= MaxRate) || cfg.Log == nil || cfg.Now == nil {
		return nil, fmt.Errorf("admission: rate %v, want 0 to 1e9, with a log and a clock", cfg.Rate)
	}
	return &Guard{cfg: cfg, rate: newRateLimiter(cfg.Rate), sources: newSourceTable()}, nil
}

// Datagram decides about a datagram by its source address, without what is in it.
func (g *Guard) Datagram(now model.Time, from netip.Addr) translate.Refusal {
	switch {
	case !g.rate.take(now, from):
		return translate.SourceRateLimit
	case len(g.cfg.Allow) > 0 && !Contains(g.cfg.Allow, from):
		return translate.AddressNotAllowed
	}
	return translate.Admitted
}

// logInterval is the time between two log lines of one reason.
const logInterval = 10 * time.Second

// Refused counts a refused datagram, or one report of it.
func (g *Guard) Refused(from netip.Addr, why translate.Refusal, reports int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.Datagrams[why]++
	g.counts.Reports[why] += uint64(reports)
	if reports == 0 {
		g.counts.Empty++
	}
	g.sources.add(from, why, reports)
	g.quiet[why]++
	now := g.cfg.Now()
	if last := g.logged[why]; !last.IsZero() && now.Sub(last).Abs() < logInterval {
		return
	}
	g.cfg.Log.Warn("reports refused", "input", g.cfg.Input, "reason", why.String(), "source", from, "refusals", g.quiet[why])
	g.logged[why], g.quiet[why] = now, 0
}

// Counts returns the refusals so far.
func (g *Guard) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts
}

// Sources returns the sources that were refused most recently, those with most
// refusals first.
func (g *Guard) Sources() []Source {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sources.list()
}
