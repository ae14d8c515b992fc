package commodity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/analyze/commodity"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/exporter"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

const (
	ms       = time.Millisecond
	lossless = model.Priority(3)
)

// lab is a fabric whose links are scaled to 1 Gb/s, so that seconds can be
// simulated; buffers and marking thresholds are scaled with them.
type lab struct {
	k       int
	load    float64 // of background traffic
	removed removed
	// anyPause makes analyzers return whatever one interval shows.
	anyPause bool
}

// removed is what switches do not export.
type removed struct{ pfc, samples bool }

// view is what an analyzer sees of a run: how often counters are polled, and how many
// packets there are to a sample.
type view struct {
	interval time.Duration
	sampling uint32
}

func (v view) String() string { return fmt.Sprintf("%v, 1:%d", v.interval, v.sampling) }

// fault is what one run injects. The zero fault is a healthy run.
type fault struct {
	kind       anomalyKind
	host       model.NodeID // of storm, slow receiver and incast
	at         model.NodeID // the switch of a blackhole
	start, end time.Duration
	senders    []model.NodeID // of an incast
}

// run is the outcome of a simulation, for each view.
type run struct {
	fault    fault
	fabric   *topo.Fabric
	intent   *topo.Intent
	verdicts map[view][]commodity.Verdict
}

func (l lab) routes(seed uint64) (*topo.Routes, error) {
	link := topo.LinkSpec{Rate: model.Gbps, Delay: time.Microsecond}
	f, err := topo.FatTree(l.k, topo.Links{Host: link, Fabric: link})
	if err != nil {
		return nil, err
	}
	return topo.NewRoutes(f, topo.RouteConfig{Seed: seed})
}

func (l lab) config(seed uint64) sim.Config {
	c := sim.DefaultConfig()
	c.Seed, c.MTU = seed, 4096
	c.Buffer = 2 * model.MB
	c.ECN = []sim.ECNParams{{Kmin: 40 * model.KB, Kmax: 160 * model.KB, Pmax: 0.2}}
	c.RTO = 200 * ms // a pause of a storm is no loss
	c.AckControl = true
	return c
}

// simulate runs one fault, seen by all views at once, for a time after the fault's
// end.
func (l lab) simulate(ctx context.Context, seed uint64, kind anomalyKind, lasts, after time.Duration, views ...view) (*run, error) {
	routes, err := l.routes(seed)
	if err != nil {
		return nil, err
	}
	n, err := sim.New(routes, l.config(seed))
	if err != nil {
		return nil, err
	}
	rng := claim.Rand(seed, 77)
	r := &run{fabric: routes.Fabric(), intent: topo.NewIntent(routes), verdicts: map[view][]commodity.Verdict{}}
	r.fault = draw(rng, r.fabric, kind, lasts)
	end := r.fault.end + after
	if err := l.addTraffic(n, rng, &r.fault, end); err != nil {
		return nil, err
	}
	if err := r.fault.inject(n); err != nil {
		return nil, err
	}
	if err := l.observe(n, rng, r, views); err != nil {
		return nil, err
	}
	for at := time.Duration(0); at < end; at += 10 * ms {
		n.Run(engine.Of(min(at+10*ms, end)))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addTraffic adds background load and what the fault needs.
func (l lab) addTraffic(n *sim.Network, rng *rand.Rand, f *fault, end time.Duration) error {
	background := traffic.DefaultPoisson()
	background.Load, background.Duration = l.load, end
	background.Sizes = background.Sizes.Scaled(0.1)
	generators := append([]traffic.Generator{background}, f.traffic(rng, n.Fabric())...)
	flows, err := traffic.Generate(rng.Uint64(), traffic.HostsOf(n.Fabric()), generators...)
	if err != nil {
		return err
	}
	return n.AddFlows(flows)
}

// observe attaches an exporter per sampling rate to every switch and an analyzer per
// view. Switches are polled at instants of their own.
func (l lab) observe(n *sim.Network, rng *rand.Rand, r *run, views []view) error {
	bySampling := map[uint32][]*commodity.Analyzer{}
	var samplings []uint32
	analyzers := make([]*commodity.Analyzer, len(views))
	for i, v := range views {
		cfg := commodity.DefaultConfig(r.intent)
		if l.anyPause {
			cfg.MinPaused, cfg.MinSenders, cfg.MinDuration, cfg.MinConfidence = 1e-6, 2, 0, 0
		}
		a, err := commodity.New(cfg)
		if err != nil {
			return err
		}
		if bySampling[v.sampling] == nil {
			samplings = append(samplings, v.sampling)
		}
		analyzers[i], bySampling[v.sampling] = a, append(bySampling[v.sampling], a)
		var conclude func()
		conclude = func() {
			r.verdicts[v] = append(r.verdicts[v], a.Conclude()...)
			n.At(n.Now()+engine.Of(v.interval), conclude)
		}
		n.At(engine.Of(v.interval), conclude)
	}
	for _, id := range n.Fabric().Switches() {
		var first *exporter.Exporter
		for _, sampling := range samplings {
			takers := bySampling[sampling]
			e, err := exporter.Attach(n, id, exporter.Config{Sampling: sampling, Seed: rng.Uint64(), Sample: func(s *portstat.Sample, _ []byte) {
				if l.removed.samples {
					return
				}
				for _, a := range takers {
					a.AddSample(s)
				}
			}})
			if err != nil {
				return err
			}
			if first == nil {
				first = e
			}
		}
		phases := map[time.Duration]engine.Time{}
		for i, v := range views {
			phase, known := phases[v.interval]
			if !known {
				phase = engine.Of(time.Duration(rng.Int64N(int64(v.interval))))
				phases[v.interval] = phase
			}
			a := analyzers[i]
			if err := first.Every(v.interval, phase, func(reading *portstat.Reading) {
				l.removed.apply(reading)
				a.AddReading(reading)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply removes what the switches of a mutation do not export.
func (m removed) apply(r *portstat.Reading) {
	for i := range r.Class {
		c := &r.Class[i]
		if m.pfc {
			c.Has &^= portstat.HasRxPauses | portstat.HasTxPauses | portstat.HasRxTransitions | portstat.HasRxPaused | portstat.HasTxPaused
		}
	}
}
