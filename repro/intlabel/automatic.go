package intlabel

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/repro/claim"
)

var automatic = claim.Claim{
	ID: "int-label-automatic", Where: "sections 3.2 and 4.2",
	Says:      "the labelling interval follows from the coverage that is wanted, and need not be found by experiment",
	Published: "no figure: T and k are found by experiment",
	Mutations: []claim.Mutation{labelInterval},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		const rate = 2 * perServer
		// The ports with the fewest packets are on the path of one of the seven flows of a sender.
		gap := time.Duration(7 / rate * float64(time.Second))
		wanted := []float64{0.9, 0.95, 0.99}
		plans := map[float64]coverage.Plan{}
		for _, share := range wanted {
			p, err := coverage.Wanted{Coverage: share, Window: window, Gap: gap}.Plan()
			if err != nil {
				return claim.Result{}, err
			}
			plans[share] = p
		}
		set := func(times int) func(l *lab, v float64) {
			return func(l *lab, v float64) {
				l.interval, l.rate, l.packets = time.Duration(times)*plans[v].Interval, rate, o.Pick(120_000, 25_000)
			}
		}
		labs, xs := labsFor(o, []strategy{baseA}, wanted, set(1))
		longer, more := labsFor(o, []strategy{baseA}, wanted, set(2))
		points, err := sweep(ctx, o, append(labs, longer...), append(xs, more...))
		if err != nil {
			return claim.Result{}, err
		}
		res := claim.Result{Pass: true, Notes: []string{
			setting + fmt.Sprintf("; here at 10 Mb/s, where a port that one flow uses has a packet every %v", gap.Round(100*time.Microsecond)),
			"passes when the interval of coverage.Wanted reaches the wanted coverage, and twice that interval does not; a run has too few windows to distinguish 99.9 % from 99.8 %",
		}}
		t := claim.Table{Title: "intervals from the wanted coverage", Header: []string{"wanted", "T", "k", "coverage", "with 2T"}}
		for i, share := range wanted {
			got, twice := points[i].coverage(), points[len(wanted)+i].coverage()
			res.Pass = res.Pass && got >= share && twice < share
			res.Measured += fmt.Sprintf("%s with T = %v; ", percent(got), plans[share].Interval.Round(time.Millisecond))
			t.Row(percent(share), plans[share].Interval.Round(100*time.Microsecond).String(), fmt.Sprint(plans[share].Patience), percent(got), percent(twice))
		}
		res.Measured = "wanted 90, 95 and 99 %: " + res.Measured[:len(res.Measured)-2]
		res.Tables = []claim.Table{t}
		return res, nil
	},
}
