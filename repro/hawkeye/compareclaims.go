package hawkeye

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
)

func (c *comparison) upperBound() claim.Claim {
	return claim.Claim{
		ID: "hawkeye-baselines", Where: "section 4.2, figure 8",
		Says: "polling the causal switches is as accurate as polling all; the victim's path alone is not enough " +
			"for deadlocks, and systems without pauses see contention only",
		Published: "Hawkeye and full polling 1.0; victim-only low on deadlocks; SpiderMon and NetSight only on contention",
		Mutations: []claim.Mutation{inNetworkTracing},
		Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
			if err := c.run(ctx, o); err != nil {
				return claim.Result{}, err
			}
			t, p := c.accuracy([]method{
				hawkeyeMethod, fullPolling, victimOnly, spiderMon, netSight, publishedMethod, publishedFull, publishedVictimOnly,
			})
			mine, found := c.means(hawkeyeMethod)
			full, _ := c.means(fullPolling)
			_, spider := c.means(spiderMon)
			_, cards := c.means(netSight)
			whole, path := c.deadlocks(hawkeyeMethod), c.deadlocks(victimOnly)
			publishedWhole, publishedPath := c.deadlocks(publishedMethod), c.deadlocks(publishedVictimOnly)
			return claim.Result{
				Measured: fmt.Sprintf("precision %.3f, full polling %.3f; recall %.3f, SpiderMon %.2f, NetSight %.2f; on deadlocks "+
					"recall %.2f, victim-only %.2f (as published: %.2f, %.2f)", mine, full, found, spider, cards, whole.recall(),
					path.recall(), publishedWhole.recall(), publishedPath.recall()),
				Pass: mine >= full-0.02 && mine >= 0.95 && found >= 0.95 && path.recall() < 0.9*whole.recall() && spider < 0.5 && cards < 0.5,
				Notes: c.notes("all methods are diagnosed by Weft's inference on what each of them would have collected; rows "+
					"\"as published\" by Table 2 and Algorithm 2 on the paper's counters",
					"passes when precision is within 0.02 of full polling's, precision and recall are at least 0.95, victim-only has a "+
						"tenth less recall on deadlocks, and SpiderMon and NetSight less than half on average"),
				Tables: []claim.Table{t}, Plots: []claim.Plot{p},
			}, nil
		},
	}
}

// deadlocks returns the tally of a method on all deadlocks.
func (c *comparison) deadlocks(m method) (sum tally) {
	for i, t := range c.rows(m) {
		if k := rows[i]; k == inLoop || k == outContention || k == outInjection {
			sum.add(t)
		}
	}
	return sum
}

func (c *comparison) overhead() claim.Claim {
	return claim.Claim{
		ID: "hawkeye-overhead", Where: "section 4.3, figure 9",
		Says: "telemetry per diagnosis is far less than with full polling or postcards, and the fabric carries " +
			"almost nothing for it",
		Published: "one to four orders of magnitude less",
		Mutations: []claim.Mutation{selectivePolling},
		Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
			if err := c.run(ctx, o); err != nil {
				return claim.Result{}, err
			}
			t := claim.Table{Title: "mean per detection", Header: []string{"method", "telemetry", "on the fabric's links"}}
			chart := plot.Chart{
				Title: "telemetry and bandwidth per diagnosis", YTitle: "bytes", LogY: true,
				Series: []plot.Series{{Name: "telemetry"}, {Name: "on the fabric"}},
			}
			for _, m := range []method{hawkeyeMethod, fullPolling, victimOnly, spiderMon, netSight} {
				x := c.cost(m)
				t.Row(m.name, bytesOf(x.mean(x.bytes)), bytesOf(x.mean(x.traffic)))
				chart.Groups = append(chart.Groups, m.name)
				chart.Series[0].Y = append(chart.Series[0].Y, max(x.mean(x.bytes), 1))
				chart.Series[1].Y = append(chart.Series[1].Y, max(x.mean(x.traffic), 1))
			}
			mine, full, cards := c.cost(hawkeyeMethod), c.cost(fullPolling), c.cost(netSight)
			less, cardsLess := full.bytes/mine.bytes, cards.bytes/mine.bytes
			wire := c.cost(spiderMon).traffic / mine.traffic
			return claim.Result{
				Measured: fmt.Sprintf("%.1f times less than full polling, %.0f times less than NetSight; SpiderMon's headers "+
					"are %.0f times the polls", less, cardsLess, wire),
				Pass: less > 1 && cardsLess >= 10 && wire >= 10,
				Notes: c.notes("traces last about 3 ms; hawkeye-large and hawkeye-postcards have larger fabrics and longer "+
					"traces", "passes when it is less than full polling, and at least 10 times less than postcards and headers"),
				Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: chart}},
			}, nil
		},
	}
}

