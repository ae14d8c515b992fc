package flowradar

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/flowradar/peer"
)

var memoryNet = claim.Claim{
	ID: "flowradar-memory-net", Where: "section 5.1, figure 3",
	Says:      "with the help of neighbours, 100K flows per slot need only this much memory at 99 % of flowsets decoded, less than NetFlow on a perfect hash",
	Published: "2.36 MB, 5.6 % less than NetFlow",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		return runMemoryNet(ctx, o, []fabricSize{{100_000, o.Pick(8, 4), o.Pick(1000, 20)}}, 2.36e6)
	},
	Mutations: []claim.Mutation{neighbours, narrowCounters},
}

var memoryRangeNet = claim.Claim{
	ID: "flowradar-memory-range-net", Where: "section 5.1, figure 3",
	Says:      "with the help of neighbours, memory grows in proportion from 1K to 1M flows per slot, at 99 % of flowsets decoded; at 1M flows it is this much, less than NetFlow on a perfect hash",
	Published: "24.8 MB, 0.8 % less than NetFlow",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		return runMemoryNet(ctx, o, []fabricSize{
			{1_000, 8, o.Pick(1000, 240)}, {10_000, 8, o.Pick(1000, 240)}, {100_000, 8, o.Pick(80, 0)}, {
				1_000_000, 4,
				o.Pick(20, 0),
			},
		}, 24.8e6)
	},
	Mutations: []claim.Mutation{neighbours},
}

// fabricSize is the flows at every switch, the k of the fat-tree, and the number of
// flowsets to decode; none: planned only.
type fabricSize struct{ flows, k, flowsets int }

// runMemoryNet plans flowsets for decoding with neighbours, decodes whole fabrics
// of each size, and compares the memory of the last with the published one.
func runMemoryNet(ctx context.Context, o claim.Options, sizes []fabricSize, published float64) (claim.Result, error) {
	res := claim.Result{Pass: true, Notes: []string{
		"success: all flows of the flowset, each with its exact count; one flow in 50 has a packet more or less at the next switch, because of packets in flight",
		"a flowset whose filter mistakes a flow for a known one counts as a failure",
		"no knowledge of routes; Weft's narrow cells, of 18 bytes as in the paper's prototype, with ports and without bytes",
		"passes when the memory is at most the published one and 99 % or more of the flowsets of every size decode; planned for 99.5 %, which still fits into the published memory",
	}}
	t := claim.Table{Title: "flows at every switch of a fat-tree, planned for 99.5 %", Header: []string{
		"flows", "k", "cells per flow", "filter bits", "memory", "with wide cells", "NetFlow", "all flows of the table", "all flows, exact counts", "filter hid a flow",
	}}
	var xs, mine, theirs []float64
	cells := narrowCells
	switch {
	case o.Without(narrowCounters):
		sizes, cells = []fabricSize{{100_000, 4, 0}}, flowset.Layout4
	case o.Broken():
		sizes = []fabricSize{{1_000, 4, 20}}
	}
	for i, size := range sizes {
		plan, err := flowset.Plan(size.flows, 0.995, flowset.Net)
		if err != nil {
			return res, err
		}
		row := []string{"not decoded", "", ""}
		decoded := "not decoded with --quick"
		if size.flowsets > 0 {
			r, err := netDecode(ctx, o, netRun{k: size.k, perSwitch: size.flows, flowsets: size.flowsets, geometry: plan.Geometry},
				func(done float64) {
					o.Report((float64(i)+done)/float64(len(sizes)),
						fmt.Sprintf("fabrics with %d flows per switch", size.flows))
				})
			if err != nil {
				return res, err
			}
			res.Pass = res.Pass && r.counts.Share() >= 0.99
			res.Notes = append(res.Notes, missNote(r.counts.Of, 0.995))
			row = []string{r.flows.String(), r.counts.String(), r.hidden.String()}
			decoded = r.counts.String() + " of flowsets decode"
		}
		memory, perfect := float64(plan.Memory(cells)), float64(peer.NetFlowBytes(size.flows, true))
		t.Row(append([]string{
			fmt.Sprint(size.flows), fmt.Sprint(size.k), fmt.Sprintf("%.4f",
				float64(plan.Cells())/float64(size.flows)), fmt.Sprint(plan.FilterBits),
			megabytes(memory), megabytes(float64(plan.Memory(flowset.Layout4))), megabytes(perfect),
		}, row...)...)
		if i == len(sizes)-1 {
			res.Pass = res.Pass && memory <= published
			res.Measured = fmt.Sprintf("%s, %.1f %% less than NetFlow; %s", megabytes(memory), 100*(1-memory/perfect),
				decoded)
		}
		xs, mine, theirs = append(xs, float64(size.flows)), append(mine, memory/1e6), append(theirs, perfect/1e6)
	}
	res.Tables = []claim.Table{t}
	res.Plots = []claim.Plot{{Chart: plot.Chart{
		Title: "Memory for 99 % of flowsets decoded with neighbours", XTitle: "flows per slot", YTitle: "MB", LogX: true, LogY: true,
		Series: []plot.Series{
			{Name: "flowset", X: xs, Y: mine},
			{Name: "NetFlow on a perfect hash", X: xs, Y: theirs},
			{Name: "published", X: []float64{100_000, 1_000_000}, Y: []float64{2.36, 24.8}, Dashed: true},
		},
	}}}
	return res, nil
}

