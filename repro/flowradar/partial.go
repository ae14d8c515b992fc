package flowradar

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var partialDeployment = claim.Claim{
	ID: "flowradar-partial", Where: "section 7, deployment scenarios",
	Says:      "switches on some tiers alone decode as many flows together as all of them do, as long as a flow crosses at least two of them",
	Published: "partial deployment does not affect the decoding success rate",
	Run:       runPartial,
	Mutations: []claim.Mutation{neighbours, secondSighting},
}

func runPartial(ctx context.Context, o claim.Options) (claim.Result, error) {
	expected, k := o.Pick(10_000, 1_000), o.Pick(8, 4)
	flowsets := o.Pick(400, 100)
	g, err := withoutHiddenFlows(expected, expected*1266/1000)
	if err != nil {
		return claim.Result{}, err
	}
	deployments := []struct {
		name  string
		tiers []int
	}{
		{"all switches", []int{1, 2, 3}},
		{"ToRs and leaves", []int{1, 2}},
		{"leaves and spines", []int{2, 3}},
		{"ToRs", []int{1}},
	}
	if o.Broken() {
		deployments, flowsets = deployments[3:], 20
	}
	if o.Without(secondSighting) {
		deployments[0].name, deployments[0].tiers = "spines", []int{3}
	}
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d flows at every switch of a fat-tree with k=%d, all between pods, in tables that decode %d alone; success: all flows with exact counts", expected*1266/1000, k, expected),
		"flows are searched along their routes: ToRs alone are not neighbours of each other",
		"with spines alone a flow is in one flowset, and none helps another",
		"the filter is made for at most one flowset in 1,000 that lacks a flow, which is not what is measured here",
		"passes when 99 % or more of the flowsets decode with every deployment",
	}}
	t := claim.Table{Title: "flowsets decoded", Header: []string{"deployed at", "all counts exact", "all flows", "filter hid a flow", "CPU per flowset"}}
	chart := plot.Chart{Title: "Flowsets decoded with partial deployment", YTitle: "% of flowsets"}
	var ys []float64
	for i, d := range deployments {
		r, err := netDecode(ctx, o, netRun{k: k, perSwitch: expected * 1266 / 1000, flowsets: flowsets, geometry: g, deployed: d.tiers},
			func(done float64) {
				o.Report((float64(i)+done)/float64(len(deployments)), d.name)
			})
		if err != nil {
			return res, err
		}
		res.Pass = res.Pass && r.counts.Share() >= 0.99
		res.Measured += fmt.Sprintf("%s%.4g %% with %s", separator(i), 100*r.counts.Share(), d.name)
		t.Row(d.name, r.counts.String(), r.flows.String(), r.hidden.String(), milliseconds(r.cpu))
		chart.Groups, ys = append(chart.Groups, d.name), append(ys, 100*r.counts.Share())
	}
	chart.Series = []plot.Series{{Name: "measured", Y: ys}}
	res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
	return res, nil
}