func bytesOf(v float64) string { return model.Bytes(v).String() }

func (c *comparison) granularity() claim.Claim {
	return claim.Claim{
		ID: "hawkeye-granularity", Where: "section 4.3, figure 10",
		Says:      "neither port counters alone nor flow counters alone suffice",
		Published: "both far below Hawkeye",
		Mutations: []claim.Mutation{flowTelemetry, portTelemetry},
		Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
			if err := c.run(ctx, o); err != nil {
				return claim.Result{}, err
			}
			t, p := c.accuracy([]method{hawkeyeMethod, portsOnly, flowsOnly, publishedMethod, publishedPorts, publishedFlows})
			precision, mine := c.means(hawkeyeMethod)
			_, ports := c.means(portsOnly)
			_, flows := c.means(flowsOnly)
			_, theirs := c.means(publishedMethod)
			_, theirPorts := c.means(publishedPorts)
			_, theirFlows := c.means(publishedFlows)
			return claim.Result{
				Measured: fmt.Sprintf("precision %.3f, recall %.3f; port-only %.2f, flow-only %.2f (as published: %.2f, %.2f, %.2f)",
					precision, mine, ports, flows, theirs, theirPorts, theirFlows),
				Pass: precision >= 0.95 && mine >= 0.95 && ports <= 0.6 && flows <= 0.6,
				Notes: c.notes("port-only cannot name flows, flow-only cannot follow pauses; passes when precision and recall are at " +
					"least 0.95, and the recall of both at most 0.6"),
				Tables: []claim.Table{t}, Plots: []claim.Plot{p},
			}, nil
		},
	}
}

func (c *comparison) switches() claim.Claim {
	return claim.Claim{
		ID: "hawkeye-switches", Where: "section 4.3, figure 11",
		Says:      "polls reach every switch that the victim waits for, and few others",
		Published: "100 % of the causal switches, far fewer than all 20",
		Mutations: []claim.Mutation{inNetworkTracing},
		Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
			if err := c.run(ctx, o); err != nil {
				return claim.Result{}, err
			}
			t := claim.Table{
				Title:  "switches that report on a detection",
				Header: []string{"method", "switches", "of the causal ones"},
			}
			chart := plot.Chart{Title: "switches", YTitle: "mean", Series: []plot.Series{{Name: "switches that report"}}}
			for _, m := range []method{hawkeyeMethod, fullPolling, victimOnly} {
				x := c.cost(m)
				t.Row(m.name, fmt.Sprintf("%.1f", x.mean(x.switches)), fmt.Sprintf("%.2f %%", 100*x.coverage()))
				chart.Groups = append(chart.Groups, m.name)
				chart.Series[0].Y = append(chart.Series[0].Y, x.mean(x.switches))
			}
			mine, path := c.cost(hawkeyeMethod), c.cost(victimOnly)
			return claim.Result{
				Measured: fmt.Sprintf("%.2f %% of causal switches with %.1f switches; victim-only %.0f %% with %.1f",
					100*mine.coverage(), mine.mean(mine.switches), 100*path.coverage(), path.mean(path.switches)),
				Pass: mine.covered == mine.causal && path.covered < path.causal,
				Notes: c.notes("causal: a port of the switch is in the closure of the wait-for relation from the victim at " +
					"the detection; passes when all of them reported, and not all with victim-only"),
				Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: chart}},
			}, nil
		},
	}
}

