package prove

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// counts is what a laboratory can remove.
var counts = claim.Mutation{Name: "counts", Removes: "records do not have what switches counted of flows"}

// holdsAlone is holds for one cause: some have no wrong verdict that could be given.
func (s *score) holdsAlone() bool {
	alone := *s
	if alone.wrong == 0 {
		alone.wrong, alone.refuted = 1, 1
	}
	return alone.holds()
}

var deliveredVerdicts = claim.Claim{
	ID: "prove-delivery", Where: "docs/prove.md",
	Says: "a run rebuilt from flow records loses or diverts what was recorded; with the true place mended packets arrive, " +
		"with another place mended they do not; wrong verdicts are refuted",
	Published: "no paper; goal: rebuilt within 20 % in 0.9, restored in 0.95, not by a control in 0.95, 0.9 of wrong verdicts refuted",
	Mutations: []claim.Mutation{removal, counts},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		each := o.Pick(20, 2)
		var all score
		var missed []string
		by := make([]score, losts)
		for i := range each {
			for k := range losts {
				if o.Quick && i > 0 && k >= ringDeadlock {
					continue // larger runs
				}
				o.Report(float64(i*int(losts)+int(k))/float64(each*int(losts)), k.String())
				s, misses, err := deliver(ctx, k, o.Seed*1000+uint64(i), o.Without(removal), o.Without(counts))
				if err != nil {
					return claim.Result{}, fmt.Errorf("%v, case %d: %w", k, i, err)
				}
				by[k].add(s)
				all.add(s)
				for _, text := range misses {
					missed = append(missed, fmt.Sprintf("%v, case %d: %s", k, i, text))
				}
			}
		}
		res := claim.Result{
			Measured: fmt.Sprintf("%d of %d rebuilt, %d of %d restored, %d of %d controls not, %d of %d wrong verdicts refuted",
				all.rebuilt, all.found, all.restored, all.rebuilt, all.held, all.controls, all.refuted, all.wrong),
			Pass: all.found > 0 && all.holds() && (o.Quick || !slices.ContainsFunc(by, func(s score) bool { return !s.holdsAlone() })),
			Notes: []string{
				"fat-tree with k=4, links of 1 Gb/s, flowsets of 10 ms, 128 flows of datagrams and 16 of RDMA; faults of 50 to 70 ms",
				"deadlocks: rings of 4 to 6 switches, and wrong routes in a pod, drawn until queues wait for each other; imbalance: all switches have one hash, and RPCs of 4 to 11 % load",
				"a right verdict is one with the injected cause at its place; runs without one are not proven and are listed",
				"restored: at most 1.3 packets are sent for each that arrives by an intended route, and at least 0.8 of the harm is gone; of imbalance, 0.8 of what a random hash would not leave",
				"passes when all together meet the goals and, but with --quick, which has too few, each cause by itself",
				"truth is what was injected; a wrong verdict names another switch on the victims' paths, or two ports on the path of a flow that passes no port of the cycle",
			},
		}
		res.Notes = append(res.Notes, missed...)
		t := claim.Table{Title: "proofs by cause", Header: []string{"cause", "runs", "found", "rebuilt", "restored", "control does not", "wrong refuted"}}
		chart := plot.Chart{
			Title: "Proofs by cause", YTitle: "share",
			Series: []plot.Series{{Name: "rebuilt"}, {Name: "restored"}, {Name: "wrong refuted"}},
		}
		for k := range losts {
			s := &by[k]
			of := func(a, b int) string { return fmt.Sprintf("%d of %d", a, b) }
			t.Row(k.String(), fmt.Sprint(s.cases), fmt.Sprint(s.found), of(s.rebuilt, s.found), of(s.restored, s.rebuilt), of(s.held, s.controls), of(s.refuted, s.wrong))
			chart.Groups = append(chart.Groups, k.String())
			for i, v := range []float64{share(s.rebuilt, s.found), share(s.restored, s.rebuilt), share(s.refuted, s.wrong)} {
				chart.Series[i].Y = append(chart.Series[i].Y, v)
			}
		}
		res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}
