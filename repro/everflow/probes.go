package everflow

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// scheduler returns a lab's scheduler for guided probes.
func (l *lab) scheduler(cfg probe.Config, into **probe.Scheduler) (err error) {
	*into, err = probe.NewScheduler(cfg, l.Intent(), simhost.NewProbers(l.Network, nil))
	return err
}

// dropKind is a kind of packet loss, and the verdict that probes must give.
type dropKind struct {
	name  string
	want  probe.Kind
	fault func(at model.NodeID, flow model.FlowKey) sim.Injection
}

var droppedBy = []dropKind{
	{"over before the probes", probe.Passed, func(at model.NodeID, _ model.FlowKey) sim.Injection {
		return sim.Injection{For: time.Millisecond, Fault: sim.LossySwitch{Switch: at, Share: 1}}
	}},
	{"all packets, persistently", probe.Persistent, func(at model.NodeID, _ model.FlowKey) sim.Injection {
		return sim.Injection{Fault: sim.LossySwitch{Switch: at, Share: 1}}
	}},
	{"three packets in ten", probe.Random, func(at model.NodeID, _ model.FlowKey) sim.Injection {
		return sim.Injection{Fault: sim.LossySwitch{Switch: at, Share: 0.3}}
	}},
	{"one destination port", probe.Blackhole, func(at model.NodeID, flow model.FlowKey) sim.Injection {
		return sim.Injection{Fault: sim.LossySwitch{
			Switch: at, Share: 1,
			Match: func(k model.FlowKey) bool { return k.DstPort == flow.DstPort },
		}}
	}},
}

