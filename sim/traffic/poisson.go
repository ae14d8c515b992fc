package traffic

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Poisson is background load: every host sends flows of random size to random
// other hosts, at random instants, so that its link carries Load on average.
//
// Each host has a separate Poisson process with a mean gap of 8 × mean size /
// (link rate × load), as in the HPCC simulator's generator. That one truncates
// every gap to whole nanoseconds, which adds up to a load above the target
// where flows are small; here only the start is truncated.
type Poisson struct {
	Class
	Hosts    []model.NodeID // senders and receivers; empty: all
	Sizes    *CDF
	Load     float64 // payload, as a share of the host's link; above 0, at most 1
	Start    model.Time
	Duration time.Duration // flows start before Start + Duration
}

// DefaultPoisson returns 10 ms of web search at 30 %.
func DefaultPoisson() Poisson {
	return Poisson{Class: DefaultClass(), Sizes: mustSizes("websearch"), Load: 0.3, Duration: 10 * time.Millisecond}
}

func (g Poisson) kind() string { return "poisson" }

func (g Poisson) flows(e *env) ([]Flow, error) {
	hosts, err := g.check(e)
	if err != nil {
		return nil, err
	}
	expected := 0.0
	for _, h := range hosts {
		expected += float64(g.Duration) / g.gap(h)
	}
	if expected > MaxFlows {
		return nil, fmt.Errorf("load %v for %v makes about %.0f flows, want at most %d", g.Load, g.Duration, expected,
			MaxFlows)
	}
	out := make([]Flow, 0, int(expected*1.05)+16)
	for i, h := range hosts {
		gap := g.gap(h)
		for at := e.rng.ExpFloat64() * gap; at < float64(g.Duration); at += e.rng.ExpFloat64() * gap {
			if len(out) == MaxFlows { // more than expected, by chance
				return nil, fmt.Errorf("load %v for %v makes more than %d flows, want fewer", g.Load, g.Duration, MaxFlows)
			}
			to := e.rng.IntN(len(hosts) - 1)
			if to >= i {
				to++
			}
			start := g.Start + model.Time(at)
			out = append(out, g.flow(h.ID, hosts[to].ID, start, g.Sizes.Sample(e.rng)))
		}
	}
	return out, nil
}

// gap returns the mean time between two flows of a host, in nanoseconds.
func (g Poisson) gap(h Host) float64 {
	return 8 * g.Sizes.Mean() / (float64(h.Rate) * g.Load) * float64(time.Second)
}

func (g Poisson) check(e *env) ([]Host, error) {
	if err := g.Class.check(); err != nil {
		return nil, err
	}
	if g.Sizes == nil {
		return nil, fmt.Errorf("sizes not given, want a distribution")
	}
	if !(g.Load > 0 && g.Load <= 1) {
		return nil, fmt.Errorf("load %v, want above 0 and at most 1", g.Load)
	}
	if err := checkStart(g.Start); err != nil {
		return nil, err
	}
	if err := checkSpan("duration", g.Duration, 1, g.Start); err != nil {
		return nil, err
	}
	hosts, err := e.choose("hosts", g.Hosts, 2)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		if h.Rate <= 0 {
			return nil, fmt.Errorf("hosts: host %d has no link", h.ID)
		}
	}
	return hosts, nil
}