// measured runs a study of costs alone.
func measured(ctx context.Context, o claim.Options, l lab, sets [][]kind, traces int) (map[string]*costs, error) {
	l.fullPolling = true
	sums := map[string]*costs{}
	s := study{lab: l, sets: sets, traces: traces, methods: []method{hawkeyeMethod, fullPolling, victimOnly, netSight}}
	for _, m := range s.methods {
		sums[m.name] = &costs{}
	}
	s.more = func(_ int, r *run, m method, list []diagnosis) {
		for i := range list {
			sums[m.name].addDetection(r, m, &list[i])
		}
	}
	_, err := s.run(ctx, o)
	return sums, err
}

var large = claim.Claim{
	ID: "hawkeye-large", Where: "section 4.3, figures 9 and 11",
	Says:      "the larger the fabric, the more polling spares",
	Published: "orders of magnitude",
	Mutations: []claim.Mutation{inNetworkTracing, selectivePolling},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		l := best(o)
		l.topology = fatTree(8)
		kinds := o.Pick(len(rows), 1)
		sums, err := measured(ctx, o, l, single(rows)[:kinds], o.Pick(3, 1))
		if err != nil {
			return claim.Result{}, err
		}
		mine, full := sums[hawkeyeMethod.name], sums[fullPolling.name]
		less := full.bytes / mine.bytes
		t := claim.Table{
			Title:  "k=8, per detection",
			Header: []string{"method", "switches", "telemetry", "of the causal switches"},
		}
		chart := plot.Chart{
			Title: "telemetry on k=8", YTitle: "bytes per detection",
			Series: []plot.Series{{Name: "telemetry"}},
		}
		for _, m := range []method{hawkeyeMethod, fullPolling, victimOnly} {
			x := sums[m.name]
			t.Row(m.name, fmt.Sprintf("%.1f", x.mean(x.switches)), bytesOf(x.mean(x.bytes)),
				fmt.Sprintf("%.2f %%", 100*x.coverage()))
			chart.Groups = append(chart.Groups, m.name)
			chart.Series[0].Y = append(chart.Series[0].Y, x.mean(x.bytes))
		}
		return claim.Result{
			Measured: fmt.Sprintf("%.1f times less than full polling, %.2f %% of causal switches, %d detections", less,
				100*mine.coverage(), mine.detections),
			Pass: less >= 5 && mine.covered == mine.causal,
			Notes: []string{"fat-tree k=8 with 80 switches, otherwise as hawkeye-switches; --quick has incasts only; " +
				"passes at 5 times less and 100 % of causal switches"},
			Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: chart}},
		}, nil
	},
}

var longTraces = claim.Claim{
	ID: "hawkeye-postcards", Where: "section 4.3, figure 9",
	Says:      "a diagnosis takes orders of magnitude less than postcards of the same time",
	Published: "four orders of magnitude",
	Mutations: []claim.Mutation{selectivePolling},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		l := best(o)
		l.timing.span = 10 * ms
		sums, err := measured(ctx, o, l, single(rows), o.Pick(4, 1))
		if err != nil {
			return claim.Result{}, err
		}
		mine, cards := sums[hawkeyeMethod.name], sums[netSight.name]
		less := cards.bytes / mine.bytes
		t := claim.Table{Title: "traces of 10 ms, per detection", Header: []string{"method", "telemetry"}}
		chart := plot.Chart{
			Title: "telemetry of traces of 10 ms", YTitle: "bytes", LogY: true,
			Series: []plot.Series{{Name: "telemetry"}},
		}
		for _, m := range []method{hawkeyeMethod, fullPolling, victimOnly, netSight} {
			x := sums[m.name]
			t.Row(m.name, bytesOf(x.mean(x.bytes)))
			chart.Groups = append(chart.Groups, m.name)
			chart.Series[0].Y = append(chart.Series[0].Y, max(x.mean(x.bytes), 1))
		}
		return claim.Result{
			Measured: fmt.Sprintf("%.0f times less than NetSight: %s against %s", less, bytesOf(mine.mean(mine.bytes)),
				bytesOf(cards.mean(cards.bytes))),
			Pass: less >= 1000,
			Notes: []string{setting, "one diagnosis against all postcards of the trace, 15 bytes of every packet of " +
				"data at every switch; passes at 1,000 times less"},
			Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: chart}},
		}, nil
	},
}
