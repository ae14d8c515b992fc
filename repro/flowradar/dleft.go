package flowradar

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/flowradar/peer"
)

var dleft = claim.Claim{
	ID: "flowradar-dleft", Where: "section 8",
	Says:      "in 2.74 MB a basic d-left table (d=4, L=1) loses this share of 100K and 152K flows, the recommended one (d=3, L=5) this",
	Published: "basic 1.04 % and 10 %, recommended 0 % and 1.2 %",
	Run:       runDLeft,
	Mutations: []claim.Mutation{oneDLeftTable},
}

// dleftBytes is the memory of the paper's comparison.
const dleftBytes = 2_740_000

func runDLeft(ctx context.Context, o claim.Options) (claim.Result, error) {
	settings := []struct {
		name                string
		tables, bucketCells int
		published           [2]float64 // at 100K and 152K flows
	}{
		{"basic", 4, 1, [2]float64{0.0104, 0.10}},
		{"recommended", 3, 5, [2]float64{0, 0.012}},
	}
	if o.Without(oneDLeftTable) {
		for i := range settings {
			settings[i].tables = 1
		}
	}
	sizes := [2]int{100_000, 152_000}
	trials := o.Pick(100, 10)
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d tables of %d bytes each, cells of %d bytes (5-tuple and counter)", trials, dleftBytes,
			peer.DLeftCellBytes),
		"passes within a tenth of each published share; the share published as 0 must stay below one flow in 10,000",
	}}
	table := claim.Table{Title: "flows lost", Header: []string{"setting", "flows", "published", "measured"}}
	chart := plot.Chart{
		Title: "Flows that a d-left table of 2.74 MB loses", XTitle: "flows offered", YTitle: "% lost",
		Groups: []string{"100K", "152K"},
	}
	for i, s := range settings {
		var shown [2]string
		var measured, published []float64
		for j, flows := range sizes {
			o.Report(float64(2*i+j)/4, fmt.Sprintf("%s, %d flows", s.name, flows))
			lost, err := dleftLoss(ctx, trials, o.Seed, s.tables, s.bucketCells, flows)
			if err != nil {
				return res, err
			}
			shown[j] = percent(lost)
			if s.published[j] == 0 {
				res.Pass = res.Pass && lost < 1e-4
			} else {
				res.Pass = res.Pass && withinShare(lost, s.published[j], 0.1)
			}
			table.Row(fmt.Sprintf("%s: d=%d, L=%d", s.name, s.tables, s.bucketCells), fmt.Sprint(flows),
				percent(s.published[j]), percent(lost))
			measured, published = append(measured, 100*lost), append(published, 100*s.published[j])
		}
		if i > 0 {
			res.Measured += ", "
		}
		res.Measured += fmt.Sprintf("%s %s and %s", s.name, shown[0], shown[1])
		chart.Series = append(chart.Series,
			plot.Series{Name: s.name + ", measured", Y: measured},
			plot.Series{Name: s.name + ", published", Y: published, Dashed: true})
	}
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

// dleftLoss returns the mean share of flows that did not fit.
func dleftLoss(ctx context.Context, trials int, seed uint64, tables, bucketCells, flows int) (float64, error) {
	var mu sync.Mutex
	lost := 0
	_, err := claim.Trials(ctx, trials, seed, func(rng *rand.Rand) (bool, error) {
		t, err := peer.NewDLeft(tables, bucketCells, dleftBytes, rng.Uint64())
		if err != nil {
			return false, err
		}
		for _, k := range randomKeys(rng, flows) {
			t.Add(&k, 1)
		}
		mu.Lock()
		lost += t.Overflowed
		mu.Unlock()
		return t.Overflowed == 0, nil
	})
	return float64(lost) / float64(trials*flows), err
}
