package flowradar

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
)

var perPort = claim.Claim{
	ID: "flowradar-per-port", Where: "section 7",
	Says:      "one flowset per switch needs less memory than one per port, because ports do not peak at the same time",
	Published: "less memory per switch",
	Run:       runPerPort,
}

func runPerPort(ctx context.Context, o claim.Options) (claim.Result, error) {
	span := 100 * time.Millisecond
	if o.Quick {
		span = 30 * time.Millisecond
	}
	w, err := newWebSearch(o.Seed, 0.1, span, false)
	if err != nil {
		return claim.Result{}, err
	}
	if err := w.run(ctx, func(done float64) { o.Report(done, "simulating") }); err != nil {
		return claim.Result{}, err
	}
	maps, err := w.maps(w.incoming)
	if err != nil {
		return claim.Result{}, err
	}
	// The most flows that came in through a port, and through all ports of a
	// switch, in any slot.
	ports, switches := map[model.Port]int{}, map[model.NodeID]int{}
	for _, m := range maps {
		port, all := map[model.Port]int{}, map[model.NodeID]int{}
		for _, seen := range m.All() {
			for _, s := range seen {
				port[model.Port{Node: s.Switch, Port: s.In}]++
				all[s.Switch]++
			}
		}
		for p, n := range port {
			ports[p] = max(ports[p], n)
		}
		for sw, n := range all {
			switches[sw] = max(switches[sw], n)
		}
	}
	var memory [2]float64
	var peaks [2]int
	known := map[int]float64{}
	add := func(i, n int) error {
		if known[n] == 0 {
			plan, err := flowset.Plan(n, 0.99, flowset.Single)
			if err != nil {
				return err
			}
			known[n] = float64(plan.Memory(prototypeLayout))
		}
		peaks[i] += n
		memory[i] += known[n]
		return nil
	}
	for _, n := range ports {
		if err := add(0, n); err != nil {
			return claim.Result{}, err
		}
	}
	for _, n := range switches {
		if err := add(1, n); err != nil {
			return claim.Result{}, err
		}
	}
	t := claim.Table{
		Title:  "all 80 switches, tables for the peak of any slot",
		Header: []string{"", "tables", "sum of peak flows", "memory"},
	}
	t.Row("per port", fmt.Sprint(len(ports)), fmt.Sprint(peaks[0]), megabytes(memory[0]))
	t.Row("per switch", fmt.Sprint(len(switches)), fmt.Sprint(peaks[1]), megabytes(memory[1]))
	saved := 1 - memory[1]/memory[0]
	return claim.Result{
		Measured: fmt.Sprintf("capacity for %s fewer flows per switch, %s less memory",
			percent(1-float64(peaks[1])/float64(peaks[0])), percent(saved)),
		Pass: saved > 0 && peaks[1] < peaks[0],
		Notes: []string{
			"web-search traffic at 10 % load with incast, fat-tree k=8, slots of 10 ms; each table is planned for 99 % of its flowsets decoded at the most flows it saw",
			"multiplexing saves the flows; memory shrinks further because small tables need more cells per flow, and no table is planned for fewer than 100",
		},
		Tables: []claim.Table{t},
		Plots: []claim.Plot{{Chart: plot.Chart{
			Title: "Memory of all flowsets", YTitle: "MB", Groups: []string{"per port", "per switch"},
			Series: []plot.Series{{Name: "measured", Y: []float64{memory[0] / 1e6, memory[1] / 1e6}}},
		}}},
	}, nil
}