var moreFlows = claim.Claim{
	ID: "flowradar-more-flows", Where: "section 5.1, figure 5",
	Says:      "in the memory that lets 99 % of flowsets decode by themselves, decoding with neighbours handles this many more flows",
	Published: "26.6 to 30 % more",
	Run:       runMoreFlows,
	Mutations: []claim.Mutation{neighbours},
}

func runMoreFlows(ctx context.Context, o claim.Options) (claim.Result, error) {
	sizes := []struct {
		expected int
		more     []float64
	}{
		{1_000, []float64{1.266, 1.28, 1.30}},
		{10_000, []float64{1.266, 1.28}},
		{100_000, []float64{1.266}},
	}
	if o.Quick {
		sizes = sizes[:2]
	}
	if o.Broken() {
		sizes = sizes[:1]
	}
	res := claim.Result{Pass: true, Notes: []string{
		"tables of four sub-tables; success: all flows with exact counts; k=8 fat-tree, no knowledge of routes",
		"the filter is made for the most flows of a size, in both cases, so that the memory is the same; a flowset whose filter mistakes a flow for a known one counts as a failure",
		"passes when 99 % or more of the flowsets decode with 26.6 % more flows, at every size",
	}}
	t := claim.Table{Title: "flowsets decoded", Header: []string{
		"expected flows", "cells per flow", "by themselves", "flows", "more", "with neighbours", "flows alone", "filter hid a flow",
	}}
	var xs, ys []float64
	for i, size := range sizes {
		g, err := paperGeometry(size.expected, int(float64(size.expected)*size.more[len(size.more)-1]))
		if err != nil {
			return res, err
		}
		single, err := claim.Trials(ctx, o.Pick(1000, 100), o.Seed, singleTrial(g, size.expected))
		if err != nil {
			return res, err
		}
		best := 0.0
		for j, factor := range size.more {
			n := int(float64(size.expected) * factor)
			r, err := netDecode(ctx, o, netRun{k: 8, perSwitch: n, flowsets: o.Pick(1000, 80), geometry: g}, func(done float64) {
				o.Report((float64(i)+(float64(j)+done)/float64(len(size.more)))/float64(len(sizes)),
					fmt.Sprintf("%d flows", n))
			})
			if err != nil {
				return res, err
			}
			if r.counts.Share() >= 0.99 {
				best = factor
			}
			t.Row(fmt.Sprint(size.expected), fmt.Sprintf("%.3f", float64(g.Cells())/float64(size.expected)),
				single.String(), fmt.Sprint(n),
				fmt.Sprintf("%.1f %%", 100*(factor-1)), r.counts.String(), r.flows.String(), r.hidden.String())
		}
		res.Pass = res.Pass && best >= 1.266
		res.Measured += fmt.Sprintf("%s%.1f %% at %d", separator(i), 100*max(best-1, 0), size.expected)
		xs, ys = append(xs, float64(size.expected)), append(ys, 100*max(best-1, 0))
	}
	res.Tables = []claim.Table{t}
	res.Plots = []claim.Plot{{Chart: plot.Chart{
		Title: "More flows in the same memory with neighbours", XTitle: "expected flows", YTitle: "% more", LogX: true,
		Series: []plot.Series{
			{Name: "measured, at least", X: xs, Y: ys},
			{Name: "published, least", X: []float64{1e3, 1e6}, Y: []float64{26.6, 26.6}, Dashed: true},
		},
	}}}
	return res, nil
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}
