package sampled

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// Config configures an Estimator.
type Config struct {
	Intent *topo.Intent
	// MaxFlows limits the flows of a window; samples of others are counted.
	MaxFlows int
}

// DefaultConfig returns a configuration for a fabric.
func DefaultConfig(in *topo.Intent) Config { return Config{Intent: in, MaxFlows: 1 << 16} }

// Flow is the estimate of a flow in a window. Its sizes are estimates for all of
// the flow's packets, not those of the samples.
type Flow struct {
	Key            model.FlowKey
	Packets, Bytes uint64
	// Samples is how many the estimate rests on: its relative standard error is about
	// one over their square root.
	Samples int
	// Hops are the switches that sampled the flow, in the order of the route; those that are
	// not on it come last.
	Hops []Hop
}

// Error is the relative standard error of an estimate.
func (f *Flow) Error() float64 { return 1 / math.Sqrt(float64(max(f.Samples, 1))) }

// Hop is a flow's samples at one switch, times the sampling rate.
type Hop struct {
	Switch         model.NodeID
	Packets, Bytes uint64
	Samples        int
}

// Stats account for samples: Samples = Used + NotIP + TooMany.
type Stats struct {
	Samples uint64
	Used    uint64
	NotIP   uint64 // of no flow
	TooMany uint64 // of flows beyond MaxFlows
}

// Estimator collects the samples of a window. It is for one goroutine.
type Estimator struct {
	cfg      Config
	stats    Stats
	samplers []bool // by node: it has sent samples
	flows    []Flow
	index    map[model.FlowKey]int
	stages   stageTable
}

// NewEstimator makes an Estimator.
func NewEstimator(cfg Config) (*Estimator, error) {
	if cfg.Intent == nil || cfg.MaxFlows < 1 {
		return nil, fmt.Errorf("sampled: intent %v, at most %d flows; want an intent and at least 1", cfg.Intent, cfg.MaxFlows)
	}
	n := len(cfg.Intent.At(0).Fabric().Nodes())
	return &Estimator{cfg: cfg, samplers: make([]bool, n), index: map[model.FlowKey]int{}}, nil
}

// Stats returns the counters.
func (e *Estimator) Stats() Stats { return e.stats }

// Add adds a sample of a packet that its switch forwarded, and keeps no reference to it.
// The switch must be one of the fabric.
func (e *Estimator) Add(s *portstat.Sample) {
	e.stats.Samples++
	e.samplers[s.Node] = true
	if s.Flow.IsZero() || s.Rate == 0 {
		e.stats.NotIP++
		return
	}
	i, known := e.index[s.Flow]
	if !known {
		if len(e.flows) >= e.cfg.MaxFlows {
			e.stats.TooMany++
			return
		}
		i = len(e.flows)
		e.index[s.Flow] = i
		if i < cap(e.flows) {
			e.flows = e.flows[:i+1]
			e.flows[i] = Flow{Key: s.Flow, Hops: e.flows[i].Hops[:0]}
		} else {
			e.flows = append(e.flows, Flow{Key: s.Flow})
		}
	}
	e.stats.Used++
	f := &e.flows[i]
	at := slices.IndexFunc(f.Hops, func(h Hop) bool { return h.Switch == s.Node })
	if at < 0 {
		at = len(f.Hops)
		f.Hops = append(f.Hops, Hop{Switch: s.Node})
	}
	h := &f.Hops[at]
	h.Samples++
	h.Packets += uint64(s.Rate)
	h.Bytes += uint64(s.Rate) * uint64(s.Bytes)
}

// Take ends the window at a time, and returns its flows in the order of their first
// samples. They are valid until the next Add.
func (e *Estimator) Take(at model.Time) []Flow {
	routes := e.cfg.Intent.At(at)
	for i := range e.flows {
		e.estimate(routes, &e.flows[i])
	}
	list := e.flows
	e.flows = e.flows[:0]
	clear(e.index)
	return list
}

// estimate orders a flow's hops and sums them up.
func (e *Estimator) estimate(routes *topo.Routes, f *Flow) {
	list := e.stages.of(routes, &f.Key)
	stageOf := func(sw model.NodeID) int {
		for i, stage := range list {
			if slices.Contains(stage, sw) {
				return i
			}
		}
		return len(list)
	}
	slices.SortStableFunc(f.Hops, func(a, b Hop) int { return stageOf(a.Switch) - stageOf(b.Switch) })
	complete := uint64(0)
	for _, stage := range list {
		if !slices.ContainsFunc(stage, func(sw model.NodeID) bool { return !e.samplers[sw] }) {
			complete++
			for i := range f.Hops {
				if h := &f.Hops[i]; slices.Contains(stage, h.Switch) {
					f.Packets, f.Bytes, f.Samples = f.Packets+h.Packets, f.Bytes+h.Bytes, f.Samples+h.Samples
				}
			}
		}
	}
	if f.Samples > 0 {
		f.Packets, f.Bytes = (f.Packets+complete/2)/complete, (f.Bytes+complete/2)/complete
		return
	}
	// No stage is known to see all of it: the switch that saw most is the best there is.
	for i := range f.Hops {
		if h := &f.Hops[i]; h.Packets > f.Packets {
			f.Packets, f.Bytes, f.Samples = h.Packets, h.Bytes, h.Samples
		}
	}
}
