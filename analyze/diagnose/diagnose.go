package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Config holds the thresholds of a diagnosis. They are shares: durations follow
// from the rates, delays, sizes and thresholds that topology and reports have.
type Config struct {
	Intent *topo.Intent
	// MinCauseShare is the share of the longest cause's time that a cause must
	// have to be named beside it.
	MinCauseShare float64
	// MinExplainedShare is the share of the lateness that must have a cause for
	// any to be named: with less, the main cause may be in the rest.
	MinExplainedShare float64
	// MinCulpritShare is the share of the largest culprit's weight that makes a
	// flow a culprit, too.
	MinCulpritShare float64
	// ImbalanceRatio is how many times the mean load of equal-cost paths a port
	// must carry to be called overloaded by ECMP imbalance.
	ImbalanceRatio float64
}

// DefaultConfig returns the thresholds that `weft repro hawkeye` was measured
// with.
func DefaultConfig(in *topo.Intent) Config {
	return Config{Intent: in, MinCauseShare: 0.2, MinExplainedShare: 0.5, MinCulpritShare: 0.03, ImbalanceRatio: 1.6}
}

// Check returns an error for settings that cannot work.
func (c *Config) Check() error {
	isShare := func(x float64) bool { return x > 0 && x <= 1 }
	switch {
	case c.Intent == nil:
		return errors.New("diagnose: no intended routes, want a topo.Intent")
	case !isShare(c.MinCauseShare) || !isShare(c.MinExplainedShare) || !isShare(c.MinCulpritShare):
		return fmt.Errorf("diagnose: minimum cause share %v, explained share %v, culprit share %v; want all above 0 and at most 1",
			c.MinCauseShare, c.MinExplainedShare, c.MinCulpritShare)
	case !(c.ImbalanceRatio > 1):
		return fmt.Errorf("diagnose: imbalance ratio %v, want above 1", c.ImbalanceRatio)
	}
	return nil
}

// Detection is a host's report that one of its flows is slow.
type Detection struct {
	Event  poll.Event
	Victim model.FlowKey
	// HostPaused is set if the host's NIC port was paused: then the flow may wait
	// in the host for what the host's other flows wait for.
	HostPaused bool
	// Latency is the round-trip time of the slow packet, or its age so far if it
	// is InFlight; 0 if no packet was measured.
	Latency  time.Duration
	InFlight bool
	// Window is how long the flow has been slow, where no packet was measured; 0
	// is as long as the reports go back.
	Window time.Duration
}

// Diagnoser finds the causes of slow flows in the reports on them. It keeps no
// state between diagnoses.
type Diagnoser struct {
	cfg    Config
	fabric *topo.Fabric
}

// New returns a diagnoser.
func New(cfg Config) (*Diagnoser, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Diagnoser{cfg: cfg, fabric: cfg.Intent.At(0).Fabric()}, nil
}

// Diagnose returns the verdicts on a detection: one for each cause, the
// heaviest first, and at least one. A verdict of type None says that nothing
// was found, or what evidence is missing.
func (d *Diagnoser) Diagnose(c Detection, e *provenance.Evidence, g *provenance.Graph) []Verdict {
	m := &analysis{Diagnoser: d, detection: c, evidence: e, g: g, routes: d.cfg.Intent.At(g.To)}
	m.accountForPacket()
	m.findGaps()
	for _, x := range m.causes() {
		m.verdicts = append(m.verdicts, m.conclude(&x))
	}
	if len(m.verdicts) == 0 {
		m.concludeNothing()
	}
	telemetry := model.Bytes(0)
	for _, r := range e.Reports {
		telemetry += r.Bytes
	}
	var timeline attribution.Timeline
	if c.Latency > 0 {
		timeline = m.account.Timeline(m.intervals, m.packet)
	}
	for i := range m.verdicts {
		v := &m.verdicts[i]
		v.Event, v.Victim = c.Event, c.Victim
		v.At, v.Reach, v.Switches, v.Telemetry = g.To, g.To.Sub(g.From), len(g.SwitchReports), telemetry
		v.Confidence = m.account.Confidence()
		if v.Anomaly == anomaly.None {
			v.Confidence = m.confidenceInNothing()
		}
		if c.Latency > 0 {
			v.Account, v.Timeline = m.account, timeline
		}
		v.Incomplete = len(m.gaps) > 0 || !e.Complete()
		v.Evidence = slices.Concat(v.Evidence, m.gaps)
		if !e.Complete() {
			v.addEvidence("some reports are missing or incomplete")
		}
	}
	return m.verdicts
}
