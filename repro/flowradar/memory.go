package flowradar

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/flowradar/peer"
)

var memorySingle = claim.Claim{
	ID: "flowradar-memory-single", Where: "section 5.1, figure 3",
	Says:      "a switch counts 100K flows per slot in this much memory, and 99 % of its flowsets decode by themselves",
	Published: "2.88 MB",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		return runMemory(ctx, o, []int{100_000}, 100_000, 2.88e6)
	},
	Mutations: []claim.Mutation{severalCells, narrowCounters},
}

var memoryRange = claim.Claim{
	ID: "flowradar-memory-range", Where: "section 5.1, figure 3",
	Says:      "memory grows in proportion from 1K to 1M flows per slot, at 99 % of flowsets decoded by themselves; at 1M flows it is this much",
	Published: "29.7 MB",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		sizes := []int{1_000, 10_000, 100_000, 1_000_000}
		return runMemory(ctx, o, sizes, 1_000_000, 29.7e6)
	},
	Mutations: []claim.Mutation{severalCells},
}

// runMemory plans flowsets for numbers of flows, fills and decodes many of each,
// and compares the memory for one of the numbers with the published one.
func runMemory(ctx context.Context, o claim.Options, sizes []int, judged int, published float64) (claim.Result, error) {
	res := claim.Result{Pass: true, Notes: []string{
		"memory of filter and Weft's narrow cells: 18 bytes as in the paper's prototype, 13 of key, 1 of flow count, 2 of packet count, 1 for each port; wide cells also count bytes",
		"success: every flow of the flowset is decoded, with its count; passes when the memory is at most the published one and 99 % or more of the flowsets decode",
		"planned for 99.9 %, which still fits into the published memory: a plan for 99 % would be below it in every second run",
	}}
	t := claim.Table{Title: "planned for 99.9 %", Header: []string{
		"flows", "k_c", "cells per flow", "filter bits", "memory", "with wide cells", "NetFlow, perfect hash", "decoded",
	}}
	var xs, mine, theirs []float64
	for i, n := range sizes {
		plan, err := flowset.Plan(n, 0.999, flowset.Single)
		if err != nil {
			return res, err
		}
		trials := o.Pick(1000, min(200, max(2_000_000/n, 4)))
		if o.Without(severalCells) {
			plan.TableCells *= uint32(plan.Tables)
			plan.Tables, trials = 1, 4
		}
		cells := narrowCells
		if o.Without(narrowCounters) {
			cells, trials = flowset.Layout4, 4
		}
		rate, err := claim.Trials(ctx, trials, o.Seed, singleTrial(plan.Geometry, n), func(share float64) {
			o.Report((float64(i)+share)/float64(len(sizes)), fmt.Sprintf("flowsets of %d flows", n))
		})
		if err != nil {
			return res, err
		}
		memory := float64(plan.Memory(cells))
		res.Pass = res.Pass && rate.Share() >= 0.99
		if chance := claim.MissChance(rate.Of, 0.999, 0.99); chance > 1e-4 {
			res.Notes = append(res.Notes, fmt.Sprintf("%d flowsets of %d flows that decode in the planned 99.9 %% miss 99 %% by chance in %s of runs", rate.Of, n, percent(chance)))
		}
		if n == judged || o.Broken() {
			res.Pass = res.Pass && memory <= published
			res.Measured = fmt.Sprintf("%s; %s of flowsets decode", megabytes(memory), rate)
		}
		t.Row(fmt.Sprint(n), fmt.Sprint(plan.Tables), fmt.Sprintf("%.3f", float64(plan.Cells())/float64(n)),
			fmt.Sprint(plan.FilterBits),
			megabytes(memory), megabytes(float64(plan.Memory(flowset.Layout4))), megabytes(float64(peer.NetFlowBytes(n, true))), rate.String())
		xs, mine, theirs = append(xs, float64(n)), append(mine, memory/1e6), append(theirs,
			float64(peer.NetFlowBytes(n, true))/1e6)
		if o.Broken() && !res.Pass {
			break
		}
	}
	res.Tables = []claim.Table{t}
	res.Plots = []claim.Plot{{Chart: plot.Chart{
		Title: "Memory for 99 % of flowsets decoded by themselves", XTitle: "flows per slot", YTitle: "MB", LogX: true, LogY: true,
		Series: []plot.Series{
			{Name: "flowset", X: xs, Y: mine},
			{Name: "NetFlow on a perfect hash", X: xs, Y: theirs},
			{Name: "published", X: []float64{100_000, 1_000_000}, Y: []float64{2.88, 29.7}, Dashed: true},
		},
	}}}
	return res, nil
}
