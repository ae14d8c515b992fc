package flowradar

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/topo"
)

// webSearch is the evaluation's fabric and traffic: a fat-tree of k=8 with
// links of 10 Gb/s, TCP, queues of 150 KB that drop what does not fit,
// background flows of web-search sizes and 1,000 queries per second that 20
// hosts answer at once.
type webSearch struct {
	*lab
	truth *truth.Recorder
	end   time.Duration // of the run
}

// newWebSearch prepares a run. Traffic starts during span; the run is longer, so
// that flowlets end and losses can be found. The paper does not give the
// background's load.
func newWebSearch(seed uint64, load float64, span time.Duration, counted sides) (*webSearch, error) {
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = 10*model.Gbps, 10*model.Gbps
	fabric, err := topo.FatTree(8, links)
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Seed: seed})
	if err != nil {
		return nil, err
	}
	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.MTU = seed, 1460
	cfg.NoPFC, cfg.Lossless, cfg.ECN = true, 0, nil
	cfg.LossyQueue = 150 * model.KB
	cfg.TCPMinRTO = 200 * time.Millisecond // the default of hosts in 2016
	net, err := sim.New(routes, cfg)
	if err != nil {
		return nil, err
	}
	class := traffic.DefaultClass()
	class.Transport, class.Priority = traffic.TCP, 0
	background, queries := traffic.DefaultPoisson(), traffic.DefaultQuery()
	background.Class, background.Load, background.Duration = class, load, span
	queries.Class, queries.Fanout, queries.Gap, queries.Duration = class, 20, time.Millisecond, span
	flows, err := traffic.Generate(seed, traffic.HostsOf(fabric), background, queries)
	if err != nil {
		return nil, err
	}
	w := &webSearch{end: span + 100*time.Millisecond}
	if w.truth, err = truth.Record(net, truth.Options{Drops: true, MaxDrops: 1 << 22}); err != nil {
		return nil, err
	}
	if err := net.AddFlows(flows); err != nil {
		return nil, err
	}
	// Tables for many more flows than a switch sees in a slot here.
	plan, err := flowset.Plan(4000, 0.999, flowset.Single)
	if err != nil {
		return nil, err
	}
	w.lab, err = newLab(net, plan.Geometry, counted)
	return w, err
}

// run simulates it and reports progress.
func (w *webSearch) run(ctx context.Context, progress func(done float64)) error {
	for at := slotLength; at <= w.end; at += slotLength {
		w.net.Run(engine.Of(at))
		progress(at.Seconds() / w.end.Seconds())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
