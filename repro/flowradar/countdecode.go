package flowradar

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var counterDecode = claim.Claim{
	ID: "flowradar-counter-decode", Where: "section 4.2",
	Says:      "the counters of 26.6 % more flows than a switch decodes alone are solved from its own equations, started with the counters of neighbours, where this share of flows differs between them",
	Published: "neighbours' counters are close, and a good start; no figure",
	Run:       runCounterDecode,
	Mutations: []claim.Mutation{neighbours, similarCounters},
}

func runCounterDecode(ctx context.Context, o claim.Options) (claim.Result, error) {
	const expected = 10_000
	k, flowsets := o.Pick(8, 4), o.Pick(400, 20)
	shares := []uint64{2, 15, 30, 50}
	if o.Broken() {
		shares, flowsets = shares[:1], 20
	}
	g, err := withoutHiddenFlows(expected, expected*1266/1000)
	if err != nil {
		return claim.Result{}, err
	}
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d flows at every switch of a fat-tree with k=%d, %.3f cells a flow in four sub-tables, no knowledge of routes; success: all flows with exact counts", expected*1266/1000, k, float64(g.Cells())/float64(expected*1266/1000)),
		"a flow that differs has a packet more or less than on the rest of its path, drawn for each switch; packets of flows have an exponential distribution with a mean of 2",
		"where few flows differ, the equations of all switches together give a guess that is right for nearly all flows; where many do, each switch solves its own by belief propagation, started with that guess",
		"the paper's solver works on real numbers; here there are so few more equations than unknowns that it does not converge, unless it knows that differences are small integers",
		"the filter is made for at most one flowset in 1,000 that lacks a flow, which is not what is measured here",
		"passes when 99 % or more of the flowsets decode at every share",
	}}
	t := claim.Table{Title: "flowsets with exact counts", Header: []string{"flows that differ", "all counts exact", "all flows", "CPU per flowset"}}
	var xs, ys []float64
	for i, share := range shares {
		r, err := netDecode(ctx, o, netRun{k: k, perSwitch: expected * 1266 / 1000, flowsets: flowsets, geometry: g, inFlight: share},
			func(done float64) {
				o.Report((float64(i)+done)/float64(len(shares)), fmt.Sprintf("%d %% of flows differ", share))
			})
		if err != nil {
			return res, err
		}
		res.Pass = res.Pass && r.counts.Share() >= 0.99
		res.Measured += fmt.Sprintf("%s%.4g %% at %d %%", separator(i), 100*r.counts.Share(), share)
		t.Row(fmt.Sprintf("%d %%", share), r.counts.String(), r.flows.String(), milliseconds(r.cpu))
		xs, ys = append(xs, float64(share)), append(ys, 100*r.counts.Share())
	}
	res.Tables = []claim.Table{t}
	res.Plots = []claim.Plot{{Chart: plot.Chart{
		Title: "Flowsets whose counters are solved", XTitle: "% of flows that differ between switches", YTitle: "% of flowsets",
		Series: []plot.Series{{Name: "measured", X: xs, Y: ys}},
	}}}
	return res, nil
}