var dropKinds = claim.Claim{
	ID: "everflow-drop-kinds", Where: "section 3.2, guided probing, figure 1",
	Says:      "a trace that ends at a switch does not show whether the drop is over or persists, nor whether it is random or a blackhole for certain 5-tuples; copies and variations of the packet, injected as probes, do",
	Published: "probes show it",
	Mutations: []claim.Mutation{copiesOfProbes},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		trials, copies := o.Pick(25, 4), uint32(40)
		if o.Without(copiesOfProbes) {
			copies = 1
		}
		res := claim.Result{Notes: []string{
			fmt.Sprintf("%d trials of each kind: a flow between pods of a fat-tree, a leaf or spine on its path that drops packets, 40 probes of each pattern injected at the flow's first switch", trials),
			"passes when kind and switch are right in all trials in which no mirror is lost; the paper does not consider lost mirrors; the effect of losing a tenth of them is shown beside it: a probe whose mirrors are lost looks lost itself",
		}}
		table := claim.Table{
			Title:  "verdicts of probes",
			Header: []string{"switch drops", "mirrors lost", "trials", "kind is right", "switch is right"},
		}
		chart := plot.Chart{
			Title: "trials in which kind and switch are right", YTitle: "%",
			Series: []plot.Series{{Name: "no mirror lost"}, {Name: "a tenth lost"}},
		}
		right, all := [2]int{}, 0
		for i, kind := range droppedBy {
			chart.Groups = append(chart.Groups, kind.want.String())
			all += trials
			for lossy, loss := range []float64{0, 0.1} {
				kinds, locations, both := 0, 0, 0
				for trial := range trials {
					o.Report(float64((2*i+lossy)*trials+trial)/float64(2*trials*len(droppedBy)), kind.name)
					got, at, err := probeDrops(ctx, kind, loss, copies, o.Seed+uint64(1000*i+trial))
					if err != nil {
						return res, err
					}
					sort := got.Kind == kind.want
					located := got.At.Switch == at || sort && kind.want == probe.Passed // then there is none
					kinds, locations, both = kinds+boolToInt(sort), locations+boolToInt(located), both+boolToInt(sort && located)
				}
				table.Row(kind.name, fmt.Sprintf("%g %%", 100*loss), fmt.Sprint(trials), fmt.Sprint(kinds),
					fmt.Sprint(locations))
				chart.Series[lossy].Y = append(chart.Series[lossy].Y, 100*float64(both)/float64(trials))
				right[lossy] += both
			}
		}
		res.Measured = fmt.Sprintf("kind and switch right in %d of %d trials; with a tenth of the mirrors lost, in %d", right[0], all, right[1])
		res.Pass = right[0] == all
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

// probeDrops injects a fault into a switch on a flow's path and probes the flow.
func probeDrops(ctx context.Context, kind dropKind, loss float64, copies uint32, seed uint64) (probe.DropAnswer,
	model.NodeID, error,
) {
	var scheduler *probe.Scheduler
	l, err := newLab(setup{
		seed: seed, loss: loss, linger: 20 * time.Microsecond,
		closed: func(t *trace.Trace) { scheduler.MatchTrace(t) },
	})
	if err != nil {
		return probe.DropAnswer{}, 0, err
	}
	if err := l.scheduler(probe.DefaultConfig(), &scheduler); err != nil {
		return probe.DropAnswer{}, 0, err
	}
	src, dst := l.rng.IntN(4), 4+l.rng.IntN(12) // of different pods
	if err := l.AddFlows([]traffic.Flow{{
		Src: model.NodeID(src), Dst: model.NodeID(dst), Bytes: 20_000,
		Transport: traffic.TCP,
	}}); err != nil {
		return probe.DropAnswer{}, 0, err
	}
	key, _ := l.FlowKey(0)
	path, err := l.Routes().Path(key, model.NodeID(src))
	if err != nil {
		return probe.DropAnswer{}, 0, err
	}
	at := path[2+l.rng.IntN(3)].Node // a leaf, a spine, a leaf
	if err := l.Inject(kind.fault(at, key)); err != nil {
		return probe.DropAnswer{}, 0, err
	}
	l.Run(2 * ms)
	q, err := scheduler.Drops(l.Now().Model(), key, nil, copies)
	if err != nil {
		return probe.DropAnswer{}, 0, err
	}
	took, err := scheduler.Start(q)
	if err != nil {
		return probe.DropAnswer{}, 0, err
	}
	if err := l.run(ctx, l.Now()+engine.Of(took)); err != nil {
		return probe.DropAnswer{}, 0, err
	}
	return q.Answer(), at, nil
}

var linkLatency = claim.Claim{
	ID: "everflow-link-latency", Where: "sections 3.1 and 3.2, figure 2",
	Says:      "mirrors of two switches do not show the latency of the link between them, because their paths to the analyzer differ; a probe that travels S1, S2, S1 does, even by arrivals at the analyzer if switches have no timestamps",
	Published: "the difference of arrivals equals the round trip",
	Mutations: []claim.Mutation{roundTrip},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		res := claim.Result{Pass: true, Notes: []string{
			"a link at 30 % load in both directions; clocks of its switches are 10 ms apart and drift; mirrors take 100 to 120 µs to the analyzer, each datagram by itself",
			"the truth is twice the delay of the wire plus the probe's serialization; passive is the median error over all packets, if the link's latency is taken as the difference of a packet's two mirrors, by arrival or by the clocks of the switches",
			"passes when guided probes are within 5 % by the near switch's clock and by arrivals, and passive is off by more than 50 %",
		}}
		table := claim.Table{Title: "latency of a link", Header: []string{"by", "measured", "truth", "off by"}}
		var off []float64
		for i, stamps := range []bool{true, false} {
			o.Report(float64(i)/2, "round-trip probes")
			guided, truth, passive, err := probeLink(ctx, o.Seed, 2000, stamps)
			if err != nil {
				return res, err
			}
			if o.Without(roundTrip) {
				guided = truth + 2*passive[1].off
			}
			if i == 0 {
				for j, name := range []string{"passive, arrivals at the analyzer", "passive, clocks of both switches"} {
					e := float64(passive[j].off) / float64(passive[j].truth)
					table.Row(name, "", passive[j].truth.String(), fmt.Sprintf("%.4g %%", 100*e))
					off = append(off, e)
				}
			}
			e := math.Abs(float64(guided-truth)) / float64(truth)
			table.Row([]string{
				"guided, arrivals at the analyzer",
				"guided, clock of the near switch",
			}[boolToInt(stamps)], guided.String(), truth.String(), fmt.Sprintf("%.2f %%", 100*e))
			off = append(off, e)
		}
		chart := plot.Chart{
			Title: "error of a link's latency", YTitle: "%", LogY: true,
			Groups: []string{
				"passive, arrivals", "passive, clocks", "guided, near clock",
				"guided, arrivals",
			}, Series: []plot.Series{{Name: "off by"}},
		}
		for _, e := range off {
			chart.Series[0].Y = append(chart.Series[0].Y, max(100*e, 0.01))
		}
		res.Measured = fmt.Sprintf("guided off by %.2f %% by the switch's clock, %.2f %% by arrivals; passive by %.0f %% and more", 100*off[2], 100*off[3], 100*min(off[0], off[1]))
		res.Pass = off[2] <= 0.05 && off[3] <= 0.05 && min(off[0], off[1]) > 0.5
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// passiveError is the median error over all packets, and the truth.
type passiveError struct{ off, truth time.Duration }

// probeLink measures the round trip of a loaded link by probes, and the error of
// passive traces of the traffic: by arrivals, and by clocks.
func probeLink(ctx context.Context, seed uint64, count uint32, stamps bool) (guided, truth time.Duration,
	passive [2]passiveError, err error,
) {
	links := topo.DefaultLinks()
	f, err := topo.LeafSpine(2, 1, 4, links)
	if err != nil {
		return 0, 0, passive, err
	}
	leaf, _ := f.ByName("leaf0")
	spine, _ := f.ByName("spine0")
	var scheduler *probe.Scheduler
	var errs [2][]float64
	oneWay := time.Duration(0)
	l, err := newLab(setup{
		fabric: f, seed: seed,
		mirrors: func(_ model.NodeID, c *mirror.Config) { c.SampleOneIn = 50 }, closed: func(t *trace.Trace) {
			if scheduler.MatchTrace(t) {
				return
			}
			for i := range t.Hops[:len(t.Hops)-1] {
				a, b := &t.Hops[i], &t.Hops[i+1]
				if _, next := t.HopDelay(i); next && a.Switch == leaf && b.Switch == spine {
					oneWay = links.Fabric.Delay + time.Duration(float64(t.Length)*8e9/float64(links.Fabric.Rate))
					errs[0] = append(errs[0], math.Abs(float64(b.Arrived.Sub(a.Arrived)-oneWay)))
					errs[1] = append(errs[1], math.Abs(float64(b.Time.Sub(a.Time)-oneWay)))
				}
			}
		},
	})
	if err != nil {
		return 0, 0, passive, err
	}
	l.SetClock(leaf, sim.Clock{Offset: 3 * time.Millisecond, Drift: 20e-6})
	l.SetClock(spine, sim.Clock{Offset: -7 * time.Millisecond, Drift: -30e-6})
	var flows []traffic.Flow
	for i, src := range f.Hosts() {
		flows = append(flows, traffic.Flow{
			Src: src, Dst: f.Hosts()[(i+4)%8], Stop: 40e6, Start: model.Time(137 * i), Transport: traffic.UDP, Rate: links.Fabric.Rate * 3 / 40 * model.Rate(997+i) / 1000,
		})
	}
	if err := l.AddFlows(flows); err != nil {
		return 0, 0, passive, err
	}
	cfg := probe.DefaultConfig()
	cfg.Interval = 20 * time.Microsecond
	if err := l.scheduler(cfg, &scheduler); err != nil {
		return 0, 0, passive, err
	}
	l.Run(ms)
	q, err := scheduler.Latency(l.Now().Model(), leaf, spine, stamps, count)
	if err != nil {
		return 0, 0, passive, err
	}
	took, err := scheduler.Start(q)
	if err != nil {
		return 0, 0, passive, err
	}
	if err := l.run(ctx, l.Now()+engine.Of(took)); err != nil {
		return 0, 0, passive, err
	}
	a, ok := q.Answer()
	if !ok {
		return 0, 0, passive, fmt.Errorf("no probe of %d came back", count)
	}
	// Out with three IP headers of four, back with two.
	bytes := 2*(int(a.Bytes)+14) - 20 - 40
	truth = 2*links.Fabric.Delay + time.Duration(float64(bytes)*8e9/float64(links.Fabric.Rate))
	for i := range errs {
		slices.Sort(errs[i])
		if len(errs[i]) == 0 {
			return 0, 0, passive, fmt.Errorf("no packet was traced on the link")
		}
		passive[i] = passiveError{time.Duration(errs[i][len(errs[i])/2]), oneWay}
	}
	return a.Min, truth, passive, nil
}
